// What an opened GPU is, and how its functions report failure.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ashlar_plugin.h"
#include "common/error.h"
#include "gpu.h"
#include "platform.h"
#include "staging.h"

namespace ashlar::gpu_kernels {

// A preparation that is not launched yet: the attention that follows it may carry it out.
struct HeldPrepare {
  ashlar_stream* stream;
  ashlar_qkv_prepare args;
};

}  // namespace ashlar::gpu_kernels

struct ashlar_device {
  int index = 0;
  bool invariant = false;
  gpu::Facts facts;
  std::vector<int64_t> launches;                              // per row
  std::unique_ptr<ashlar::gpu_kernels::Prefill> prefill;      // may be empty
  // Opened by the first call of its row: half a gigabyte of library.
  std::optional<std::unique_ptr<ashlar::gpu_kernels::Prefill>> vendor_prefill;
  std::unique_ptr<ashlar::gpu_kernels::FusedStep> step;       // may be empty
  std::unique_ptr<ashlar::gpu_kernels::FusedProducts> fused;  // may be empty
  std::unique_ptr<ashlar::gpu_kernels::FusedLayers> layers;   // may be empty
  uint32_t* layer_words = nullptr;                            // of `layers`
  // Whatever touches a stream or memory next, other than that attention, launches it first.
  std::optional<ashlar::gpu_kernels::HeldPrepare> held;
  gpu::Error held_error = gpu::kSuccess;  // of such a launch, for the next who waits
  std::future<std::unique_ptr<ashlar::gpu_kernels::Blas>> opening_blas;
  ashlar::gpu_kernels::Staging staging;
  void* scratch = nullptr;
  int64_t scratch_bytes = 0;

  // The vendor's products; NULL where there are none. Waits until they are open.
  ashlar::gpu_kernels::Blas* Products();
  std::unique_ptr<ashlar::gpu_kernels::Blas> blas;

  // Memory that one op uses and the next on the same stream may overwrite; nullptr when there is
  // not enough. Grows by freeing, so not while a graph is captured: run the largest step first.
  void* Scratch(int64_t bytes);

  uint32_t* counters = nullptr;
  int64_t counter_count = 0;

  // As many counters, which are zero between ops: an op that counts sets them back. Grows as
  // Scratch does.
  uint32_t* Counters(int64_t count);
};

namespace ashlar::gpu_kernels {

// The stream, for what comes after all that is held back: that is launched first.
gpu::Stream StreamOf(ashlar_device* device, ashlar_stream* stream);
void LaunchHeld(ashlar_device* device);
// The error of such a launch, once.
gpu::Error TakeHeldError(ashlar_device* device);

// ASHLAR_OK, or Failed with what was being done and the vendor's words.
int Checked(gpu::Error error, const char* what);

int Probe(ashlar_probe* out);
int Open(const ashlar_open* args, ashlar_device** out);
void Close(ashlar_device* device);
int Alloc(ashlar_device* device, int64_t bytes, void** out);
void Release(ashlar_device* device, void* memory);
int CopyIn(ashlar_device* device, ashlar_stream* stream, void* to, const void* from, int64_t bytes);
int CopyOut(ashlar_device* device, ashlar_stream* stream, void* to, const void* from,
            int64_t bytes);
int64_t RowLaunches(const ashlar_device* device, int32_t row);

int StreamCreate(ashlar_device* device, ashlar_stream** out);
void StreamDestroy(ashlar_device* device, ashlar_stream* stream);
int StreamSync(ashlar_device* device, ashlar_stream* stream);
int HostAlloc(ashlar_device* device, int64_t bytes, void** out);
void HostRelease(ashlar_device* device, void* memory);
int EventCreate(ashlar_device* device, ashlar_event** out);
void EventDestroy(ashlar_device* device, ashlar_event* event);
int EventRecord(ashlar_device* device, ashlar_stream* stream, ashlar_event* event);
int EventWait(ashlar_device* device, ashlar_event* event);
int GraphBegin(ashlar_device* device, ashlar_stream* stream);
int GraphEnd(ashlar_device* device, ashlar_stream* stream, ashlar_graph** out);
int GraphLaunch(ashlar_device* device, ashlar_stream* stream, ashlar_graph* graph);
void GraphDestroy(ashlar_device* device, ashlar_graph* graph);

}  // namespace ashlar::gpu_kernels

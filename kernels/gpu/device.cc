#include "device.h"

#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "qkv_prepare.h"

namespace {

// nullptr when there is not enough memory.
uint32_t* AllocCounters(int64_t count) {
  void* memory = nullptr;
  const auto bytes = static_cast<size_t>(count) * sizeof(uint32_t);
  if (gpu::Alloc(&memory, bytes) != gpu::kSuccess) return nullptr;
  // A stream of the caller's does not wait for this one by itself.
  if (gpu::Zero(memory, bytes, nullptr) == gpu::kSuccess && gpu::Sync(nullptr) == gpu::kSuccess) {
    return static_cast<uint32_t*>(memory);
  }
  (void)gpu::Free(memory);
  return nullptr;
}

}  // namespace

ashlar::gpu_kernels::Blas* ashlar_device::Products() {
  if (opening_blas.valid()) blas = opening_blas.get();
  return blas.get();
}

void* ashlar_device::Scratch(int64_t bytes) {
  if (bytes <= scratch_bytes) return scratch;
  if (scratch != nullptr) (void)gpu::Free(scratch);  // waits until nothing uses it
  scratch = nullptr;
  scratch_bytes = 0;
  if (gpu::Alloc(&scratch, static_cast<size_t>(bytes)) != gpu::kSuccess) return nullptr;
  scratch_bytes = bytes;
  return scratch;
}

uint32_t* ashlar_device::Counters(int64_t count) {
  if (count <= counter_count) return counters;
  if (counters != nullptr) (void)gpu::Free(counters);  // waits until nothing uses them
  counters = AllocCounters(count);
  counter_count = counters == nullptr ? 0 : count;
  return counters;
}

namespace ashlar::gpu_kernels {
namespace {

enum Outcome { kFound = 0, kAbsent, kNoDriver, kNoAccess, kBroken };

// What a failed count of devices means on this machine.
Outcome Explain(gpu::Error error) {
  const Platform& platform = ThisPlatform();
  const bool driver = access(platform.driver_file, F_OK) == 0;
  const bool device = access(platform.device_file, F_OK) == 0;
  if (driver && !device) return kNoAccess;
  if (error == gpu::kOldDriver) return driver || device ? kNoDriver : kAbsent;
  if (error == gpu::kNoDevice || error == gpu::kSuccess) return driver ? kNoAccess : kAbsent;
  return kBroken;
}

}  // namespace

int Checked(gpu::Error error, const char* what) {
  if (error == gpu::kSuccess) return ASHLAR_OK;
  return Failed(std::string(what) + ": " + gpu::Text(error));
}

gpu::Stream StreamOf(ashlar_device* device, ashlar_stream* stream) {
  LaunchHeld(device);
  return reinterpret_cast<gpu::Stream>(stream);
}

void LaunchHeld(ashlar_device* device) {
  if (!device->held) return;
  const auto on = reinterpret_cast<gpu::Stream>(device->held->stream);
  const gpu::Error error = LaunchPrepare(device->facts, on, device->held->args);
  device->held.reset();
  if (error != gpu::kSuccess) device->held_error = error;
}

gpu::Error TakeHeldError(ashlar_device* device) {
  return std::exchange(device->held_error, gpu::kSuccess);
}

int Probe(ashlar_probe* out) {
  *out = {};
  int count = 0;
  const gpu::Error error = gpu::CountDevices(&count);
  gpu::Facts facts;
  std::string detail = gpu::Text(error);
  if (error == gpu::kSuccess && count > 0) {
    const gpu::Error read = gpu::ReadFacts(0, &facts);
    out->outcome = read == gpu::kSuccess ? kFound : kBroken;
    out->devices = read == gpu::kSuccess ? count : 0;
    detail = read == gpu::kSuccess ? facts.name : gpu::Text(read);
  } else {
    out->outcome = Explain(error);
    if (out->outcome == kBroken) detail += " (" + std::to_string(error) + ")";
  }
  std::strncpy(out->detail, detail.c_str(), sizeof out->detail - 1);
  return ASHLAR_OK;
}

int Open(const ashlar_open* args, ashlar_device** out) {
  int count = 0;
  if (Checked(gpu::CountDevices(&count), "open") != ASHLAR_OK) return ASHLAR_FAILED;
  if (args->index < 0 || args->index >= count) {
    return Failed("open: device " + std::to_string(args->index) + " of " + std::to_string(count));
  }
  std::unique_ptr<ashlar_device> device(new (std::nothrow) ashlar_device);
  if (device == nullptr) return Failed("out of memory");
  device->index = args->index;
  device->invariant = args->invariant != 0;
  device->launches.resize(static_cast<size_t>(ThisPlatform().row_count));
  if (Checked(gpu::UseDevice(args->index), "open") != ASHLAR_OK) return ASHLAR_FAILED;
  if (Checked(gpu::ReadFacts(args->index, &device->facts), "open") != ASHLAR_OK) {
    return ASHLAR_FAILED;
  }
  if (!device->invariant) {
    // Half a gigabyte of library: found while weights are brought in.
    device->opening_blas = std::async([index = args->index] {
      return gpu::UseDevice(index) == gpu::kSuccess ? OpenBlas() : nullptr;
    });
    device->prefill = OpenPrefill(args->index);
    device->step = OpenFusedStep(args->index);
    device->fused = OpenFusedProducts(args->index);
    device->layers = OpenFusedLayers(args->index);
  }
  if (device->layers != nullptr) {
    device->layer_words = AllocCounters(device->layers->Words());
    if (device->layer_words == nullptr) return Failed("open: out of memory");
  }
  *out = device.release();
  return ASHLAR_OK;
}

void Close(ashlar_device* device) {
  (void)gpu::UseDevice(device->index);
  if (device->scratch != nullptr) (void)gpu::Free(device->scratch);
  if (device->counters != nullptr) (void)gpu::Free(device->counters);
  if (device->layer_words != nullptr) (void)gpu::Free(device->layer_words);
  delete device;
}

int Alloc(ashlar_device* device, int64_t bytes, void** out) {
  if (bytes < 0) return Failed("alloc: a negative number of bytes");
  const size_t size = bytes == 0 ? 1 : static_cast<size_t>(bytes);
  if (Checked(gpu::UseDevice(device->index), "alloc") != ASHLAR_OK) return ASHLAR_FAILED;
  if (Checked(gpu::Alloc(out, size), "alloc") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::Zero(*out, size, nullptr), "alloc");
}

void Release(ashlar_device* device, void* memory) {
  (void)gpu::UseDevice(device->index);
  LaunchHeld(device);
  if (memory != nullptr) (void)gpu::Free(memory);
}

int CopyIn(ashlar_device* device, ashlar_stream* stream, void* to, const void* from,
           int64_t bytes) {
  if (bytes < 0) return Failed("copy_in: a negative number of bytes");
  if (Checked(gpu::UseDevice(device->index), "copy_in") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::CopyIn(to, from, static_cast<size_t>(bytes), StreamOf(device, stream)),
                 "copy_in");
}

int CopyOut(ashlar_device* device, ashlar_stream* stream, void* to, const void* from,
            int64_t bytes) {
  if (bytes < 0) return Failed("copy_out: a negative number of bytes");
  if (Checked(gpu::UseDevice(device->index), "copy_out") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::CopyOut(to, from, static_cast<size_t>(bytes), StreamOf(device, stream)),
                 "copy_out");
}

int64_t RowLaunches(const ashlar_device* device, int32_t row) {
  if (row < 0 || row >= static_cast<int32_t>(device->launches.size())) return 0;
  return device->launches[static_cast<size_t>(row)];
}

int StreamCreate(ashlar_device* device, ashlar_stream** out) {
  if (Checked(gpu::UseDevice(device->index), "stream_create") != ASHLAR_OK) return ASHLAR_FAILED;
  gpu::Stream stream = nullptr;
  const int code = Checked(gpu::CreateStream(&stream), "stream_create");
  *out = reinterpret_cast<ashlar_stream*>(stream);
  return code;
}

void StreamDestroy(ashlar_device* device, ashlar_stream* stream) {
  (void)gpu::UseDevice(device->index);
  (void)gpu::DestroyStream(StreamOf(device, stream));
}

int StreamSync(ashlar_device* device, ashlar_stream* stream) {
  if (Checked(gpu::UseDevice(device->index), "stream_sync") != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Error error = gpu::Sync(StreamOf(device, stream));
  if (Checked(TakeHeldError(device), "qkv_prepare") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(error, "stream_sync");
}

int HostAlloc(ashlar_device* device, int64_t bytes, void** out) {
  if (bytes < 0) return Failed("host_alloc: a negative number of bytes");
  if (Checked(gpu::UseDevice(device->index), "host_alloc") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::AllocPinned(out, bytes == 0 ? 1 : static_cast<size_t>(bytes)), "host_alloc");
}

void HostRelease(ashlar_device* device, void* memory) {
  (void)gpu::UseDevice(device->index);
  if (memory != nullptr) (void)gpu::FreePinned(memory);
}

int EventCreate(ashlar_device* device, ashlar_event** out) {
  if (Checked(gpu::UseDevice(device->index), "event_create") != ASHLAR_OK) return ASHLAR_FAILED;
  gpu::Event event = nullptr;
  const int code = Checked(gpu::CreateEvent(&event), "event_create");
  *out = reinterpret_cast<ashlar_event*>(event);
  return code;
}

void EventDestroy(ashlar_device* device, ashlar_event* event) {
  (void)gpu::UseDevice(device->index);
  if (event != nullptr) (void)gpu::DestroyEvent(reinterpret_cast<gpu::Event>(event));
}

int EventRecord(ashlar_device* device, ashlar_stream* stream, ashlar_event* event) {
  if (Checked(gpu::UseDevice(device->index), "event_record") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::Record(reinterpret_cast<gpu::Event>(event), StreamOf(device, stream)),
                 "event_record");
}

int EventWait(ashlar_device* device, ashlar_event* event) {
  if (Checked(gpu::UseDevice(device->index), "event_wait") != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Error error = gpu::Wait(reinterpret_cast<gpu::Event>(event));
  if (Checked(TakeHeldError(device), "qkv_prepare") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(error, "event_wait");
}

}  // namespace ashlar::gpu_kernels

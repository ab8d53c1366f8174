// What differs between the platforms that kernels/gpu is built for; one source file each in
// kernels/cuda and kernels/hip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

struct Platform {
  const char* name;     // whose rows these are; also the word for its memory
  const char* paged;    // the row that kernels/gpu carries out
  const char* prefill;  // the row whose long sequences Prefill carries out, or ""
  const char* vendor;   // that whose long sequences the vendor's library carries out, or ""
  const ashlar_row* rows;
  int32_t row_count;
  const char* driver_file;  // is there when the kernel has the driver
  const char* device_file;  // is there when this process may use it
};
const Platform& ThisPlatform();

struct BlasMatmul {
  ashlar_dtype type;  // of x and weight: 16 bits, or float8
  ashlar_dtype out_type;
  const void *x, *weight;
  const float *x_scales, *weight_scales;  // of float8: what rows of x [m] and weight [n] stand for
  const void* residual;                   // added: [m, n] of out's type, may be out; or NULL
  void* out;
  int64_t m, n, k;                                           // x [m, k], weight [n, k], out [m, n]
  int64_t x_pitch, weight_pitch, residual_pitch, out_pitch;  // elements
};
// The vendor's matrix library, found at run time.
class Blas {
 public:
  virtual ~Blas() = default;
  // "" when done; otherwise why not, and nothing was launched.
  virtual std::string Matmul(gpu::Stream stream, const BlasMatmul& matmul) = 0;
};
// Empty when there is no such library here.
std::unique_ptr<Blas> OpenBlas();

struct AttentionParams;
// Attention of long sequences by what one architecture alone has.
class Prefill {
 public:
  virtual ~Prefill() = default;
  // Of memory that `params.parts` names at a launch, and that is free again after it.
  virtual int64_t PartsBytes() const = 0;
  // False when it does not carry out such a call, and nothing was launched. Leaves sequences of up
  // to kTile rows out when `params.only_long`.
  virtual bool Launch(gpu::Stream stream, const AttentionParams& params, gpu::Error* error) = 0;
};
// Empty when the device is of no such architecture.
std::unique_ptr<Prefill> OpenPrefill(int device);
// By the vendor's library; empty when there is none here.
std::unique_ptr<Prefill> OpenVendorPrefill();

// The preparation of one token and its attention in one launch, by what one architecture alone has.
class FusedStep {
 public:
  virtual ~FusedStep() = default;
  // Whether it carries out a preparation of one token, which EightsKernel could, with an attention
  // after it that Continues it.
  virtual bool Takes(const ashlar_qkv_prepare& prepare) const = 0;
  virtual gpu::Error Launch(gpu::Stream stream, const ashlar_qkv_prepare& prepare,
                            const AttentionParams& attention) = 0;
};
// Empty when the device is of no such architecture.
std::unique_ptr<FusedStep> OpenFusedStep(int device);

struct FusedProductParams;
// Products of few tokens with what stands around them but the norm, by what one architecture alone
// has.
class FusedProducts {
 public:
  virtual ~FusedProducts() = default;
  // Whether it carries out such a product; x is then of the weight's type, with scales if float8.
  virtual bool Takes(const FusedProductParams& params) const = 0;
  virtual gpu::Error Launch(gpu::Stream stream, const FusedProductParams& params) = 0;
};
// Empty when the device is of no such architecture.
std::unique_ptr<FusedProducts> OpenFusedProducts(int device);

struct LayersParams;
// Whole layers in one launch, by what one architecture alone has. Its blocks wait for each other:
// two such launches at a time on one device would never end.
class FusedLayers {
 public:
  virtual ~FusedLayers() = default;
  // How many `params.words` has at a launch, zeros at first, for it alone. At least one.
  virtual int64_t Words() const = 0;
  virtual bool Takes(const LayersParams& params) const = 0;
  virtual gpu::Error Launch(gpu::Stream stream, const LayersParams& params) = 0;
};
// Empty when the device is of no such architecture.
std::unique_ptr<FusedLayers> OpenFusedLayers(int device);

}  // namespace ashlar::gpu_kernels

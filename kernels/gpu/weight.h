// A weight on the device: float parts as they are or as float8 with a scale a row, GGUF's block
// types as bfloat16. Rows are padded with zeros to whole chunks of k and parts to whole tiles of
// rows, so kernels read without bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "ashlar_plugin.h"

struct ashlar_weight {
  struct Part {
    ashlar_dtype dtype;  // float32, float16, bfloat16 or float8
    int64_t first_row, rows;
    void* data;
    const float* scales;  // [rows], what float8 rows are multiplied by; else NULL
  };
  int64_t rows = 0, cols = 0;
  int64_t pitch = 0;        // elements between rows
  std::vector<Part> parts;  // neighbours of one type are one part
  void *memory = nullptr, *scales = nullptr;
};

namespace ashlar::gpu_kernels {

int64_t WeightBytes(const ashlar_weight_desc* desc);
int WeightCreate(ashlar_device* device, const ashlar_weight_desc* desc, const void* const* sources,
                 ashlar_weight** out);
// The device must still be open.
void WeightDestroy(ashlar_device* device, ashlar_weight* weight);

}  // namespace ashlar::gpu_kernels

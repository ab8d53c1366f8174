// A weight: a stack of parts, each either packed for the kernels or read where the source lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device.h"
#include "quant_format.h"

namespace ashlar::cpu {

struct WeightPart {
  ashlar_dtype dtype = ASHLAR_F32;
  int quant = -1;  // index in kQuantFormats, or -1: floats in place
  int64_t rows = 0;
  int64_t first_row = 0;  // in the stack
  // Floats: the source and bytes a row. Packed: the tiles, one tile's bytes and where its codes
  // begin.
  const char* source = nullptr;
  int64_t row_bytes = 0;
  uint8_t* tiles = nullptr;
  int64_t tile_bytes = 0, codes_offset = 0;
  int offset = 0;  // code of value 0 as packed

  int64_t tile_count() const { return (rows + kTileRows - 1) / kTileRows; }
};

// Empty when usable, else the reason.
std::string CheckDesc(const ashlar_weight_desc& desc);
int64_t PackedBytes(const ashlar_weight_desc& desc);

// Packs tiles [begin, end) from a part's source blocks.
void PackTiles(const WeightPart& part, int64_t cols, const uint8_t* source, int64_t begin,
               int64_t end);

// Row `row` of a packed part as the format defines it, bit for bit. out [cols]
void UnpackRow(const WeightPart& part, int64_t cols, int64_t row, float* out);

}  // namespace ashlar::cpu

struct ashlar_weight {
  int64_t rows = 0, cols = 0;
  std::vector<ashlar::cpu::WeightPart> parts;
  ashlar::cpu::Slabs::Part packed;
};

namespace ashlar::cpu {

int CreateWeight(ashlar_device& device, const ashlar_weight_desc& desc, const void* const* sources,
                 ashlar_weight** out);
int Embed(ashlar_device& device, const ashlar_tensor& out, const ashlar_weight& weight,
          const int32_t* ids, float scale);

}  // namespace ashlar::cpu

// GGUF's block formats to the tiles of quant_format.h and back.
#include <string.h>

#include "half.h"
#include "weight.h"

namespace ashlar::cpu {
namespace {

uint16_t Load16(const uint8_t* p) {
  uint16_t h;
  memcpy(&h, p, 2);
  return h;
}

// One row's 32 columns: codes without offset, and where its scales go in a tile.
struct Block {
  uint8_t codes[32];
};

// The 6-bit scale and minimum of sub-block j in the 12 bytes that Q4_K and Q5_K share.
void ScaleAndMinimum(const uint8_t* packed, int j, uint8_t* scale, uint8_t* minimum) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *minimum = packed[j + 4] & 63;
  } else {
    *scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    *minimum = (packed[j + 4] >> 4) | (packed[j] >> 6) << 4;
  }
}

// Codes of sub-block `sub` (0 for formats of 32 columns) of one source block.
template <ashlar_dtype kType>
Block ReadCodes(const uint8_t* s, int sub, int q8_offset) {
  Block b;
  for (int i = 0; i < 32; ++i) {
    const int half = i / 16, j = i % 16;
    if constexpr (kType == ASHLAR_Q8_0) {
      b.codes[i] = static_cast<uint8_t>(static_cast<int8_t>(s[2 + i]) + q8_offset);
    } else if constexpr (kType == ASHLAR_Q4_0 || kType == ASHLAR_Q4_1) {
      const uint8_t* codes = s + (kType == ASHLAR_Q4_0 ? 2 : 4);
      b.codes[i] = codes[j] >> (4 * half) & 15;
    } else if constexpr (kType == ASHLAR_Q5_0 || kType == ASHLAR_Q5_1) {
      const uint8_t* high = s + (kType == ASHLAR_Q5_0 ? 2 : 4);
      b.codes[i] = (high[4 + j] >> (4 * half) & 15) | (high[i / 8] >> (i % 8) & 1) << 4;
    } else if constexpr (kType == ASHLAR_Q4_K) {
      b.codes[i] = s[16 + sub / 2 * 32 + i] >> (sub % 2 * 4) & 15;
    } else if constexpr (kType == ASHLAR_Q5_K) {
      b.codes[i] = (s[48 + sub / 2 * 32 + i] >> (sub % 2 * 4) & 15) | (s[16 + i] >> sub & 1) << 4;
    } else {
      // Each half of 128 values has 64 bytes of low nibbles and 32 of bit pairs.
      const int big = sub / 4, quarter = sub % 4;
      const uint8_t low = s[big * 64 + quarter % 2 * 32 + i] >> (quarter / 2 * 4) & 15;
      b.codes[i] = low | (s[128 + big * 32 + i] >> (2 * quarter) & 3) << 4;
    }
  }
  return b;
}

// Writes row r's codes into a tile's block.
template <int kBits>
void WriteCodes(const Block& b, uint8_t* to, int r) {
  if constexpr (kBits == 8) {
    for (int j = 0; j < 8; ++j) memcpy(to + 64 * j + 4 * r, b.codes + 4 * j, 4);
    return;
  }
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 4; ++i)
      to[64 * j + 4 * r + i] = (b.codes[4 * j + i] & 15) | (b.codes[16 + 4 * j + i] & 15) << 4;
  if constexpr (kBits == 5) {
    for (int i = 0; i < 4; ++i) {
      uint8_t bits = 0;
      for (int j = 0; j < 8; ++j) bits |= (b.codes[4 * j + i] >> 4) << j;
      to[256 + 4 * r + i] = bits;
    }
  }
  if constexpr (kBits == 6) {
    for (int v = 0; v < 2; ++v)
      for (int i = 0; i < 4; ++i) {
        uint8_t bits = 0;
        for (int j = 0; j < 4; ++j) bits |= (b.codes[16 * v + 4 * j + i] >> 4) << (2 * j);
        to[256 + 64 * v + 4 * r + i] = bits;
      }
  }
}

// Writes row r's scales of one source block into a tile's group.
template <ashlar_dtype kType>
void WriteScales(const uint8_t* s, uint8_t* to, int r) {
  if constexpr (kType == ASHLAR_Q4_K || kType == ASHLAR_Q5_K) {
    memcpy(to + 2 * r, s, 2);
    memcpy(to + 32 + 2 * r, s + 2, 2);
    for (int j = 0; j < 8; ++j)
      ScaleAndMinimum(s + 4, j, to + 64 + 32 * j + r, to + 64 + 32 * j + 16 + r);
  } else if constexpr (kType == ASHLAR_Q6_K) {
    memcpy(to + 2 * r, s + 208, 2);
    for (int j = 0; j < 16; ++j) to[32 + 16 * j + r] = s[192 + j];
  } else {
    memcpy(to + 2 * r, s, 2);
    if (kType == ASHLAR_Q4_1 || kType == ASHLAR_Q5_1) memcpy(to + 32 + 2 * r, s + 2, 2);
  }
}

template <int kIndex>
void PackTile(const WeightPart& part, int64_t cols, const uint8_t* source, int64_t tile) {
  constexpr QuantFormat kFormat = kQuantFormats[kIndex];
  constexpr int kSubs = kFormat.group_blocks;
  uint8_t* scales = part.tiles + tile * part.tile_bytes;
  uint8_t* codes = scales + part.codes_offset;
  const int64_t row_bytes = cols / kFormat.source_columns * kFormat.source_bytes;
  const int64_t first = tile * kTileRows;
  const int rows = static_cast<int>(part.rows - first < kTileRows ? part.rows - first : kTileRows);
  for (int64_t group = 0; group < cols / kFormat.source_columns; ++group) {
    for (int r = 0; r < rows; ++r) {
      const uint8_t* s = source + (first + r) * row_bytes + group * kFormat.source_bytes;
      for (int sub = 0; sub < kSubs; ++sub)
        WriteCodes<kFormat.code_bits>(ReadCodes<kFormat.dtype>(s, sub, part.offset),
                                      codes + sub * kFormat.block_code_bytes(), r);
      WriteScales<kFormat.dtype>(s, scales, r);
    }
    codes += kSubs * kFormat.block_code_bytes();
    scales += kFormat.group_scale_bytes();
  }
}

// The code at (row, column), as packed.
int CodeAt(const QuantFormat& f, const uint8_t* block, int r, int column) {
  const int j = column / 4, i = column % 4, byte = 4 * r + i;
  if (f.code_bits == 8) return block[64 * j + byte];
  int code = block[64 * (j % 4) + byte] >> (j / 4 * 4) & 15;
  if (f.code_bits == 5) code |= (block[256 + byte] >> j & 1) << 4;
  if (f.code_bits == 6) code |= (block[256 + 64 * (j / 4) + byte] >> (2 * (j % 4)) & 3) << 4;
  return code;
}

template <int... kIndex>
void PackOne(const WeightPart& part, int64_t cols, const uint8_t* source, int64_t tile) {
  ((part.quant == kIndex ? PackTile<kIndex>(part, cols, source, tile) : void()), ...);
}

}  // namespace

void PackTiles(const WeightPart& part, int64_t cols, const uint8_t* source, int64_t begin,
               int64_t end) {
  for (int64_t tile = begin; tile < end; ++tile)
    PackOne<0, 1, 2, 3, 4, 5, 6, 7>(part, cols, source, tile);
}

void UnpackRow(const WeightPart& part, int64_t cols, int64_t row, float* out) {
  const QuantFormat& f = kQuantFormats[part.quant];
  const uint8_t* scales = part.tiles + row / kTileRows * part.tile_bytes;
  const uint8_t* codes = scales + part.codes_offset;
  const int r = static_cast<int>(row % kTileRows);
  for (int64_t block = 0; block < cols / kBlockColumns; ++block) {
    const uint8_t* group = scales + block / f.group_blocks * f.group_scale_bytes();
    const int sub = static_cast<int>(block % f.group_blocks);
    const float d = FloatFromF16(Load16(group + 2 * r));
    for (int column = 0; column < kBlockColumns; ++column) {
      const int code = CodeAt(f, codes + block * f.block_code_bytes(), r, column);
      const float value = f.dtype == ASHLAR_Q8_0 && part.offset == 0
                              ? static_cast<float>(static_cast<int8_t>(code))
                              : static_cast<float>(code - part.offset);
      float* to = out + block * kBlockColumns + column;
      if (f.group_blocks == 1) {
        *to = d * value;
        if (f.minimum) *to += FloatFromF16(Load16(group + 32 + 2 * r));
      } else if (f.minimum) {
        const uint8_t* own = group + 64 + 32 * sub;
        const float minimum = FloatFromF16(Load16(group + 32 + 2 * r)) * own[16 + r];
        *to = d * own[r] * value - minimum;
      } else {
        const int8_t scale = static_cast<int8_t>(group[32 + 32 * sub + 16 * (column / 16) + r]);
        *to = d * scale * value;
      }
    }
  }
}

}  // namespace ashlar::cpu

#include "dequantize.h"

#include "numbers.h"

namespace ashlar::reference {
namespace {

using Bytes = const uint8_t*;

constexpr int64_t kSmall = 32;   // values in a block of the _0 and _1 types
constexpr int64_t kSuper = 256;  // values in a super-block of the K types

float Half(Bytes at) { return LoadFloat(ASHLAR_F16, at, 0); }

// d, 32 signed bytes.
void Q8_0(Bytes block, float* out) {
  const float d = Half(block);
  for (int i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// Four low bits of value i are nibble i / 16 of byte i % 16 in all of the 4- and 5-bit types.
// d, nibbles.
void Q4_0(Bytes block, float* out) {
  const float d = Half(block);
  Bytes q = block + 2;
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((q[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((q[i] >> 4) - 8);
  }
}

// d, m, nibbles.
void Q4_1(Bytes block, float* out) {
  const float d = Half(block), m = Half(block + 2);
  Bytes q = block + 4;
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(q[i] & 15) + m;
    out[i + 16] = d * static_cast<float>(q[i] >> 4) + m;
  }
}

uint32_t HighBits(Bytes at) {
  uint32_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

// d, fifth bits (bit i for value i), nibbles.
void Q5_0(Bytes block, float* out) {
  const float d = Half(block);
  const uint32_t high = HighBits(block + 2);
  Bytes q = block + 6;
  for (int i = 0; i < 16; ++i) {
    const int low_half = (q[i] & 15) | static_cast<int>(high >> i & 1u) << 4;
    const int high_half = q[i] >> 4 | static_cast<int>(high >> (i + 16) & 1u) << 4;
    out[i] = d * static_cast<float>(low_half - 16);
    out[i + 16] = d * static_cast<float>(high_half - 16);
  }
}

// d, m, fifth bits, nibbles.
void Q5_1(Bytes block, float* out) {
  const float d = Half(block), m = Half(block + 2);
  const uint32_t high = HighBits(block + 4);
  Bytes q = block + 8;
  for (int i = 0; i < 16; ++i) {
    const int low_half = (q[i] & 15) | static_cast<int>(high >> i & 1u) << 4;
    const int high_half = q[i] >> 4 | static_cast<int>(high >> (i + 16) & 1u) << 4;
    out[i] = d * static_cast<float>(low_half) + m;
    out[i + 16] = d * static_cast<float>(high_half) + m;
  }
}

// Six-bit scale and minimum of sub-block j of 8, packed in 12 bytes: bytes 0-3 and 4-7 hold the low
// six bits of the first four of each and, above them, the top two bits of the last four, whose low
// four bits lie in bytes 8-11.
struct ScaleMin {
  float scale, min;
};
ScaleMin SubBlock(Bytes packed, int j) {
  if (j < 4) {
    return {static_cast<float>(packed[j] & 63), static_cast<float>(packed[j + 4] & 63)};
  }
  const int scale = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
  const int min = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
  return {static_cast<float>(scale), static_cast<float>(min)};
}

// d, dmin, 12 bytes of scales, nibbles: sub-blocks 2k and 2k+1 are the low and high nibbles of the
// same 32 bytes.
void Q4_K(Bytes block, float* out) {
  const float d = Half(block), dmin = Half(block + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin s = SubBlock(block + 4, j);
    const float scale = d * s.scale, min = dmin * s.min;
    Bytes q = block + 16 + j / 2 * 32;
    const int shift = j % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      out[j * 32 + i] = scale * static_cast<float>(q[i] >> shift & 15) - min;
    }
  }
}

// As Q4_K, with 32 bytes of fifth bits (bit j of byte i for sub-block j) before the nibbles.
void Q5_K(Bytes block, float* out) {
  const float d = Half(block), dmin = Half(block + 2);
  Bytes high = block + 16;
  for (int j = 0; j < 8; ++j) {
    const ScaleMin s = SubBlock(block + 4, j);
    const float scale = d * s.scale, min = dmin * s.min;
    Bytes q = block + 48 + j / 2 * 32;
    const int shift = j % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int value = (q[i] >> shift & 15) | (high[i] >> j & 1) << 4;
      out[j * 32 + i] = scale * static_cast<float>(value) - min;
    }
  }
}

// 128 bytes of nibbles, 64 bytes of top two bits, 16 signed scales, d. Each half of 128 values is
// four runs of 32: run g is nibble g / 2 of bytes (g % 2) * 32 on, and top bits 2g of 32 bytes.
void Q6_K(Bytes block, float* out) {
  const float d = Half(block + 208);
  for (int run = 0; run < 8; ++run) {
    const int half = run / 4, g = run % 4;
    Bytes low = block + half * 64 + g % 2 * 32;
    Bytes high = block + 128 + half * 32;
    Bytes scales = block + 192 + half * 8 + g * 2;
    for (int i = 0; i < 32; ++i) {
      const int value = (low[i] >> (g / 2 * 4) & 15) | (high[i] >> (g * 2) & 3) << 4;
      const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
      out[run * 32 + i] = scale * static_cast<float>(value - 32);
    }
  }
}

struct Format {
  ashlar_dtype dtype;
  BlockShape block;
  void (*read)(Bytes block, float* out);
};
constexpr Format kFormats[] = {
    {ASHLAR_Q8_0, {kSmall, 34}, Q8_0},  {ASHLAR_Q4_0, {kSmall, 18}, Q4_0},
    {ASHLAR_Q4_1, {kSmall, 20}, Q4_1},  {ASHLAR_Q5_0, {kSmall, 22}, Q5_0},
    {ASHLAR_Q5_1, {kSmall, 24}, Q5_1},  {ASHLAR_Q4_K, {kSuper, 144}, Q4_K},
    {ASHLAR_Q5_K, {kSuper, 176}, Q5_K}, {ASHLAR_Q6_K, {kSuper, 210}, Q6_K},
};

}  // namespace

BlockShape WeightBlock(ashlar_dtype dtype) {
  if (dtype == ASHLAR_F32) return {1, 4};
  if (dtype == ASHLAR_F16 || dtype == ASHLAR_BF16) return {1, 2};
  for (const Format& format : kFormats) {
    if (format.dtype == dtype) return format.block;
  }
  return {0, 0};
}

void Dequantize(ashlar_dtype dtype, const void* source, int64_t count, float* out) {
  for (const Format& format : kFormats) {
    if (format.dtype != dtype) continue;
    Bytes block = static_cast<Bytes>(source);
    for (int64_t i = 0; i < count; i += format.block.elements) {
      format.read(block, out + i);
      block += format.block.bytes;
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) out[i] = LoadFloat(dtype, source, i);
}

}  // namespace ashlar::reference

#include "weight.h"

#include <cstring>
#include <memory>
#include <new>

#include "device.h"
#include "matrix.h"
#include "quantize.h"
#include "reference/dequantize.h"

namespace ashlar::gpu_kernels {
namespace {

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

bool IsFloat(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 || dtype == ASHLAR_F16 || dtype == ASHLAR_BF16;
}
ashlar_dtype Stored(const ashlar_weight_desc& desc, int32_t part) {
  if (desc.fp8 != 0) return ASHLAR_F8_E4M3;
  return IsFloat(desc.dtype[part]) ? desc.dtype[part] : ASHLAR_BF16;
}
// Rows of 16 bytes or more, whole chunks; float8 rows so that 16 bytes a lane are whole too.
int64_t Pitch(const ashlar_weight_desc& desc) {
  return RoundUp(desc.cols, desc.fp8 != 0 ? 2 * kChunk : kChunk);
}

int64_t PaddedRows(const ashlar_weight_desc& desc, int32_t part) {
  return RoundUp(desc.rows[part], kTile);
}
int64_t PartBytes(const ashlar_weight_desc& desc, int32_t part) {
  return PaddedRows(desc, part) * Pitch(desc) * ElementBytes(Stored(desc, part));
}

const char* Refusal(const ashlar_weight_desc& desc) {
  if (desc.parts < 1 || desc.parts > ASHLAR_MAX_PARTS) return "a weight has 1 to 4 parts";
  if (desc.cols < 1) return "a weight needs at least one column";
  for (int32_t i = 0; i < desc.parts; ++i) {
    const reference::BlockShape block = reference::WeightBlock(desc.dtype[i]);
    if (block.elements == 0) return "no weight has this dtype";
    if (desc.cols % block.elements != 0) return "columns are no multiple of the dtype's block";
    if (desc.rows[i] < 1) return "a part of a weight needs at least one row";
    if (desc.fp8 != 0 && block.elements > 1) return "float8 weights are made of float parts";
  }
  if (desc.fp8 != 0 && desc.gathered != 0) return "float8 weights are not gathered";
  return nullptr;
}

// Brings a part's rows to what is stored of them, unless that is float8.
class Converter {
 public:
  Converter(const ashlar_weight_desc& desc, int32_t part, const void* source)
      : cols_(desc.cols),
        from_(desc.dtype[part]),
        to_(Stored(desc, part)),
        row_bytes_(Pitch(desc) * ElementBytes(to_)),
        source_(static_cast<const char*>(source)) {
    const reference::BlockShape block = reference::WeightBlock(from_);
    source_bytes_ = desc.cols / block.elements * block.bytes;
  }
  int64_t row_bytes() const { return row_bytes_; }

  // Several threads may convert rows of their own.
  void Convert(int64_t first, int64_t count, char* out) {
    std::vector<float> row(static_cast<size_t>(from_ == to_ ? 0 : cols_));
    const int64_t bytes = cols_ * ElementBytes(to_);
    for (int64_t i = first; i < first + count; ++i, out += row_bytes_) {
      const char* source = source_ + i * source_bytes_;
      if (from_ == to_) {
        std::memcpy(out, source, static_cast<size_t>(bytes));
      } else {
        reference::Dequantize(from_, source, cols_, row.data());
        for (int64_t col = 0; col < cols_; ++col) {
          const BF16 value = Store<BF16>(row[static_cast<size_t>(col)]);
          std::memcpy(out + col * 2, &value, sizeof value);
        }
      }
      std::memset(out + bytes, 0, static_cast<size_t>(row_bytes_ - bytes));
    }
  }

 private:
  int64_t cols_;
  ashlar_dtype from_, to_;
  int64_t row_bytes_, source_bytes_ = 0;
  const char* source_;
};

gpu::Error Upload(ashlar_device* device, Converter converter, int64_t rows, char* to) {
  return device->staging.Upload(
      to, rows, converter.row_bytes(),
      [&](int64_t first, int64_t count, char* out) { converter.Convert(first, count, out); });
}

// As they are to the device's scratch, and from there as float8 to their place.
gpu::Error UploadF8(ashlar_device* device, const char* source, int64_t rows, F8Rows p) {
  const int64_t row_bytes = p.cols * ElementBytes(p.dtype);
  void* landing = device->Scratch(Staging::LandingBytes(row_bytes));
  if (landing == nullptr) return gpu::kNoMemory;
  auto* to = static_cast<char*>(p.to);
  float* scales = p.scales;
  p.from = landing;
  return device->staging.Land(
      static_cast<char*>(landing), rows, row_bytes,
      [&](int64_t first, int64_t count, char* out) {
        std::memcpy(out, source + first * row_bytes, static_cast<size_t>(count * row_bytes));
      },
      [&](int64_t first, int64_t count) {
        p.to = to + first * p.pitch;
        p.scales = scales + first;
        return LaunchToF8(device->facts.wave, nullptr, count, p);
      });
}

// The part that row `first_row` of the stack begins, or the one before it when both are one matrix.
void AddPart(ashlar_weight& weight, const ashlar_weight::Part& part) {
  if (!weight.parts.empty()) {
    ashlar_weight::Part& last = weight.parts.back();
    if (last.dtype == part.dtype && last.rows % kTile == 0) {
      last.rows += part.rows;
      return;
    }
  }
  weight.parts.push_back(part);
}

int64_t ScaleBytes(const ashlar_weight_desc& desc) {
  int64_t rows = 0;
  for (int32_t i = 0; desc.fp8 != 0 && i < desc.parts; ++i) rows += PaddedRows(desc, i);
  return rows * static_cast<int64_t>(sizeof(float));
}
int64_t RowBytes(const ashlar_weight_desc& desc) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < desc.parts; ++i) bytes += PartBytes(desc, i);
  return bytes;
}

// Scales have memory of their own: a device gives out megabytes, and behind the rows they would
// begin another one.
int Fill(ashlar_device* device, const ashlar_weight_desc& desc, const void* const* sources,
         ashlar_weight& weight) {
  if (Alloc(device, RowBytes(desc), &weight.memory) != ASHLAR_OK) return ASHLAR_FAILED;
  if (desc.fp8 != 0 && Alloc(device, ScaleBytes(desc), &weight.scales) != ASHLAR_OK) {
    return ASHLAR_FAILED;
  }
  auto* to = static_cast<char*>(weight.memory);
  auto* scales = static_cast<float*>(weight.scales);
  for (int32_t i = 0; i < desc.parts; ++i) {
    const gpu::Error error =
        scales == nullptr ? Upload(device, Converter(desc, i, sources[i]), desc.rows[i], to)
                          : UploadF8(device, static_cast<const char*>(sources[i]), desc.rows[i],
                                     {nullptr, desc.dtype[i], desc.cols, Pitch(desc), to, scales});
    if (Checked(error, "weight_create") != ASHLAR_OK) return ASHLAR_FAILED;
    AddPart(weight, {Stored(desc, i), weight.rows, desc.rows[i], to, scales});
    weight.rows += desc.rows[i];
    to += PartBytes(desc, i);
    if (scales != nullptr) scales += PaddedRows(desc, i);
  }
  return ASHLAR_OK;
}

}  // namespace

int64_t WeightBytes(const ashlar_weight_desc* desc) { return RowBytes(*desc) + ScaleBytes(*desc); }

int WeightCreate(ashlar_device* device, const ashlar_weight_desc* desc, const void* const* sources,
                 ashlar_weight** out) {
  if (const char* refusal = Refusal(*desc)) return Failed(refusal);
  try {
    auto weight = std::make_unique<ashlar_weight>();
    weight->cols = desc->cols;
    weight->pitch = Pitch(*desc);
    if (Fill(device, *desc, sources, *weight) != ASHLAR_OK) {
      Release(device, weight->memory);
      Release(device, weight->scales);
      return ASHLAR_FAILED;
    }
    *out = weight.release();
  } catch (const std::bad_alloc&) {
    return Failed("weight_create: out of host memory");
  }
  return ASHLAR_OK;
}

void WeightDestroy(ashlar_device* device, ashlar_weight* weight) {
  if (weight == nullptr) return;
  Release(device, weight->memory);
  Release(device, weight->scales);
  delete weight;
}

}  // namespace ashlar::gpu_kernels

#include "weight.h"

#include <cstring>
#include <memory>
#include <new>

#include "device.h"
#include "matrix.h"
#include "reference/dequantize.h"

namespace ashlar::gpu_kernels {
namespace {

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

bool IsFloat(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 || dtype == ASHLAR_F16 || dtype == ASHLAR_BF16;
}
ashlar_dtype Stored(ashlar_dtype dtype) { return IsFloat(dtype) ? dtype : ASHLAR_BF16; }
int64_t Pitch(const ashlar_weight_desc& desc) { return RoundUp(desc.cols, kChunk); }

int64_t PartBytes(const ashlar_weight_desc& desc, int32_t part) {
  return RoundUp(desc.rows[part], kTile) * Pitch(desc) * ElementBytes(Stored(desc.dtype[part]));
}

const char* Refusal(const ashlar_weight_desc& desc) {
  if (desc.parts < 1 || desc.parts > ASHLAR_MAX_PARTS) return "a weight has 1 to 4 parts";
  if (desc.cols < 1) return "a weight needs at least one column";
  for (int32_t i = 0; i < desc.parts; ++i) {
    const reference::BlockShape block = reference::WeightBlock(desc.dtype[i]);
    if (block.elements == 0) return "no weight has this dtype";
    if (desc.cols % block.elements != 0) return "columns are no multiple of the dtype's block";
    if (desc.rows[i] < 1) return "a part of a weight needs at least one row";
  }
  return nullptr;
}

// `rows` rows of the file's bytes as they are stored, padded.
void Convert(const ashlar_weight_desc& desc, ashlar_dtype dtype, const char* source, int64_t rows,
             char* out) {
  const reference::BlockShape block = reference::WeightBlock(dtype);
  const int64_t source_bytes = desc.cols / block.elements * block.bytes;
  const int64_t element = ElementBytes(Stored(dtype)), row_bytes = Pitch(desc) * element;
  std::vector<float> row(static_cast<size_t>(IsFloat(dtype) ? 0 : desc.cols));
  for (int64_t i = 0; i < rows; ++i, source += source_bytes, out += row_bytes) {
    if (IsFloat(dtype)) {
      std::memcpy(out, source, static_cast<size_t>(source_bytes));
    } else {
      reference::Dequantize(dtype, source, desc.cols, row.data());
      for (int64_t col = 0; col < desc.cols; ++col) {
        const BF16 value = Store<BF16>(row[static_cast<size_t>(col)]);
        std::memcpy(out + col * element, &value, sizeof value);
      }
    }
    std::memset(out + desc.cols * element, 0,
                static_cast<size_t>((Pitch(desc) - desc.cols) * element));
  }
}

int Upload(Staging& staging, const ashlar_weight_desc& desc, ashlar_dtype dtype, const char* source,
           int64_t rows, char* to) {
  const reference::BlockShape block = reference::WeightBlock(dtype);
  const int64_t source_bytes = desc.cols / block.elements * block.bytes;
  const int64_t row_bytes = Pitch(desc) * ElementBytes(Stored(dtype));
  const gpu::Error error =
      staging.Upload(to, rows, row_bytes, [&](int64_t first, int64_t count, char* out) {
        Convert(desc, dtype, source + first * source_bytes, count, out);
      });
  return Checked(error, "weight_create");
}

// The part that row `first_row` of the stack begins, or the one before it when both are one matrix.
void AddPart(ashlar_weight& weight, ashlar_dtype dtype, int64_t rows, void* data) {
  if (!weight.parts.empty()) {
    ashlar_weight::Part& last = weight.parts.back();
    if (last.dtype == dtype && last.rows % kTile == 0) {
      last.rows += rows;
      return;
    }
  }
  weight.parts.push_back({dtype, weight.rows, rows, data});
}

int Fill(ashlar_device* device, const ashlar_weight_desc& desc, const void* const* sources,
         ashlar_weight& weight) {
  if (Alloc(device, WeightBytes(&desc), &weight.memory) != ASHLAR_OK) return ASHLAR_FAILED;
  char* to = static_cast<char*>(weight.memory);
  for (int32_t i = 0; i < desc.parts; ++i) {
    if (Upload(device->staging, desc, desc.dtype[i], static_cast<const char*>(sources[i]),
               desc.rows[i], to) != ASHLAR_OK) {
      return ASHLAR_FAILED;
    }
    AddPart(weight, Stored(desc.dtype[i]), desc.rows[i], to);
    weight.rows += desc.rows[i];
    to += PartBytes(desc, i);
  }
  return ASHLAR_OK;
}

}  // namespace

int64_t WeightBytes(const ashlar_weight_desc* desc) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < desc->parts; ++i) bytes += PartBytes(*desc, i);
  return bytes;
}

int WeightCreate(ashlar_device* device, const ashlar_weight_desc* desc, const void* const* sources,
                 ashlar_weight** out) {
  if (const char* refusal = Refusal(*desc)) return Failed(refusal);
  try {
    auto weight = std::make_unique<ashlar_weight>();
    weight->cols = desc->cols;
    weight->pitch = Pitch(*desc);
    if (Fill(device, *desc, sources, *weight) != ASHLAR_OK) {
      Release(device, weight->memory);
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
  delete weight;
}

}  // namespace ashlar::gpu_kernels

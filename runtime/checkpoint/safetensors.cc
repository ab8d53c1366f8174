#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "checkpoint/formats.h"
#include "checkpoint/json_events.h"
#include "checkpoint/layout.h"

namespace ashlar {
namespace {

struct Header {
  std::vector<TensorInfo> tensors;  // offsets from the start of the data
  int64_t refused = 0;              // tensors of a dtype that is not supported
  TensorInfo first_refused;
  std::string refused_dtype;
};

constexpr size_t kMaxRank = 8;
constexpr std::string_view kDTypeNames = "F32, F16 or BF16";

std::optional<DType> SafetensorsDType(std::string_view name) {
  if (name == "F32") return DType::kF32;
  if (name == "F16") return DType::kF16;
  if (name == "BF16") return DType::kBF16;
  return std::nullopt;
}

// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} and one "__metadata__"
// whose values are strings.
class HeaderEvents final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  bool start_object(std::size_t) override {
    switch (at_) {
      case At::kStart:
        return Enter(At::kNames);
      case At::kTensorValue:
        tensor_ = TensorInfo();
        tensor_.name = name_;
        dtype_.clear();
        offsets_.clear();
        has_dtype_ = has_shape_ = has_offsets_ = false;
        return Enter(At::kFields);
      case At::kMetadataValue:
        return Enter(At::kMetadata);
      default:
        return Unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    switch (at_) {
      case At::kNames:
        return BeginEntry(name);
      case At::kFields:
        return BeginField(name);
      default:
        return true;  // a key of __metadata__
    }
  }

  bool string(string_t& value) override {
    if (at_ == At::kMetadata) return true;
    if (at_ != At::kDTypeValue) return JsonEvents::string(value);
    dtype_ = Shown(value);
    return Enter(At::kFields);
  }

  bool start_array(std::size_t) override {
    if (at_ == At::kShapeValue) return Enter(At::kShape);
    if (at_ == At::kOffsetsValue) return Enter(At::kOffsets);
    return Unexpected("an array");
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ == At::kShape) {
      if (tensor_.shape.size() == kMaxRank) return Refuse("more dimensions", "at most 8");
      if (value == 0 || value > static_cast<uint64_t>(INT64_MAX))
        return Refuse(fmt::format("a dimension of {}", value), "1 to 2^63 - 1");
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (at_ == At::kOffsets && offsets_.size() < 2) {
      offsets_.push_back(value);
      return true;
    }
    return JsonEvents::number_unsigned(value);
  }

  bool end_array() override { return Enter(At::kFields); }

  bool end_object() override {
    if (at_ == At::kNames) return Enter(At::kEnd);
    if (at_ == At::kMetadata) return Enter(At::kNames);
    return EndTensor() && Enter(At::kNames);
  }

  Header header;

 private:
  enum class At {
    kStart,
    kNames,
    kTensorValue,
    kFields,
    kDTypeValue,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kMetadataValue,
    kMetadata,
    kEnd,
  };

  std::string Where() const override {
    if (at_ == At::kStart || at_ == At::kNames || at_ == At::kEnd) return "header";
    return "header tensor " + Shown(name_);
  }

  std::string Allowed() const override {
    switch (at_) {
      case At::kStart:
        return "an object of tensors";
      case At::kTensorValue:
        return "an object with dtype, shape and data_offsets";
      case At::kDTypeValue:
        return "a dtype name";
      case At::kShapeValue:
      case At::kShape:
        return "an array of positive integers";
      case At::kOffsetsValue:
      case At::kOffsets:
        return "an array of two byte offsets";
      case At::kMetadataValue:
      case At::kMetadata:
        return "an object of strings";
      default:
        return "nothing there";
    }
  }

  bool Enter(At next) {
    at_ = next;
    return true;
  }

  bool BeginEntry(string_t& name) {
    name_ = std::move(name);
    if (name_ == "__metadata__") {
      if (has_metadata_) return Refuse("__metadata__ stands twice", "each name once");
      has_metadata_ = true;
      return Enter(At::kMetadataValue);
    }
    if (name_.empty() || name_.size() > kMaxTensorName) {
      return Refuse(fmt::format("a tensor name of {} bytes", name_.size()),
                    fmt::format("1 to {} bytes", kMaxTensorName));
    }
    if (header.tensors.size() == kMaxTensors)
      return Refuse("more tensors", fmt::format("at most {}", kMaxTensors));
    return Enter(At::kTensorValue);
  }

  bool BeginField(const std::string& field) {
    auto once = [&](bool& seen, At next) {
      if (seen) return Refuse(fmt::format("{} stands twice", field), "each field once");
      seen = true;
      return Enter(next);
    };
    if (field == "dtype") return once(has_dtype_, At::kDTypeValue);
    if (field == "shape") return once(has_shape_, At::kShapeValue);
    if (field == "data_offsets") return once(has_offsets_, At::kOffsetsValue);
    return Refuse(fmt::format("the field {}", Shown(field)), "dtype, shape and data_offsets");
  }

  bool EndTensor() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_)
      return Refuse("a field is missing", "dtype, shape and data_offsets");
    if (offsets_.size() != 2) return Refuse("data_offsets of one number", "start and end");
    if (offsets_[0] > offsets_[1]) {
      return Refuse(fmt::format("data_offsets {}..{}", offsets_[0], offsets_[1]),
                    "a start before the end");
    }
    tensor_.offset = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    std::optional<DType> dtype = SafetensorsDType(dtype_);
    if (!dtype) {
      if (header.refused++ == 0) {
        header.first_refused = tensor_;
        header.refused_dtype = dtype_;
      }
      return true;
    }
    tensor_.dtype = *dtype;
    std::optional<int64_t> count = CheckedProduct(tensor_.shape);
    std::optional<int64_t> bytes = count ? StorageBytes(*dtype, *count) : std::nullopt;
    if (!bytes || static_cast<uint64_t>(*bytes) != tensor_.bytes) {
      return Refuse(
          fmt::format("data_offsets {}..{} hold {} bytes", offsets_[0], offsets_[1], tensor_.bytes),
          fmt::format("{} bytes for {} {}", bytes ? fmt::to_string(*bytes) : "2^63 or more", dtype_,
                      ShownShape(tensor_.shape)));
    }
    header.tensors.push_back(std::move(tensor_));
    return true;
  }

  At at_ = At::kStart;
  std::string name_, dtype_;
  TensorInfo tensor_;
  std::vector<uint64_t> offsets_;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

Problem RefusedDType(const std::string& path, const Header& header) {
  std::string more =
      header.refused == 1 ? "" : fmt::format(" (and {} more tensors)", header.refused - 1);
  return {fmt::format("{} tensor {}", path, Shown(header.first_refused.name)),
          fmt::format("dtype {} is not supported{}", header.refused_dtype, more),
          std::string(kDTypeNames), "convert the model to one of these"};
}

}  // namespace

Result<std::vector<TensorInfo>> ReadSafetensors(const MappedFile& file, int index) {
  std::span<const std::byte> bytes = file.bytes();
  uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    return Problem{file.path() + " header length bytes 0..8",
                   fmt::format("the file has {} bytes", bytes.size()),
                   "at least 8 bytes expected, then a header", std::string(kFetchAgain)};
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  uint64_t data_start = sizeof length + length;  // used only after the limit is checked
  if (length > kMaxHeaderBytes) {
    return Problem{file.path() + " header length bytes 0..8", fmt::format("{} bytes", length),
                   fmt::format("at most {} bytes", kMaxHeaderBytes),
                   "the file is damaged or no safetensors file: fetch it again"};
  }
  if (data_start > bytes.size()) {
    return Problem{fmt::format("{} header bytes 8..{}", file.path(), data_start),
                   fmt::format("the file has {} bytes", bytes.size()),
                   fmt::format("at least {} bytes expected", data_start), std::string(kFetchAgain)};
  }
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof length, length);
  HeaderEvents events(file.path());
  if (!text.starts_with('{')) {
    return Problem{file.path() + " header byte 8",
                   text.empty() ? "an empty header" : "\"" + Shown(text.substr(0, 1)) + "\"",
                   "a JSON object, beginning with {", std::string(kDamaged)};
  }
  if (auto problem = ZeroByte(text, file.path() + " header", sizeof length)) return *problem;
  if (!Json::sax_parse(text, &events)) return events.problem();
  Header& header = events.header;
  if (header.refused > 0) return RefusedDType(file.path(), header);
  for (TensorInfo& tensor : header.tensors) {
    tensor.file = index;
    if (tensor.offset > static_cast<uint64_t>(INT64_MAX) - data_start - tensor.bytes) {
      return Problem{fmt::format("{} tensor {}", file.path(), Shown(tensor.name)),
                     fmt::format("data_offsets from {}", tensor.offset),
                     fmt::format("an end within the {} bytes of the file", bytes.size()),
                     std::string(kDamaged)};
    }
    tensor.offset += data_start;
  }
  if (auto problem = SortByName(file.path(), header.tensors)) return *problem;
  if (auto problem = CheckLayout(file.path(), header.tensors, data_start, bytes.size(), 1))
    return *problem;
  return std::move(header.tensors);
}

}  // namespace ashlar

// Builds GGUF bytes value by value, right ones and wrong ones alike.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ashlar::testing_support {

class GgufWriter {
 public:
  static constexpr uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8,
                            kArray = 9, kUint64 = 10;
  static constexpr uint32_t kF32 = 0, kF16 = 1, kQ4_1 = 3, kQ8_0 = 8;

  template <class T>
  static std::string Raw(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static std::string Text(std::string_view text) {
    return Raw<uint64_t>(text.size()) + std::string(text);
  }

  GgufWriter& Key(std::string_view key, uint32_t type, std::string_view raw_value) {
    pairs_ += Text(key) + Raw(type) + std::string(raw_value);
    ++keys_;
    return *this;
  }
  GgufWriter& Uint32(std::string_view key, uint32_t value) { return Key(key, kUint32, Raw(value)); }
  GgufWriter& Float32(std::string_view key, float value) { return Key(key, kFloat32, Raw(value)); }
  GgufWriter& String(std::string_view key, std::string_view value) {
    return Key(key, kString, Text(value));
  }
  // An array of `count` values of `type` whose bytes are `raw`.
  GgufWriter& Array(std::string_view key, uint32_t type, uint64_t count, std::string_view raw) {
    return Key(key, kArray, Raw(type) + Raw(count) + std::string(raw));
  }
  GgufWriter& Strings(std::string_view key, const std::vector<std::string>& values) {
    std::string raw;
    for (const std::string& value : values) raw += Text(value);
    return Array(key, kString, values.size(), raw);
  }

  // `shape` outermost first, as in TensorInfo; placed after the tensors before it.
  GgufWriter& Tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                     std::string_view data) {
    TensorAt(name, shape, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    return *this;
  }
  // A directory entry only, with any offset.
  GgufWriter& TensorAt(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                       uint64_t offset) {
    infos_ += Text(name) + Raw<uint32_t>(static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i > 0; --i) infos_ += Raw(shape[i - 1]);
    infos_ += Raw(type) + Raw(offset);
    ++tensors_;
    return *this;
  }
  GgufWriter& Data(std::string_view data) {
    data_ += data;
    return *this;
  }

  GgufWriter& Alignment(uint32_t alignment) {
    alignment_ = alignment;
    return Uint32("general.alignment", alignment);
  }
  // What the header says instead of the truth.
  GgufWriter& Magic(std::string magic) {
    magic_ = std::move(magic);
    return *this;
  }
  GgufWriter& Version(uint32_t version) {
    version_ = version;
    return *this;
  }
  GgufWriter& Counts(uint64_t tensors, uint64_t keys) {
    tensors_ = tensors;
    keys_ = keys;
    return *this;
  }

  std::string Bytes() const {
    std::string out = magic_ + Raw(version_) + Raw(tensors_) + Raw(keys_) + pairs_ + infos_;
    if (!data_.empty()) out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_);
    return out + data_;
  }

 private:
  std::string magic_ = "GGUF", pairs_, infos_, data_;
  uint32_t version_ = 3;
  uint64_t tensors_ = 0, keys_ = 0;
  size_t alignment_ = 32;
};

}  // namespace ashlar::testing_support

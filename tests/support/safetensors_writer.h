// Builds safetensors bytes, right ones and wrong ones alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::testing_support {

class SafetensorsWriter {
 public:
  // Any header text before any data.
  static std::string File(std::string_view header, std::string_view data) {
    uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) +
           std::string(header) + std::string(data);
  }

  SafetensorsWriter& Tensor(std::string_view name, std::string_view dtype,
                            const std::vector<int64_t>& shape, std::string_view data) {
    return Entry(name, dtype, shape, data_.size(), data_.size() + data.size()).Data(data);
  }
  // A header entry only, with any offsets.
  SafetensorsWriter& Entry(std::string_view name, std::string_view dtype,
                           const std::vector<int64_t>& shape, uint64_t begin, uint64_t end) {
    std::string extents;
    for (int64_t extent : shape) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    return Raw("\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) +
               "\",\"shape\":[" + extents + "],\"data_offsets\":[" + std::to_string(begin) + "," +
               std::to_string(end) + "]}");
  }
  SafetensorsWriter& Data(std::string_view data) {
    data_ += data;
    return *this;
  }
  // One member of the header object as text.
  SafetensorsWriter& Raw(std::string_view member) {
    header_ += (header_.empty() ? "" : ",") + std::string(member);
    return *this;
  }

  std::string Bytes() const { return File("{" + header_ + "}", data_); }

 private:
  std::string header_, data_;
};

}  // namespace ashlar::testing_support

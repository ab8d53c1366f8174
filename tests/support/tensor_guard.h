// Arrays in device memory between guard zones, so that a kernel that strays is seen: writes change
// a zone, reads bring in NaNs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "device/device.h"

namespace ashlar::testing {

inline constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

template <class T>
class Guarded {
 public:
  // A copy of `values`. Half of the arrays (`back_guard` false) end where their allocation ends,
  // where the address sanitizer sees what a guard zone cannot: reads.
  Guarded(const Device& device, std::vector<T> values, bool back_guard = true)
      : device_(device), count_(values.size()), back_(back_guard ? kGuardBytes : 0) {
    std::vector<std::byte> bytes(kGuardBytes + count_ * sizeof(T) + back_, std::byte{0xff});
    if (count_ > 0) std::memcpy(bytes.data() + kGuardBytes, values.data(), count_ * sizeof(T));
    buffer_ = device.Alloc(static_cast<int64_t>(bytes.size())).value();
    (void)device.CopyIn(buffer_.data(), bytes).value();
  }

  T* data() const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(buffer_.data()) + kGuardBytes);
  }
  size_t size() const { return count_; }

  // The values now; fails the test when a guard zone changed.
  std::vector<T> Read(const char* name) const {
    std::vector<std::byte> bytes(kGuardBytes + count_ * sizeof(T) + back_);
    (void)device_.Sync().value();
    (void)device_.CopyOut(bytes, buffer_.data()).value();
    const auto written = [](std::byte byte) { return byte != std::byte{0xff}; };
    const auto front = bytes.begin() + kGuardBytes;
    const auto back = front + static_cast<int64_t>(count_ * sizeof(T));
    auto at = std::find_if(bytes.begin(), front, written);
    if (at == front) at = std::find_if(back, bytes.end(), written);
    if (at != bytes.end()) {
      ADD_FAILURE() << name << ": byte " << at - front << " was written; the array has "
                    << count_ * sizeof(T) << " bytes";
    }
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), bytes.data() + kGuardBytes, count_ * sizeof(T));
    return values;
  }

 private:
  // Keeps the array aligned as its allocation; all bits set is a NaN in every float type and -1 in
  // every integer type.
  static constexpr size_t kGuardBytes = 64;

  const Device& device_;
  size_t count_;
  size_t back_;
  Buffer buffer_;
};

template <class T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace ashlar::testing

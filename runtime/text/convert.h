// What crosses to the Rust library and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/rust/ashlar_text.h"

namespace ashlar {

inline ashlar_bytes Borrow(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view View(ashlar_bytes bytes) { return {bytes.data, bytes.size}; }

// Takes over and frees `error`.
inline Problem TakeProblem(err_fault* error) {
  auto part = [error](int index) { return std::string(View(err_part(error, index))); };
  Problem problem{part(ERR_PLACE), part(ERR_FOUND), part(ERR_ALLOWED), part(ERR_NEXT)};
  err_free(error);
  return problem;
}

// Takes over and frees `buffer`.
inline std::string TakeString(ashlar_buffer buffer) {
  std::string text(static_cast<const char*>(buffer.data), buffer.size);
  ashlar_buffer_free(buffer);
  return text;
}

}  // namespace ashlar

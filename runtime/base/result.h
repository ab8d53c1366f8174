// Result<T>: a value, or the problems that kept it from being made. For what others can cause; see
// check.h for the rest.
#pragma once

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/problem.h"

namespace ashlar {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Problem problem) : state_(Problems{std::move(problem)}) {}
  Result(Problems problems) : state_(std::move(problems)) {
    Check(!this->problems().empty(), "a failed Result states at least one problem");
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  T& value() & { return Checked(*this); }
  const T& value() const& { return Checked(*this); }
  T&& value() && { return std::move(Checked(*this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Only when !ok().
  const Problems& problems() const { return std::get<Problems>(state_); }

 private:
  template <class Self>
  static auto& Checked(Self& self) {
    if (!self.ok()) Fail("Result::value", Text(self.problems()));
    return std::get<T>(self.state_);
  }

  std::variant<T, Problems> state_;
};

struct Done {};  // Result<Done>: an action that yields nothing but may fail
using Status = Result<Done>;

}  // namespace ashlar

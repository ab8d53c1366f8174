// A vendor's shared library, opened at run time: ashlar links none. It stays open, for these
// libraries do not survive being closed; open it in a child process that ends.
#pragma once

#include <string>

namespace ashlar {

class VendorLibrary {
 public:
  explicit VendorLibrary(const std::string& name);

  bool loaded() const { return handle_ != nullptr; }
  bool missing() const { return missing_; }            // there is no such file
  const std::string& error() const { return error_; }  // the loader's line when it is not loaded

  // Null when the library has no such symbol, or is not loaded.
  template <class Function>
  Function* Find(const char* symbol) const {
    return reinterpret_cast<Function*>(Symbol(symbol));
  }

 private:
  void* Symbol(const char* symbol) const;

  void* handle_ = nullptr;
  bool missing_ = false;
  std::string error_;
};

}  // namespace ashlar

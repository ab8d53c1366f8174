#include "probe/vendor_library.h"

#include <dlfcn.h>

#include "probe/root_files.h"

namespace ashlar {

VendorLibrary::VendorLibrary(const std::string& name)
    : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* error = dlerror();
  error_ = PlainText(error == nullptr ? name + ": cannot be loaded" : error);
  // A file of that name which needs another one that is missing is a broken installation.
  missing_ = error_.starts_with(name + ": cannot open shared object file: No such file");
}

void* VendorLibrary::Symbol(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

}  // namespace ashlar

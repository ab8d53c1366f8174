// Opens a stub library of the vendors and hands out its state, for a test to set.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/check.h"
#include "probe/stubs/stubs.h"

namespace ashlar {

inline std::string StubPath(const std::string& name) {
  return ASHLAR_BUILD_DIR "/lib/stubs/" + name + ".so";
}

// Stays open for the life of the test program.
template <class State>
State& StubState(const std::string& library, const char* symbol) {
  void* handle = dlopen(StubPath(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  Check(handle != nullptr, "the stub library is built");
  return *static_cast<State*>(dlsym(handle, symbol));
}

}  // namespace ashlar

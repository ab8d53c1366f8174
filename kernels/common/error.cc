#include "common/error.h"

#include "ashlar_plugin.h"

namespace ashlar {
namespace {

thread_local std::string last_error;

}  // namespace

int Failed(const std::string& line) {
  last_error = line;
  return ASHLAR_FAILED;
}

const char* LastError() { return last_error.c_str(); }

}  // namespace ashlar

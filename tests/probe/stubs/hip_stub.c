/* Stands in for libamdhip64.so. */
#include <string.h>
#include <unistd.h>

#include "stubs.h"

stub_hip stub_hip_state;

enum { kSuccess = 0, kInvalidValue = 1 };

int hipInit(unsigned flags) {
  (void)flags;
  while (stub_hip_state.init_hangs) pause();
  return stub_hip_state.init_code;
}

int hipGetDeviceCount(int* count) {
  *count = stub_hip_state.count_code == kSuccess ? stub_hip_state.count : 2;
  return stub_hip_state.count_code;
}

int hipDeviceGetPCIBusId(char* text, int length, int device) {
  size_t size = sizeof stub_hip_state.pci[0];
  if ((size_t)length < size) size = (size_t)length;
  memcpy(text, stub_hip_state.pci[device & 3], size);
  return stub_hip_state.pci_fails ? kInvalidValue : kSuccess;
}

int hipRuntimeGetVersion(int* version) {
  *version = stub_hip_state.version;
  return kSuccess;
}

const char* hipGetErrorName(int code) { return code == 101 ? "hipErrorInvalidDevice" : NULL; }

/* Stands in for libcuda.so.1. */
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "stubs.h"

stub_cuda stub_cuda_state;

enum { kSuccess = 0, kInvalidDevice = 101 };

static const stub_cuda_device* At(int device) { return &stub_cuda_state.devices[device & 3]; }

int cuInit(unsigned flags) {
  (void)flags;
  while (stub_cuda_state.init_hangs) pause();
  if (stub_cuda_state.init_crashes) raise(SIGKILL);
  return stub_cuda_state.init_code;
}

int cuDriverGetVersion(int* version) {
  *version = stub_cuda_state.version;
  return kSuccess;
}

#ifndef STUB_WITHOUT_COUNT
int cuDeviceGetCount(int* count) {
  *count = stub_cuda_state.count_code == kSuccess ? stub_cuda_state.count : 3;
  return stub_cuda_state.count_code;
}
#endif

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return At(ordinal)->get_fails ? kInvalidDevice : kSuccess;
}

int cuDeviceGetName(char* name, int length, int device) {
  size_t size = sizeof At(device)->name;
  if ((size_t)length < size) size = (size_t)length;
  memcpy(name, At(device)->name, size);
  if (!At(device)->name_fails) return kSuccess;
  memset(name, 'x', size);
  return kInvalidDevice;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = At(device)->memory_fails ? 12345 : At(device)->memory;
  return At(device)->memory_fails ? kInvalidDevice : kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const stub_cuda_device* at = At(device);
  const int major = 75, minor = 76, units = 16, integrated = 18;
  *value = attribute == major        ? at->major
           : attribute == minor      ? at->minor
           : attribute == units      ? at->units
           : attribute == integrated ? at->integrated
                                     : INT_MIN;
  if (!at->capability_fails) return kSuccess;
  *value = 9;
  return kInvalidDevice;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  memcpy(uuid, At(device)->uuid, 16);
  if (!At(device)->uuid_fails) return kSuccess;
  memset(uuid, 0xee, 16);
  return kInvalidDevice;
}

int cuGetErrorName(int code, const char** name) {
  *name = code == 100   ? "CUDA_ERROR_NO_DEVICE"
          : code == 101 ? "CUDA_ERROR_INVALID_DEVICE"
          : code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY"
                        : (const char*)16;
  return *name == (const char*)16 ? 1 : kSuccess;
}

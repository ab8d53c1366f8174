/* Stands in for libnvidia-ml.so.1. A handle is the address of a GPU's state. */
#include <stdint.h>
#include <string.h>

#include "stubs.h"

stub_nvml stub_nvml_state;

enum { kSuccess = 0, kNotSupported = 3, kNotFound = 6 };

int nvmlInit_v2(void) { return stub_nvml_state.init_code; }

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  size_t size = sizeof stub_nvml_state.driver;
  memcpy(version, stub_nvml_state.driver, length < size ? length : size);
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = stub_nvml_state.count;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, const stub_nvml_gpu** gpu) {
  *gpu = &stub_nvml_state.gpus[index & 3];
  return kSuccess;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, const stub_nvml_gpu** gpu) {
  *gpu = (const stub_nvml_gpu*)(uintptr_t)16;
  for (int i = 0; i < 4; ++i) {
    if (strcmp(uuid, stub_nvml_state.gpus[i].uuid) != 0) continue;
    *gpu = &stub_nvml_state.gpus[i];
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetMemoryInfo(const stub_nvml_gpu* gpu, unsigned long long* total_free_used) {
  total_free_used[0] = ~0ull;
  total_free_used[1] = gpu->memory_fails ? 1 : gpu->free_bytes;
  total_free_used[2] = 0;
  return gpu->memory_fails ? kNotSupported : kSuccess;
}

int nvmlDeviceGetTotalEccErrors(const stub_nvml_gpu* gpu, int type, int counter,
                                unsigned long long* count) {
  const int uncorrected = 1, since_load = 0;
  *count = type == uncorrected && counter == since_load ? gpu->uncorrected_errors : 0;
  if (!gpu->ecc_fails) return kSuccess;
  *count = 77;
  return kNotSupported;
}

int nvmlDeviceGetRetiredPagesPendingStatus(const stub_nvml_gpu* gpu, unsigned* pending) {
  *pending = (unsigned)gpu->pages_pending;
  if (!gpu->ecc_fails) return kSuccess;
  *pending = 1;
  return kNotSupported;
}

int nvmlDeviceGetRemappedRows(const stub_nvml_gpu* gpu, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = 5;
  *uncorrected = 5;
  *pending = (unsigned)gpu->rows_pending;
  *failed = (unsigned)gpu->row_failed;
  if (!gpu->ecc_fails) return kSuccess;
  *pending = *failed = 1;
  return kNotSupported;
}

int nvmlDeviceGetMigMode(const stub_nvml_gpu* gpu, unsigned* current, unsigned* pending) {
  *current = (unsigned)gpu->mig;
  *pending = 0;
  return kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(const stub_nvml_gpu* gpu, unsigned* count) {
  *count = gpu->instances < 0 ? ~0u : 7;
  return kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(const stub_nvml_gpu* gpu, unsigned index,
                                        const stub_nvml_gpu** instance) {
  *instance = gpu;
  return gpu->instances < 0 || (int)index < gpu->instances ? kSuccess : kNotFound;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const stub_nvml_gpu* gpu,
                                                 const stub_nvml_gpu** whole) {
  *whole = gpu->parent > 0 ? &stub_nvml_state.gpus[gpu->parent - 1] : (const stub_nvml_gpu*)16;
  return gpu->parent > 0 ? kSuccess : kNotSupported;
}

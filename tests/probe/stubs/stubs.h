/* What the stub libraries of the vendors answer. A test opens the library, finds its state by name
 * and sets it; whoever opens the library in the same process or a child of it meets that state. */
#ifndef ASHLAR_TESTS_PROBE_STUBS_H_
#define ASHLAR_TESTS_PROBE_STUBS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that fail write rubbish first: callers must not read it. */
typedef struct stub_cuda_device {
  char name[256]; /* all 256 bytes are handed out, terminated or not */
  int major, minor, units, integrated;
  size_t memory;
  unsigned char uuid[16];
  int get_fails, name_fails, capability_fails, memory_fails, uuid_fails;
} stub_cuda_device;

typedef struct stub_cuda {
  int init_code;
  int init_hangs, init_crashes;
  int version;
  int count_code, count;
  stub_cuda_device devices[4]; /* device i is devices[i % 4] */
} stub_cuda;
#define STUB_CUDA_STATE "stub_cuda_state"

typedef struct stub_nvml_gpu {
  char uuid[64]; /* "GPU-...", "MIG-..." for a visible instance */
  int memory_fails;
  unsigned long long free_bytes;
  int ecc_fails;
  unsigned long long uncorrected_errors;
  int pages_pending, rows_pending, row_failed;
  int mig, instances, parent; /* parent: 1 + index of the GPU of this instance */
} stub_nvml_gpu;

typedef struct stub_nvml {
  int init_code;
  char driver[80];
  unsigned count; /* GPUs that enumeration shows: the first ones of `gpus` */
  stub_nvml_gpu gpus[4];
} stub_nvml;
#define STUB_NVML_STATE "stub_nvml_state"

typedef struct stub_hip {
  int init_code, init_hangs;
  int count_code, count;
  int version;
  int pci_fails;
  char pci[4][64]; /* of device i: pci[i % 4] */
} stub_hip;
#define STUB_HIP_STATE "stub_hip_state"

#ifdef __cplusplus
}
#endif

#endif

/* Notes when each kernel of a process ran, those inside captured graphs too; kernel_times.py sums
   them up by step. A library that the driver loads (libcupti is part of the CUDA Toolkit):

     gcc -O2 -shared -fPIC -I$CUDA/include -I$CUDA/extras/CUPTI/include \
         tests/gpu/kernel_times.c -L$CUDA/extras/CUPTI/lib64 -lcupti -o kernel_times.so
     CUDA_INJECTION64_PATH=$PWD/kernel_times.so KERNEL_TIMES=times.tsv PROGRAM...
     python3 tests/gpu/kernel_times.py times.tsv

   Lines of KERNEL_TIMES: begin and end in nanoseconds, blocks in x and y, name. */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

static FILE* out;

static void GiveRoom(uint8_t** room, size_t* bytes, size_t* most_records) {
  *bytes = 8 << 20;
  *room = aligned_alloc(64, *bytes);
  *most_records = 0; /* as many as fit */
}

static void TakeRecords(CUcontext context, uint32_t stream, uint8_t* room, size_t bytes,
                        size_t filled) {
  (void)context, (void)stream, (void)bytes;
  CUpti_Activity* record = NULL;
  while (filled > 0 && cuptiActivityGetNextRecord(room, filled, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const CUpti_ActivityKernel9* kernel = (const CUpti_ActivityKernel9*)record;
    fprintf(out, "%llu\t%llu\t%d\t%d\t%.90s\n", (unsigned long long)kernel->start,
            (unsigned long long)kernel->end, kernel->gridX, kernel->gridY, kernel->name);
  }
  free(room);
}

static void End(void) {
  cuptiActivityFlushAll(1);
  fclose(out);
}

/* The driver's name for what it calls. */
int InitializeInjection(void) {
  const char* path = getenv("KERNEL_TIMES");
  out = path == NULL ? NULL : fopen(path, "w");
  if (out == NULL) {
    fprintf(stderr, "kernel_times: KERNEL_TIMES names no file that can be written\n");
    return 0;
  }
  if (cuptiActivityRegisterCallbacks(GiveRoom, TakeRecords) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
    fprintf(stderr, "kernel_times: no kernels are noted: CUPTI refuses\n");
    return 0;
  }
  atexit(End);
  return 1;
}

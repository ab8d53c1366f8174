// Where Hopper's kernels run, and barriers in shared memory that count arrivals and bytes. Only
// code between ASHLAR_HOPPER, which stands for the host executor too, may use the barriers.
#pragma once

#include "gpu/gpu.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(ASHLAR_GPU_HOST)
#define ASHLAR_HOPPER 1
#endif

namespace ashlar::hopper {

// Whether this binary has the kernels' code for the device.
bool RunsOn(int device);

#if defined(ASHLAR_HOPPER)

// A phase ends when `arrivals` have arrived and all bytes that were expected are there; phases have
// parity 0, 1, 0...
using Barrier = uint64_t;

#if defined(ASHLAR_GPU_HOST)

inline void InitBarrier(Barrier* barrier, int arrivals) { gpu::InitBarrier(barrier, arrivals); }
inline void FenceBarriers() {}
inline void ArriveExpecting(Barrier* barrier, int bytes) { gpu::ArriveExpecting(barrier, bytes); }
inline void ArriveWithCopies(Barrier* barrier) { gpu::ArriveWithCopies(barrier); }
inline void Wait(Barrier* barrier, int parity) { gpu::WaitPhase(barrier, parity); }

#else

GPU_DEVICE void InitBarrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gpu::SharedAddress(barrier)),
               "r"(arrivals)
               : "memory");
}
// Shows initialised barriers to the copy engine and, once the cluster has met, to its blocks.
GPU_DEVICE void FenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
GPU_DEVICE void Arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(gpu::SharedAddress(barrier))
               : "memory");
}
GPU_DEVICE void ArriveExpecting(Barrier* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gpu::SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}
// Arrives once this thread's gpu::CopyToShared so far are there, of groups or none.
GPU_DEVICE void ArriveWithCopies(Barrier* barrier) {
  asm volatile(
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(gpu::SharedAddress(barrier))
      : "memory");
}
// Returns when the phase of this parity has ended.
GPU_DEVICE void Wait(Barrier* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(gpu::SharedAddress(barrier)),
      "r"(parity)
      : "memory");
}

#endif
#endif

}  // namespace ashlar::hopper

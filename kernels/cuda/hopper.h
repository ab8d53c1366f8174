// What Hopper (sm_90a) alone has, each instruction behind one small function: the bulk tensor copy
// engine, registers handed from warps to warps. Only its own code between ASHLAR_HOPPER may call
// them.
#pragma once

#include <cuda.h>

#include "hopper_barrier.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

// Orders this thread's ordinary writes to shared memory before later reads of the tensor cores and
// the copy engine.
GPU_DEVICE void FenceShared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

GPU_DEVICE void PrefetchMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// One box of a tensor map into shared memory; its bytes count on `barrier`.
GPU_DEVICE void CopyBox(void* to, const CUtensorMap* map, Barrier* barrier, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4}], [%2];" ::"r"(gpu::SharedAddress(to)),
      "l"(map), "r"(gpu::SharedAddress(barrier)), "r"(c0), "r"(c1)
      : "memory");
}
GPU_DEVICE void CopyBox(void* to, const CUtensorMap* map, Barrier* barrier, int c0, int c1, int c2,
                        int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(gpu::SharedAddress(to)),
      "l"(map), "r"(gpu::SharedAddress(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
GPU_DEVICE void CopyBox(void* to, const CUtensorMap* map, Barrier* barrier, int c0, int c1, int c2,
                        int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(gpu::SharedAddress(to)),
      "l"(map), "r"(gpu::SharedAddress(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

// Registers of each thread of this warpgroup from here on.
template <int kRegisters>
GPU_DEVICE void GiveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
GPU_DEVICE void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Accesses of what other blocks of the device access meanwhile, each word for itself.
GPU_DEVICE float4 LoadFresh(const float4* from) {
  float4 v;
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
GPU_DEVICE void StoreFresh(float4* to, float4 v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

// Barrier `id` of `threads`, of which some only arrive.
GPU_DEVICE void SyncNamed(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
GPU_DEVICE void ArriveNamed(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ashlar::hopper

#endif

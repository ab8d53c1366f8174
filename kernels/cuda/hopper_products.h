// Matrix products of a warpgroup (wgmma): D[64, n] += A[64, 16] * B[16, n] in float32. They run on
// while the threads do: between Begin and a Wait that covers them nobody touches D or A.
// A thread of lane l in warp w holds rows 16w + l/4 (+8) of D: element 4i + 2h + e is row +8h,
// column 8i + 2 (l % 4) + e.
#pragma once

#include "gpu/number.h"
#include "hopper.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

using gpu_kernels::BF16;
using gpu_kernels::F16;
using gpu_kernels::F8;

// An operand in shared memory whose rows of 128 bytes are swizzled as the copy engine does it, in
// groups of 8 rows that begin at multiples of 1024 bytes. `group_bytes`: from 8 rows to the next 8.
// `column_bytes`: from 64 columns to the next 64 where the columns are D's, otherwise unused.
GPU_DEVICE uint64_t Operand(const void* shared, int group_bytes, int column_bytes) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  const auto field = [](uint32_t bytes) { return uint64_t{(bytes & 0x3ffffu) >> 4}; };
  return kSwizzle128 | field(group_bytes) << 32 | field(column_bytes) << 16 |
         field(gpu::SharedAddress(shared));
}
// The same `bytes` further on.
GPU_DEVICE uint64_t Advance(uint64_t operand, int bytes) { return operand + (bytes >> 4); }

// Values written by this thread (registers of D and A) are there for the products that follow.
GPU_DEVICE void Begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
GPU_DEVICE void Commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Keeps the compiler from moving uses of D across a Begin or Wait.
template <int kCount>
GPU_DEVICE void Pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
// Returns when all but the last kLeft committed groups are done.
template <int kLeft>
GPU_DEVICE void WaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

template <int kColumns>
struct Product;

#define ASHLAR_LIST_8 "%0, %1, %2, %3"
#define ASHLAR_LIST_16 ASHLAR_LIST_8 ", %4, %5, %6, %7"
#define ASHLAR_LIST_32 ASHLAR_LIST_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define ASHLAR_LIST_64                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ASHLAR_LIST_128                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define ASHLAR_LIST_256                                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define ASHLAR_OUT_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ASHLAR_EIGHT(d, i) ASHLAR_OUT_4(d, i), ASHLAR_OUT_4(d, i + 4)
#define ASHLAR_OUT_8(d) ASHLAR_OUT_4(d, 0)
#define ASHLAR_OUT_16(d) ASHLAR_EIGHT(d, 0)
#define ASHLAR_OUT_32(d) ASHLAR_OUT_16(d), ASHLAR_EIGHT(d, 8)
#define ASHLAR_OUT_64(d) ASHLAR_OUT_32(d), ASHLAR_EIGHT(d, 16), ASHLAR_EIGHT(d, 24)
#define ASHLAR_OUT_128(d)                                                          \
  ASHLAR_OUT_64(d), ASHLAR_EIGHT(d, 32), ASHLAR_EIGHT(d, 40), ASHLAR_EIGHT(d, 48), \
      ASHLAR_EIGHT(d, 56)
#define ASHLAR_OUT_256(d)                                                                   \
  ASHLAR_OUT_128(d), ASHLAR_EIGHT(d, 64), ASHLAR_EIGHT(d, 72), ASHLAR_EIGHT(d, 80),         \
      ASHLAR_EIGHT(d, 88), ASHLAR_EIGHT(d, 96), ASHLAR_EIGHT(d, 104), ASHLAR_EIGHT(d, 112), \
      ASHLAR_EIGHT(d, 120)

// A and B from shared memory, both with their 32 bytes of k in one row; `add` 0 sets D instead.
#define ASHLAR_PRODUCT_SHARED(N, K, TYPE, A, B, ADD, ORDERS)                             \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #ADD                             \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." TYPE "." TYPE \
               " {" ASHLAR_LIST_##N "}, %" #A ", %" #B ", add, 1, 1" ORDERS ";\n}\n"     \
               : ASHLAR_OUT_##N(d)                                                       \
               : "l"(a), "l"(b), "r"(add))
// A from registers, as D of an earlier product holds it, in pairs; B with its n in one row.
#define ASHLAR_PRODUCT_REGISTERS(N, TYPE, A0, A1, A2, A3, B)                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE          \
               " {" ASHLAR_LIST_##N "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B \
                                    ", 1, 1, 1, 1;\n"                                   \
               : ASHLAR_OUT_##N(d)                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

#define ASHLAR_PRODUCT(N, I0, I1, I2, I3, I4)                                            \
  template <>                                                                            \
  struct Product<N> {                                                                    \
    template <class T>                                                                   \
    GPU_DEVICE static void Shared(float (&d)[N / 2], uint64_t a, uint64_t b, int add) {  \
      if constexpr (std::is_same_v<T, F8>) {                                             \
        ASHLAR_PRODUCT_SHARED(N, 32, "e4m3", I0, I1, I2, "");                            \
      } else if constexpr (std::is_same_v<T, BF16>) {                                    \
        ASHLAR_PRODUCT_SHARED(N, 16, "bf16", I0, I1, I2, ", 0, 0");                      \
      } else {                                                                           \
        ASHLAR_PRODUCT_SHARED(N, 16, "f16", I0, I1, I2, ", 0, 0");                       \
      }                                                                                  \
    }                                                                                    \
    template <class T>                                                                   \
    GPU_DEVICE static void Registers(float (&d)[N / 2], const uint32_t* a, uint64_t b) { \
      if constexpr (std::is_same_v<T, BF16>) {                                           \
        ASHLAR_PRODUCT_REGISTERS(N, "bf16", I0, I1, I2, I3, I4);                         \
      } else {                                                                           \
        ASHLAR_PRODUCT_REGISTERS(N, "f16", I0, I1, I2, I3, I4);                          \
      }                                                                                  \
    }                                                                                    \
  }

ASHLAR_PRODUCT(8, 4, 5, 6, 7, 8);
ASHLAR_PRODUCT(16, 8, 9, 10, 11, 12);
ASHLAR_PRODUCT(32, 16, 17, 18, 19, 20);
ASHLAR_PRODUCT(64, 32, 33, 34, 35, 36);
ASHLAR_PRODUCT(128, 64, 65, 66, 67, 68);
ASHLAR_PRODUCT(256, 128, 129, 130, 131, 132);

// Two values as one operand word, the first in the low half.
template <class T>
GPU_DEVICE uint32_t Pack(float low, float high) {
  uint32_t word;
  if constexpr (std::is_same_v<T, BF16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
}

}  // namespace ashlar::hopper

#endif

// The words that kernels/gpu is written in, and the one header that knows a vendor's names. Three
// back ends build the same source: nvcc (ASHLAR_GPU_CUDA), hipcc or clang (ASHLAR_GPU_HIP) and a
// host executor (ASHLAR_GPU_HOST), which runs kernels as fibers on the CPU. Masks of lanes are 64
// bits everywhere; the wave's width is a template parameter `kWave` of each kernel and the lanes of
// a wave are consecutive threads.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(ASHLAR_GPU_HOST)
#include "host_backend.h"
#elif defined(ASHLAR_GPU_HIP)
#include <hip/hip_runtime.h>
#define ASHLAR_VENDOR(name) hip##name
using DeviceProperties = hipDeviceProp_t;
#else
#include <cuda_runtime.h>
#define ASHLAR_VENDOR(name) cuda##name
using DeviceProperties = cudaDeviceProp;
#endif

#if !defined(ASHLAR_GPU_HOST)

// While code of a device is compiled: the instruction set that inline assembly or built-ins may
// use.
#if defined(__CUDA_ARCH__)
#define GPU_PTX 1
#elif defined(__HIP_DEVICE_COMPILE__)
#define GPU_GCN 1
#endif

#define GPU_KERNEL __global__
// Threads of a block and, optionally, blocks that a multiprocessor should hold: NVIDIA's alone.
#if defined(ASHLAR_GPU_HIP)
#define GPU_BOUNDS(threads, ...) __launch_bounds__(threads)
#else
#define GPU_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
#endif
// Of a kernel's parameter that is read where the launch left it: NVIDIA's alone.
#define GPU_GRID_CONSTANT __grid_constant__
#define GPU_DEVICE __device__ __forceinline__
// Of what is rarely needed: kept out of the way of the code around its calls.
#if defined(ASHLAR_GPU_HIP)
#define GPU_APART GPU_DEVICE
#else
#define GPU_APART __device__ __noinline__
#endif
#define GPU_BOTH __host__ __device__ __forceinline__

namespace gpu {

using Stream = ASHLAR_VENDOR(Stream_t);
using Event = ASHLAR_VENDOR(Event_t);
using Graph = ASHLAR_VENDOR(GraphExec_t);
using Error = ASHLAR_VENDOR(Error_t);

constexpr Error kSuccess = ASHLAR_VENDOR(Success);
constexpr Error kNoDevice = ASHLAR_VENDOR(ErrorNoDevice);
constexpr Error kOldDriver = ASHLAR_VENDOR(ErrorInsufficientDriver);
constexpr Error kNoMemory = ASHLAR_VENDOR(ErrorMemoryAllocation);

inline const char* Text(Error error) { return ASHLAR_VENDOR(GetErrorString)(error); }
// The error of the launch just made, which is then forgotten.
inline Error LaunchError() { return ASHLAR_VENDOR(GetLastError)(); }

struct Facts {
  int multiprocessors = 0, wave = 0;
  int64_t shared_bytes = 0;  // that a block may have
  char name[256] = {};
};

inline Error CountDevices(int* count) { return ASHLAR_VENDOR(GetDeviceCount)(count); }
inline Error UseDevice(int index) { return ASHLAR_VENDOR(SetDevice)(index); }
inline Error ReadFacts(int index, Facts* facts) {
  DeviceProperties properties;
  const Error error = ASHLAR_VENDOR(GetDeviceProperties)(&properties, index);
  if (error != kSuccess) return error;
  facts->multiprocessors = properties.multiProcessorCount;
  facts->wave = properties.warpSize;
#if defined(ASHLAR_GPU_HIP)
  facts->shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlock);
#else
  facts->shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
#endif
  for (size_t i = 0; i + 1 < sizeof facts->name && properties.name[i] != 0; ++i) {
    facts->name[i] = properties.name[i];
  }
  return kSuccess;
}

inline Error Alloc(void** out, size_t bytes) { return ASHLAR_VENDOR(Malloc)(out, bytes); }
inline Error Free(void* memory) { return ASHLAR_VENDOR(Free)(memory); }
// Host memory that copies go to and from without a detour.
inline Error AllocPinned(void** out, size_t bytes) {
#if defined(ASHLAR_GPU_HIP)
  return hipHostMalloc(out, bytes, hipHostMallocDefault);
#else
  return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
#endif
}
inline Error FreePinned(void* memory) {
#if defined(ASHLAR_GPU_HIP)
  return hipHostFree(memory);
#else
  return cudaFreeHost(memory);
#endif
}
inline Error Zero(void* memory, size_t bytes, Stream stream) {
  return ASHLAR_VENDOR(MemsetAsync)(memory, 0, bytes, stream);
}
inline Error CopyIn(void* to, const void* from, size_t bytes, Stream stream) {
  return ASHLAR_VENDOR(MemcpyAsync)(to, from, bytes, ASHLAR_VENDOR(MemcpyHostToDevice), stream);
}
inline Error CopyOut(void* to, const void* from, size_t bytes, Stream stream) {
  return ASHLAR_VENDOR(MemcpyAsync)(to, from, bytes, ASHLAR_VENDOR(MemcpyDeviceToHost), stream);
}
// Its work waits for what was put on the null stream before.
inline Error CreateStream(Stream* out) { return ASHLAR_VENDOR(StreamCreate)(out); }
inline Error DestroyStream(Stream stream) { return ASHLAR_VENDOR(StreamDestroy)(stream); }
inline Error Sync(Stream stream) { return ASHLAR_VENDOR(StreamSynchronize)(stream); }
inline Error CreateEvent(Event* out) { return ASHLAR_VENDOR(EventCreate)(out); }
inline Error DestroyEvent(Event event) { return ASHLAR_VENDOR(EventDestroy)(event); }
inline Error Record(Event event, Stream stream) {
  return ASHLAR_VENDOR(EventRecord)(event, stream);
}
inline Error Wait(Event event) { return ASHLAR_VENDOR(EventSynchronize)(event); }
// Between two events that have been waited for.
inline Error Elapsed(float* milliseconds, Event from, Event to) {
  return ASHLAR_VENDOR(EventElapsedTime)(milliseconds, from, to);
}

inline Error BeginCapture(Stream stream) {
  return ASHLAR_VENDOR(StreamBeginCapture)(stream, ASHLAR_VENDOR(StreamCaptureModeThreadLocal));
}
inline bool IsCaptured(Stream stream) {
  ASHLAR_VENDOR(StreamCaptureStatus) status;
  return ASHLAR_VENDOR(StreamIsCapturing)(stream, &status) != kSuccess ||
         status != ASHLAR_VENDOR(StreamCaptureStatusNone);
}
inline Error EndCapture(Stream stream, Graph* out) {
  ASHLAR_VENDOR(Graph_t) graph = nullptr;
  Error error = ASHLAR_VENDOR(StreamEndCapture)(stream, &graph);
  if (error != kSuccess) return error;
#if defined(ASHLAR_GPU_HIP)
  error = hipGraphInstantiate(out, graph, nullptr, nullptr, 0);
#else
  error = cudaGraphInstantiate(out, graph, 0);
#endif
  (void)ASHLAR_VENDOR(GraphDestroy)(graph);
  return error;
}
inline Error LaunchGraph(Graph graph, Stream stream) {
  return ASHLAR_VENDOR(GraphLaunch)(graph, stream);
}
inline Error DestroyGraph(Graph graph) { return ASHLAR_VENDOR(GraphExecDestroy)(graph); }

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// Whether a launch may begin before the one before it has ended: NVIDIA's devices from Hopper on.
inline bool LaunchesOverlap() {
#if defined(ASHLAR_GPU_HIP)
  return false;
#else
  static const bool overlap = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major >= 9;
  }();
  return overlap;
#endif
}

// Asks for most of a multiprocessor's memory as shared for this kernel. Blocks of kernels that want
// other parts of it shared never meet there; what is not shared is cache.
inline Error PreferShared([[maybe_unused]] const void* kernel) {
#if defined(ASHLAR_GPU_HIP)
  return kSuccess;
#else
  return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                              cudaSharedmemCarveoutMaxShared);
#endif
}

// Prepares a kernel for launches with so much dynamic shared memory; without any, what others share
// is its cache.
inline Error AskForShared(const void* kernel, size_t bytes) {
  if (bytes == 0) return kSuccess;
  const Error error = PreferShared(kernel);
  constexpr size_t kWithoutAsking = 48 << 10;
  if (error != kSuccess || bytes <= kWithoutAsking) return error;
  return ASHLAR_VENDOR(FuncSetAttribute)(
      kernel, ASHLAR_VENDOR(FuncAttributeMaxDynamicSharedMemorySize), static_cast<int>(bytes));
}

// Blocks of `threads` with `shared_bytes` of dynamic shared memory. The kernel may begin while the
// one before it on the stream still runs: see WaitForPrevious.
template <class... Params, class... Args>
Error Launch(Stream stream, Grid grid, unsigned threads, size_t shared_bytes,
             void (*kernel)(Params...), Args... args) {
  const Error asked = AskForShared(reinterpret_cast<const void*>(kernel), shared_bytes);
  if (asked != kSuccess) return asked;
#if defined(ASHLAR_GPU_HIP)
  kernel<<<dim3(grid.x, grid.y, grid.z), threads, shared_bytes, stream>>>(
      static_cast<Params>(args)...);
  return LaunchError();
#else
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = LaunchesOverlap() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
#endif
}

// ---------------------------------------------------------------- inside a kernel

GPU_DEVICE int ThreadX() { return static_cast<int>(threadIdx.x); }
GPU_DEVICE int ThreadsX() { return static_cast<int>(blockDim.x); }
GPU_DEVICE int BlockX() { return static_cast<int>(blockIdx.x); }
GPU_DEVICE int BlockY() { return static_cast<int>(blockIdx.y); }
GPU_DEVICE int BlockZ() { return static_cast<int>(blockIdx.z); }
GPU_DEVICE int GridX() { return static_cast<int>(gridDim.x); }
GPU_DEVICE int GridY() { return static_cast<int>(gridDim.y); }
GPU_DEVICE void SyncBlock() { __syncthreads(); }

// Returns when the kernels before this one on the stream have ended and what they wrote is seen.
// Every thread of every kernel calls it, before it touches anything that a kernel writes, and even
// when it touches nothing: the kernels after it rely on all before having ended. Ahead of it stands
// at most what reads weights, arguments, a step's arrays that come from the host, and entries of
// the cache that earlier steps wrote: between two steps there are copies, which wait for
// everything.
GPU_DEVICE void WaitForPrevious() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
// Lets the next kernel begin beside this one once every block has called it (or ended); that kernel
// waits for this one all the same. Early is best, unless its blocks would take room that this
// kernel's own need.
GPU_DEVICE void ReleaseNext() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

// The block's dynamic shared memory, 16-byte aligned.
GPU_DEVICE char* SharedMemory() {
  extern __shared__ uint4 ashlar_shared[];
  return reinterpret_cast<char*>(ashlar_shared);
}

#if defined(GPU_PTX)
GPU_DEVICE uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
#endif

// The value of the lane whose number differs in the bits of `mask`.
template <int kWave, class T>
GPU_DEVICE T ShuffleXor(T value, int mask) {
#if defined(ASHLAR_GPU_HIP)
  return __shfl_xor(value, mask, kWave);
#else
  static_assert(kWave == 32);
  return __shfl_xor_sync(0xffffffffu, value, mask, kWave);
#endif
}
template <int kWave, class T>
GPU_DEVICE T Shuffle(T value, int lane) {
#if defined(ASHLAR_GPU_HIP)
  return __shfl(value, lane, kWave);
#else
  static_assert(kWave == 32);
  return __shfl_sync(0xffffffffu, value, lane, kWave);
#endif
}

// 2^value; what would be subnormal may come out as zero.
GPU_DEVICE float Exp2(float value) {
#if defined(GPU_PTX)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
#else
  return exp2f(value);
#endif
}

// Within 2^-22 of it, for positive values.
GPU_DEVICE float Reciprocal(float value) {
#if defined(GPU_PTX)
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(value));
  return inverse;
#else
  return 1 / value;
#endif
}
GPU_DEVICE float InverseRoot(float value) {
#if defined(GPU_PTX)
  float inverse;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(value));
  return inverse;
#else
  return 1 / sqrtf(value);
#endif
}

// Adds and returns what was there. Counts among the threads that see `to`: a block or the device.
GPU_DEVICE uint32_t AtomicAdd(uint32_t* to, uint32_t value) { return atomicAdd(to, value); }

// Whether it holds for a lane of the wave.
template <int kWave>
GPU_DEVICE bool Any(bool holds) {
#if defined(ASHLAR_GPU_HIP)
  return __any(holds) != 0;
#else
  return __any_sync(0xffffffffu, holds) != 0;
#endif
}

// Orders the shared memory accesses of a wave's lanes before this against those after it.
template <int kWave>
GPU_DEVICE void SyncWave() {
#if defined(ASHLAR_GPU_HIP)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  static_assert(kWave == 32);
  __syncwarp();
#endif
}

// AtomicAdd in order on the whole device: after this thread's accesses before it and those that a
// SyncBlock showed it, before its accesses after it.
GPU_DEVICE uint32_t AddInOrder(uint32_t* to, uint32_t value) {
#if defined(GPU_PTX)
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;\n"
               : "=r"(before)
               : "l"(to), "r"(value)
               : "memory");
  return before;
#else
  __threadfence();
  const uint32_t before = atomicAdd(to, value);
  __threadfence();
  return before;
#endif
}

// Whether code for waves of this width can run on the target that is compiled for.
template <int kWave>
GPU_DEVICE constexpr bool RunsWave() {
#if defined(__AMDGCN_WAVEFRONT_SIZE)
  return kWave == __AMDGCN_WAVEFRONT_SIZE;
#else
  return kWave == 32;
#endif
}

}  // namespace gpu

#endif  // !ASHLAR_GPU_HOST

namespace gpu {

template <int kValue>
struct Constant {
  constexpr operator int() const { return kValue; }
};

// Calls body(Constant<width>) for a width that this back end has kernels for.
template <class Body>
auto WithWave([[maybe_unused]] int wave, Body body) {
#if defined(ASHLAR_GPU_HIP) || defined(ASHLAR_GPU_HOST)
  if (wave == 64) return body(Constant<64>{});
#endif
  return body(Constant<32>{});
}

// 16 bytes, the widest single access.
struct alignas(16) Vector {
  uint32_t word[4];
};

struct alignas(16) Four {
  float value[4];
};

// Brings what lies there near: the cache of the device, where there is an instruction for it.
GPU_DEVICE void Prefetch([[maybe_unused]] const void* from) {
#if defined(GPU_PTX)
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(from));
#endif
}

// Copies of 16 bytes into shared memory that may run on while the thread does; 16 zeros when not
// `valid`, and then `from` is not read. WaitCopies<n> returns when all but the last n groups of the
// calling thread are done; a SyncBlock then shows them to the others.
GPU_DEVICE void CopyToShared(void* to, const void* from, bool valid) {
#if defined(ASHLAR_GPU_HOST)
  CopyLater(to, from, valid);
#elif defined(GPU_PTX)
  const uint32_t shared = SharedAddress(to);
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared), "l"(from),
               "r"(bytes)
               : "memory");
#else
  *static_cast<Vector*>(to) = valid ? *static_cast<const Vector*>(from) : Vector{};
#endif
}
// The same of what nobody reads again soon: it is the first to make room in the device's cache.
GPU_DEVICE void CopyOnceToShared(void* to, const void* from, bool valid) {
#if defined(GPU_PTX)
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  asm volatile(
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;\n" ::"r"(SharedAddress(to)),
      "l"(from), "r"(valid ? 16 : 0), "l"(policy)
      : "memory");
#else
  CopyToShared(to, from, valid);
#endif
}
GPU_DEVICE void CommitCopies() {
#if defined(ASHLAR_GPU_HOST)
  CloseCopies();
#elif defined(GPU_PTX)
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}
template <int kLeft>
GPU_DEVICE void WaitCopies() {
#if defined(ASHLAR_GPU_HOST)
  FinishCopies(kLeft);
#elif defined(GPU_PTX)
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
#endif
}

#if defined(GPU_PTX)
// Four 8x8 matrices of 16-bit values, transposed: lane l names 16 bytes, row l % 8 of matrix l / 8.
GPU_DEVICE void LoadTransposed(const void* row, uint32_t* to) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(SharedAddress(row)));
}
// Bytes 0, 2, 1, 3 of a word.
GPU_DEVICE uint32_t SwapMiddleBytes(uint32_t word) { return __byte_perm(word, 0, 0x3120); }
#endif

}  // namespace gpu

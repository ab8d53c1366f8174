// The host executor: kernels of kernels/gpu on the CPU, for tests. Each thread of a block is a
// fiber; blocks run one after another on the calling thread, at the launch. A block whose threads
// cannot all reach a barrier aborts the program with a message. Shared memory holds NaNs before a
// block starts, a wave runs as far ahead of the others as barriers let it, and their order changes
// from launch to launch, so that a missing barrier shows. A copy into shared memory leaves NaNs
// there at once and its bytes as late as a wait allows. A thread that ends without having called
// WaitForPrevious aborts the program too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define GPU_KERNEL
#define GPU_BOUNDS(...)
#define GPU_GRID_CONSTANT
#define GPU_DEVICE inline
#define GPU_APART inline
#define GPU_BOTH inline

namespace gpu {

using Stream = void*;
using Event = void*;
using Error = int;
constexpr Error kSuccess = 0;
constexpr Error kNoDevice = 100;
constexpr Error kOldDriver = 35;
constexpr Error kNoMemory = 2;

inline const char* Text(Error error) {
  return error == kSuccess ? "no error" : error == kNoDevice ? "no device" : "out of memory";
}

struct Facts {
  int multiprocessors = 0, wave = 0;
  int64_t shared_bytes = 0;  // that a block may have
  char name[256] = {};
};

inline Error CountDevices(int* count) { return *count = 1, kSuccess; }
inline Error UseDevice(int) { return kSuccess; }
// The width that kernels of this build are run at.
Error ReadFacts(int index, Facts* facts);

inline Error Alloc(void** out, size_t bytes) {
  *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *out == nullptr ? kNoMemory : kSuccess;
}
inline Error Free(void* memory) { return std::free(memory), kSuccess; }
inline Error AllocPinned(void** out, size_t bytes) { return Alloc(out, bytes); }
inline Error FreePinned(void* memory) { return Free(memory); }
inline Error Zero(void* memory, size_t bytes, Stream) {
  if (bytes > 0) std::memset(memory, 0, bytes);
  return kSuccess;
}
inline Error CopyIn(void* to, const void* from, size_t bytes, Stream) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return kSuccess;
}
inline Error CopyOut(void* to, const void* from, size_t bytes, Stream stream) {
  return CopyIn(to, from, bytes, stream);
}
inline Error CreateStream(Stream* out) { return *out = std::malloc(1), kSuccess; }
inline Error DestroyStream(Stream stream) { return std::free(stream), kSuccess; }
inline Error Sync(Stream) { return kSuccess; }
inline Error CreateEvent(Event* out) { return CreateStream(out); }
inline Error DestroyEvent(Event event) { return DestroyStream(event); }
inline Error Record(Event, Stream) { return kSuccess; }
inline bool IsCaptured(Stream) { return false; }
inline Error Wait(Event) { return kSuccess; }

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// Runs body once a thread of every block, neighbouring blocks of a cluster side by side, `together`
// those of a whole row of the grid. 0 < threads <= 1024.
void RunGrid(Grid grid, unsigned threads, size_t shared_bytes, const std::function<void()>& body,
             unsigned cluster = 1, bool together = false);

inline Error PreferShared(const void*) { return kSuccess; }

template <class... Params, class... Args>
Error Launch(Stream, Grid grid, unsigned threads, size_t shared_bytes, void (*kernel)(Params...),
             Args... args) {
  RunGrid(grid, threads, shared_bytes, [&] { kernel(static_cast<Params>(args)...); });
  return kSuccess;
}

// ---------------------------------------------------------------- inside a kernel

struct ThreadState {
  int thread = 0, threads = 0;
  int block_x = 0, block_y = 0, block_z = 0, grid_x = 0, grid_y = 0;
  int rank = 0;       // of the block in its cluster
  int exchanges = 0;  // of this thread so far: which half of its wave's slots comes next
  char* shared = nullptr;
  bool waited = false;  // for the kernels before
};
ThreadState& CurrentThread();

inline int ThreadX() { return CurrentThread().thread; }
inline int ThreadsX() { return CurrentThread().threads; }
inline int BlockX() { return CurrentThread().block_x; }
inline int BlockY() { return CurrentThread().block_y; }
inline int BlockZ() { return CurrentThread().block_z; }
inline int GridX() { return CurrentThread().grid_x; }
inline int GridY() { return CurrentThread().grid_y; }
inline char* SharedMemory() { return CurrentThread().shared; }
void SyncBlock();
inline void WaitForPrevious() { CurrentThread().waited = true; }
inline void ReleaseNext() {}

// Hands `size` (at most 16) bytes to the wave and returns where those of `lane` lie, until this
// thread's next exchange but one. Every lane of the wave takes part.
const void* Exchange(int wave, const void* value, size_t size, int lane);

template <int kWave, class T>
T Shuffle(T value, int lane) {
  T got;
  std::memcpy(&got, Exchange(kWave, &value, sizeof value, lane), sizeof got);
  return got;
}
template <int kWave, class T>
T ShuffleXor(T value, int mask) {
  return Shuffle<kWave>(value, ThreadX() % kWave ^ mask);
}

template <int kWave>
bool Any(bool holds) {
  for (int mask = 1; mask < kWave; mask *= 2) holds |= ShuffleXor<kWave>(holds, mask);
  return holds;
}
inline float Exp2(float value) { return exp2f(value); }
inline float Reciprocal(float value) { return 1 / value; }
inline float InverseRoot(float value) { return 1 / sqrtf(value); }
inline uint32_t AtomicAdd(uint32_t* to, uint32_t value) {
  const uint32_t was = *to;
  *to += value;
  return was;
}
inline uint32_t AddInOrder(uint32_t* to, uint32_t value) { return AtomicAdd(to, value); }

// Copies of 16 bytes of this thread, which FinishCopies carries out for all but its last groups.
void CopyLater(void* to, const void* from, bool valid);
void CloseCopies();
void FinishCopies(int groups_left);
// Arrives at a barrier in shared memory once this thread's copies so far are carried out.
void ArriveWithCopies(uint64_t* barrier);

template <int kWave>
void SyncWave() {
  Exchange(kWave, "", 1, 0);
}

// All lanes hand in `given`; the last to arrive calls work(all of them, in lane order).
void Together(int wave, void* given, void (*work)(void* const* all));

// What the blocks of a cluster share. Stores into another block arrive as late as anybody can wait
// for them, those of every third launch at once; one that comes before the cluster has met, or
// after its block has ended, aborts.
void ArriveCluster();
void AwaitCluster();
void InitBarrier(uint64_t* barrier, int arrivals);
void ArriveExpecting(uint64_t* barrier, int bytes);
void WaitPhase(uint64_t* barrier, int parity);
void StoreLater(void* place, uint64_t* barrier, int rank, const void* values, size_t size);

// Returns when each of the words, which other blocks write, has `round` in its upper half.
void AwaitRound(const uint64_t* words, int count, uint32_t round);

template <int kWave>
constexpr bool RunsWave() {
  return true;
}

}  // namespace gpu

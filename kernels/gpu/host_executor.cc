#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <vector>

#include "host_backend.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace gpu {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr int kMaxWave = 64;
constexpr unsigned kMaxThreads = 1024;

[[noreturn]] void Abort(const char* what) {
  std::fprintf(stderr, "host executor: %s\n", what);
  std::abort();
}

// Where some threads wait until all have come.
struct Barrier {
  int members = 0, arrived = 0;
  uint64_t rounds = 0;
};

struct Wave {
  Barrier barrier;
  alignas(16) char slots[2][kMaxWave][16];
  void* given[kMaxWave];
};

// A barrier in shared memory, as the device keeps one: a phase ends when no arrivals and no bytes
// are missing.
struct Counted {
  uint16_t arrivals : 15, phase : 1;  // of each phase; the parity of this one
  uint16_t missing;
  int32_t bytes;

  bool HasPassed(int parity) const { return phase != parity; }
  void Count() {
    if (missing == 0 && bytes == 0) ++phase, missing = arrivals;
  }
};
static_assert(sizeof(Counted) == sizeof(uint64_t));
Counted* CountedAt(uint64_t* barrier) { return reinterpret_cast<Counted*>(barrier); }

void CountArrival(Counted* counted) {
  if (counted->missing == 0) Abort("an arrival too many at a barrier");
  --counted->missing;
  counted->Count();
}

// A copy into shared memory that has not been waited for, or an arrival once those before it are
// there.
struct Copy {
  void* to;
  const void* from;  // NULL: zeros
  int64_t group;
  Counted* counts_on = nullptr;  // an arrival

  void CarryOut() const {
    if (counts_on != nullptr) return CountArrival(counts_on);
    if (from == nullptr) {
      std::memset(to, 0, 16);
    } else {
      std::memcpy(to, from, 16);
    }
  }
};

// Words in global memory that blocks write one by one.
struct Words {
  const uint64_t* first = nullptr;
  int count = 0;
  uint32_t round = 0;

  bool AreThere() const {
    return std::all_of(first, first + count, [&](uint64_t word) { return word >> 32 == round; });
  }
};

struct Fiber {
  ThreadState state;
  int index = 0;            // among the threads of all blocks that run
  int block = 0;            // among those blocks
  std::deque<Copy> copies;  // in the order of their groups
  int64_t group = 0;        // that a copy of now belongs to
  ucontext_t entry;
  void* point[5];  // where it stopped, as __builtin_setjmp keeps it
  bool started = false, done = true;
  Barrier* waits = nullptr;
  uint64_t waits_for = 0;      // rounds of that barrier
  uint64_t cluster_round = 0;  // that it has arrived for
  const Counted* counted = nullptr;
  int parity = 0;  // of the phase of `counted` that it waits for
  Words words;     // that it waits for
  void* stack = nullptr;
  void* fake_stack = nullptr;

  bool Runnable() const {
    if (done || (waits != nullptr && waits->rounds < waits_for)) return false;
    return (counted == nullptr || counted->HasPassed(parity)) && words.AreThere();
  }
};

struct Block {
  Barrier barrier;
  std::vector<char> memory;
  char* shared = nullptr;
  int left = 0;      // threads
  bool met = false;  // it knows that the others of its cluster have begun
};

// Into the shared memory of another block, not carried out yet.
struct Store {
  Block* block;
  void* to;
  Counted* counts_on;
  size_t size;
  char values[16];
};

// The executor of one calling thread.
struct Executor {
  std::vector<std::unique_ptr<Fiber>> fibers;  // kept from launch to launch
  // That run: one, those of a cluster by rank, or those of all clusters.
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Barrier> clusters;
  int cluster = 1;  // blocks of each
  std::vector<Store> stores;
  std::vector<std::unique_ptr<Wave>> waves;
  const std::function<void()>* body = nullptr;
  int threads = 0;  // of the blocks that run
  int left = 0, direction = 1;
  unsigned launches = 0;
  int wave = 1;  // as the last exchange said
  Fiber* current = nullptr;
  void* home[5];
  ucontext_t home_context;
  void* home_fake_stack = nullptr;
  const void* home_stack = nullptr;
  size_t home_stack_bytes = 0;
};
thread_local Executor executor;

#if defined(__SANITIZE_ADDRESS__)
void Leave(void** fake_stack, const void* bottom, size_t bytes) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
}
void Arrive(void* fake_stack, const void** bottom, size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
}
#else
void Leave(void**, const void*, size_t) {}
void Arrive(void*, const void**, size_t*) {}
#endif

// The sanitizer would take each jump for the end of a stack and ask the system about it; it is told
// of every switch instead.
#define GPU_SWITCHES [[gnu::noinline, gnu::no_sanitize_address]]

GPU_SWITCHES [[noreturn]] void Jump(void** to) { __builtin_longjmp(to, 1); }

void FiberMain();

// Stops at `from` and goes on in `to`.
GPU_SWITCHES void Switch(void** from, Fiber* to) {
  if (__builtin_setjmp(from) != 0) return;
  executor.current = to;
  if (to->started) Jump(to->point);
  to->started = true;
  setcontext(&to->entry);
}

GPU_SWITCHES void SwitchHome(void** from) {
  if (__builtin_setjmp(from) != 0) return;
  executor.current = nullptr;
  Jump(executor.home);
}

Block& BlockOf(const Fiber* fiber) { return *executor.blocks[static_cast<size_t>(fiber->block)]; }
Barrier& ClusterOf(const Fiber* fiber) {
  return executor.clusters[static_cast<size_t>(fiber->block / executor.cluster)];
}

Fiber* RunnableAt(int thread) {
  Fiber* fiber = executor.fibers[static_cast<size_t>(thread)].get();
  return fiber->Runnable() ? fiber : nullptr;
}

// Of `count` threads from `first` on, in the executor's direction from thread `from` around to it.
Fiber* RunnableAmong(int first, int count, int from) {
  for (int step = 1; step <= count; ++step) {
    int at = (from - first + executor.direction * step) % count;
    if (at < 0) at += count;
    if (Fiber* fiber = RunnableAt(first + at)) return fiber;
  }
  return nullptr;
}

// Lanes of the same wave first: a wave runs as far ahead of the others as barriers let it, so that
// what it may not overwrite yet is overwritten. So does a block.
Fiber* NextRunnable(int from) {
  const int first = from / executor.wave * executor.wave;
  for (int step = 1; step <= executor.wave; ++step) {
    const int at = first + (from - first + step) % executor.wave;
    if (at >= executor.threads) continue;
    if (Fiber* fiber = RunnableAt(at)) return fiber;
  }
  const int block = executor.threads / static_cast<int>(executor.blocks.size());
  if (Fiber* fiber = RunnableAmong(from / block * block, block, from)) return fiber;
  return RunnableAmong(0, executor.threads, from);
}

// Stores arrive when nothing else can go on; of every third launch at once.
void CarryOutStores() {
  if (executor.direction < 0) std::reverse(executor.stores.begin(), executor.stores.end());
  for (const Store& store : executor.stores) {
    if (store.block->left == 0) Abort("a store into a block that has ended");
    std::memcpy(store.to, store.values, store.size);
    store.counts_on->bytes -= static_cast<int32_t>(store.size);
    store.counts_on->Count();
  }
  executor.stores.clear();
}

// And so do copies that a barrier counts.
void CarryOutCounted() {
  for (int i = 0; i < executor.threads; ++i) {
    std::deque<Copy>& copies = executor.fibers[static_cast<size_t>(i)]->copies;
    const auto counts = [](const Copy& copy) { return copy.counts_on != nullptr; };
    const auto end = std::find_if(copies.rbegin(), copies.rend(), counts).base();
    std::for_each(copies.begin(), end, [](const Copy& copy) { copy.CarryOut(); });
    copies.erase(copies.begin(), end);
  }
}

// Lets others run; returns when this fiber may go on.
void Yield(Fiber* self) {
  Fiber* next = NextRunnable(self->index);
  if (next == nullptr && !executor.stores.empty()) {
    CarryOutStores();
    next = NextRunnable(self->index);
  }
  if (next == nullptr) {
    CarryOutCounted();
    next = NextRunnable(self->index);
  }
  if (next == self) return;
  if (next == nullptr && executor.left > 0) {
    Abort("some threads of a block wait at a barrier that the others do not reach");
  }
  if (next == nullptr) {
    Leave(&self->fake_stack, executor.home_stack, executor.home_stack_bytes);
    SwitchHome(self->point);
  } else {
    Leave(&self->fake_stack, next->stack, kStackBytes);
    Switch(self->point, next);
  }
  Arrive(self->fake_stack, nullptr, nullptr);
}

// True for the last to arrive, which does not wait.
bool ArriveAt(Barrier& barrier, Fiber* self) {
  if (++barrier.arrived == barrier.members) {
    barrier.arrived = 0;
    ++barrier.rounds;
    return true;
  }
  self->waits = &barrier;
  self->waits_for = barrier.rounds + 1;
  Yield(self);
  self->waits = nullptr;
  return false;
}

void FiberMain() {
  Fiber* self = executor.current;
  Arrive(nullptr, nullptr, nullptr);
  for (;;) {
    (*executor.body)();
    if (!self->state.waited) Abort("a thread has not called WaitForPrevious");
    self->done = true;
    --BlockOf(self).left;
    --executor.left;
    Yield(self);  // until the next block
  }
}

Fiber* NewFiber() {
  auto fiber = std::make_unique<Fiber>();
  fiber->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fiber->stack == MAP_FAILED) Abort("no memory for a stack");
  fiber->index = static_cast<int>(executor.fibers.size());
  getcontext(&fiber->entry);
  fiber->entry.uc_stack.ss_sp = fiber->stack;
  fiber->entry.uc_stack.ss_size = kStackBytes;
  fiber->entry.uc_link = nullptr;
  makecontext(&fiber->entry, FiberMain, 0);
  executor.fibers.push_back(std::move(fiber));
  return executor.fibers.back().get();
}

Wave& WaveOf(int wave, int thread) {
  executor.wave = wave;
  const auto index = static_cast<size_t>(thread / wave);
  while (executor.waves.size() <= index) executor.waves.push_back(std::make_unique<Wave>());
  Wave& found = *executor.waves[index];
  found.barrier.members = std::min(wave, executor.threads - thread / wave * wave);
  return found;
}

void RunBlocks() {
  for (const auto& block : executor.blocks) {
    std::memset(block->memory.data(), 0xff, block->memory.size());
  }
  executor.left = executor.threads;
  Fiber* first = NextRunnable(0);
  Leave(&executor.home_fake_stack, first->stack, kStackBytes);
  Switch(executor.home, first);
  Arrive(executor.home_fake_stack, nullptr, nullptr);
}

// Blocks first, first + 1.. of the grid's row.
void StartBlocks(Grid grid, unsigned first, unsigned y, unsigned z) {
  const int count = static_cast<int>(executor.blocks.size()), threads = executor.threads / count;
  for (int i = 0; i < executor.threads; ++i) {
    Fiber& fiber = *executor.fibers[static_cast<size_t>(i)];
    fiber.block = i / threads;
    Block& block = *executor.blocks[static_cast<size_t>(fiber.block)];
    block.barrier = {threads, 0, 0};
    block.left = threads;
    block.met = false;
    fiber.state = {};
    fiber.state.thread = i % threads;
    fiber.state.threads = threads;
    fiber.state.rank = fiber.block % executor.cluster;
    fiber.state.block_x = static_cast<int>(first) + fiber.block;
    fiber.state.block_y = static_cast<int>(y);
    fiber.state.block_z = static_cast<int>(z);
    fiber.state.grid_x = static_cast<int>(grid.x);
    fiber.state.grid_y = static_cast<int>(grid.y);
    fiber.state.shared = block.shared;
    fiber.copies.clear();
    fiber.group = 0;
    fiber.done = false;
    fiber.waits = nullptr;
    fiber.cluster_round = 0;
    fiber.counted = nullptr;
    fiber.words = {};
  }
  for (Barrier& cluster : executor.clusters) cluster = {threads * executor.cluster, 0, 0};
}

#if defined(__SANITIZE_ADDRESS__)
void LearnHomeStack() {
  pthread_attr_t attributes;
  void* stack = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack, &executor.home_stack_bytes);
  executor.home_stack = stack;
  pthread_attr_destroy(&attributes);
}
#else
void LearnHomeStack() {}
#endif

}  // namespace

ThreadState& CurrentThread() { return executor.current->state; }

void SyncBlock() { ArriveAt(BlockOf(executor.current).barrier, executor.current); }

void ArriveCluster() {
  Barrier& cluster = ClusterOf(executor.current);
  executor.current->cluster_round = cluster.rounds + 1;
  if (++cluster.arrived == cluster.members) {
    cluster.arrived = 0;
    ++cluster.rounds;
  }
}

void AwaitCluster() {
  Fiber* self = executor.current;
  self->waits = &ClusterOf(self);
  self->waits_for = self->cluster_round;
  if (self->waits_for == 0) Abort("a thread awaits its cluster without having arrived");
  if (!self->Runnable()) Yield(self);
  self->waits = nullptr;
  BlockOf(self).met = true;
}

void InitBarrier(uint64_t* barrier, int arrivals) {
  const auto each = static_cast<uint16_t>(arrivals);
  *CountedAt(barrier) = {each, 0, each, 0};
}

void ArriveExpecting(uint64_t* barrier, int bytes) {
  Counted* counted = CountedAt(barrier);
  counted->bytes += bytes;
  CountArrival(counted);
}

void ArriveWithCopies(uint64_t* barrier) {
  Fiber* self = executor.current;
  self->copies.push_back({nullptr, nullptr, self->group, CountedAt(barrier)});
}

void WaitPhase(uint64_t* barrier, int parity) {
  Fiber* self = executor.current;
  self->counted = CountedAt(barrier);
  self->parity = parity;
  if (!self->Runnable()) Yield(self);
  self->counted = nullptr;
}

void AwaitRound(const uint64_t* words, int count, uint32_t round) {
  Fiber* self = executor.current;
  self->words = {words, count, round};
  if (!self->Runnable()) Yield(self);
  self->words = {};
}

void StoreLater(void* place, uint64_t* barrier, int rank, const void* values, size_t size) {
  if (!BlockOf(executor.current).met) Abort("a store into a block that may not have begun");
  const int own = executor.current->block, first = own / executor.cluster * executor.cluster;
  Block* block = executor.blocks[static_cast<size_t>(first + rank)].get();
  const auto there = [&](void* here) {
    return block->shared + (static_cast<char*>(here) - executor.current->state.shared);
  };
  Store store{block, there(place), nullptr, size, {}};
  store.counts_on = reinterpret_cast<Counted*>(there(barrier));
  std::memcpy(store.values, values, size);
  executor.stores.push_back(store);
  if (executor.launches % 3 == 0) CarryOutStores();
}

const void* Exchange(int wave, const void* value, size_t size, int lane) {
  Fiber* self = executor.current;
  Wave& shared = WaveOf(wave, self->index);
  auto& slots = shared.slots[self->state.exchanges++ % 2];
  std::memcpy(slots[self->state.thread % wave], value, size);
  ArriveAt(shared.barrier, self);
  return slots[lane];
}

void CopyLater(void* to, const void* from, bool valid) {
  Fiber* self = executor.current;
  std::memset(to, 0xff, 16);
  self->copies.push_back({to, valid ? from : nullptr, self->group});
}

void CloseCopies() { ++executor.current->group; }

void FinishCopies(int groups_left) {
  Fiber* self = executor.current;
  while (!self->copies.empty() && self->copies.front().group < self->group - groups_left) {
    self->copies.front().CarryOut();
    self->copies.pop_front();
  }
}

void Together(int wave, void* given, void (*work)(void* const* all)) {
  Fiber* self = executor.current;
  Wave& shared = WaveOf(wave, self->index);
  shared.given[self->state.thread % wave] = given;
  if (shared.barrier.arrived + 1 == shared.barrier.members) work(shared.given);
  ArriveAt(shared.barrier, self);
}

void RunGrid(Grid grid, unsigned threads, size_t shared_bytes, const std::function<void()>& body,
             unsigned cluster, bool together) {
  if (threads == 0 || threads > kMaxThreads) Abort("a block has 1 to 1024 threads");
  if (cluster == 0 || grid.x % cluster != 0) Abort("the grid is not of whole clusters");
  const unsigned side_by_side = together ? grid.x : cluster;
  if (side_by_side > 1 && threads % kMaxWave != 0) Abort("blocks side by side are of whole waves");
  if (executor.home_stack == nullptr) LearnHomeStack();
  executor.body = &body;
  executor.threads = static_cast<int>(threads * side_by_side);
  while (static_cast<int>(executor.fibers.size()) < executor.threads) NewFiber();
  executor.direction = -executor.direction;
  ++executor.launches;
  executor.wave = 1;
  executor.waves.clear();
  executor.blocks.clear();
  executor.cluster = static_cast<int>(cluster);
  executor.clusters.resize(side_by_side / cluster);
  for (unsigned i = 0; i < side_by_side; ++i) {
    auto block = std::make_unique<Block>();
    block->memory.resize(shared_bytes + 16);
    const auto from = reinterpret_cast<uintptr_t>(block->memory.data());
    block->shared = reinterpret_cast<char*>((from + 15) / 16 * 16);
    executor.blocks.push_back(std::move(block));
  }
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; x += side_by_side) {
        StartBlocks(grid, x, y, z);
        RunBlocks();
      }
    }
  }
}

}  // namespace gpu

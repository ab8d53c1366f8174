// Values that blocks hand each other within a launch of whole layers (gpu/layers.h): two of
// bfloat16 and the number of a round are one word of memory, written and read as one. A value is
// there as soon as its round is, without a barrier or a fence. Bound by latency: a store and a load
// of another multiprocessor's.
//
// 1. A round is a layer of a launch. Launches of a device count on from one another, so that a word
//    of another layer or launch, whatever it was, has another number. Numbers come again after 2^32
//    layers, a day and more, which hurts only who then awaits a word unwritten all that time.
// 2. A reader waits for one round and cannot miss it: a word is written again a layer later, by a
//    block whose results need all that read it to have gone on. Nothing is given out before all
//    waves of a block, or of attention's cluster, have read what they need; a product reads all
//    that the phase before it gave out, attention of qkv some, and all its pairs together read all.
//    So a value of qkv follows from all of kDown's in the layer before, those from all of
//    kGateUp's, of kOutput's and of attention's: every phase of that layer has read. And values of
//    kDown, which kQkv of the same later layer reads, follow from attention's of all pairs, those
//    from all of qkv. Blocks without a part in a phase read nothing of it.
#pragma once

#include "gpu/layers.h"
#include "hopper_barrier.h"

namespace ashlar::hopper {

// Memory that all launches of a device share, in words of 32 bits: for each block that a launch may
// have the count of rounds, between launches the same, then values.
inline constexpr int64_t kWordMemory = 1 << 20;
inline constexpr int kMostWordBlocks = 1024;
inline constexpr int64_t kMostWords = (kWordMemory - kMostWordBlocks) / 2;  // of values

// Where values begin, in words from the first: x of each product, and qkv.
struct WordPlaces {
  int x[gpu_kernels::kLayerProducts] = {}, qkv = 0;
  int64_t all = 0;
};
inline WordPlaces PlaceWords(const gpu_kernels::LayersParams& p) {
  WordPlaces places;
  const auto take = [&](int row) {
    const int64_t at = places.all;
    places.all += int64_t{p.tokens} * row / 2;
    return static_cast<int>(at);
  };
  for (int i = 0; i < gpu_kernels::kLayerProducts; ++i) places.x[i] = take(p.product[i].cols);
  places.qkv = take(p.product[gpu_kernels::kQkv].rows);
  return places;
}
// Of a product's out: x of the next one, but for attention between.
GPU_BOTH constexpr int PlaceOfOut(const WordPlaces& places, int product) {
  return product == gpu_kernels::kQkv ? places.qkv
                                      : places.x[(product + 1) % gpu_kernels::kLayerProducts];
}

GPU_BOTH uint64_t* ValuesOf(uint32_t* memory) {
  return reinterpret_cast<uint64_t*>(memory + kMostWordBlocks);
}
// The word of a row's values `value` and the next, an even one. Of each eight values pairs 0 and 2
// lie side by side, and then 1 and 3, as MultiplyFolded takes them.
GPU_BOTH constexpr int WordOf(int value) {
  return value / 8 * 4 + value / 2 % 2 * 2 + value / 4 % 2;
}

#if defined(ASHLAR_HOPPER)

// What the launch began with, which counts a round a layer.
class Rounds {
 public:
  // After WaitForPrevious.
  GPU_DEVICE explicit Rounds(uint32_t* memory)
      : counts_(memory), first_(*static_cast<volatile uint32_t*>(memory + gpu::BlockX())) {}
  GPU_DEVICE uint32_t Of(int layer) const { return first_ + static_cast<uint32_t>(layer) + 1; }
  // By all `threads` of the block: its own count, and those of its share of blocks that only other
  // launches have.
  GPU_DEVICE void End(int layers, int threads) const {
    gpu::SyncBlock();  // all have read the count
    for (int i = gpu::BlockX() + gpu::ThreadX() * gpu::GridX(); i < kMostWordBlocks;
         i += threads * gpu::GridX()) {
      counts_[i] = Of(layers - 1);
    }
  }

 private:
  uint32_t* const counts_;
  const uint32_t first_;
};

GPU_DEVICE void WriteWord(uint64_t* to, uint32_t pair, uint32_t round) {
  const uint64_t word = uint64_t{round} << 32 | pair;
#if defined(ASHLAR_GPU_HOST)
  *to = word;
#else
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
#endif
}

// Two words side by side, as they were when they were read.
struct Words {
  uint32_t pair[2] = {}, round[2] = {};

  // Bits are set where one is of another round, and they are to be read again.
  GPU_DEVICE uint32_t Unlike(uint32_t awaited) const {
    return (round[0] ^ awaited) | (round[1] ^ awaited);
  }
};
// At a multiple of 16 bytes. Whoever reads several asks for all of them before looking at one.
GPU_DEVICE Words ReadWords(const uint64_t* from, [[maybe_unused]] uint32_t round) {
  uint64_t word[2];
#if defined(ASHLAR_GPU_HOST)
  gpu::AwaitRound(from, 2, round);
  word[0] = from[0], word[1] = from[1];
#else
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(word[0]), "=l"(word[1])
               : "l"(from));
#endif
  return {{static_cast<uint32_t>(word[0]), static_cast<uint32_t>(word[1])},
          {static_cast<uint32_t>(word[0] >> 32), static_cast<uint32_t>(word[1] >> 32)}};
}
// Four words, of eight values; whether they are of the round.
GPU_DEVICE bool ReadEight(const uint64_t* from, uint32_t round, gpu::Vector& values) {
  const Words even = ReadWords(from, round), odd = ReadWords(from + 2, round);
  values = {{even.pair[0], odd.pair[0], even.pair[1], odd.pair[1]}};
  return (even.Unlike(round) | odd.Unlike(round)) == 0;
}

#endif

}  // namespace ashlar::hopper

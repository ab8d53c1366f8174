// Products of 16-bit tiles by a whole wave: D[16, 16] += S[16, 32] * O[16, 32]^T, both operands
// with their 32 values of k in one row. Tensor cores on NVIDIA, MFMA on CDNA; elsewhere the same
// layout by shuffles (RDNA) or by the host executor.
//
// A lane holds kVectors rows' worth of 8 values of one quarter of k: rows Row(lane, v), quarter
// Quarter(lane). Which k a quarter's slots stand for is free as long as both operands agree: from
// memory it is k = 8 * quarter + slot; for keys that come out of a product it is KeyOfSlot.
// Element e of D belongs to row StationaryRow(lane, e) of S and row OtherRow(lane, e) of O. All
// elements of a lane that share kSlots-index Slot(e) share their row of S.
#pragma once

#include "number.h"

namespace ashlar::gpu_kernels {

inline constexpr int kTile = 16;   // rows of S and of O
inline constexpr int kChunk = 32;  // values of k
inline constexpr int kHalf = 16;   // of a product that takes the first two words of each vector

template <int kWave>
struct MatrixLayout;

template <>
struct MatrixLayout<32> {
  static constexpr int kVectors = 2, kElements = 8, kSlots = 2;
  // Lanes that share a row of S differ in these bits.
  static constexpr int kFirstMask = 1, kSecondMask = 2;

  GPU_DEVICE static int Row(int lane, int vector) { return lane / 4 + 8 * vector; }
  GPU_DEVICE static int Quarter(int lane) { return lane % 4; }
  GPU_DEVICE static constexpr int Slot(int e) { return e / 2 % 2; }
  GPU_DEVICE static int SlotRow(int lane, int slot) { return lane / 4 + 8 * slot; }
  // A lane whose slot 0 is that row.
  GPU_DEVICE static int LaneOf(int row) { return row * 4; }
  GPU_DEVICE static int OtherRow(int lane, int e) { return 8 * (e / 4) + 2 * (lane % 4) + e % 2; }
  GPU_DEVICE static int KeyOfSlot(int quarter, int slot) {
    return 8 * (slot / 2) + 2 * quarter + slot % 2;
  }
  // Element of the product with keys 16 * tile.. that is slot `slot` of a row's operand.
  GPU_DEVICE static constexpr int ElementOfSlot(int vector, int slot) {
    return 4 * (slot / 2 % 2) + 2 * vector + slot % 2;
  }
};

template <>
struct MatrixLayout<64> {
  static constexpr int kVectors = 1, kElements = 4, kSlots = 1;
  static constexpr int kFirstMask = 16, kSecondMask = 32;

  GPU_DEVICE static int Row(int lane, int) { return lane % 16; }
  GPU_DEVICE static int Quarter(int lane) { return lane / 16; }
  GPU_DEVICE static constexpr int Slot(int) { return 0; }
  GPU_DEVICE static int SlotRow(int lane, int) { return lane % 16; }
  GPU_DEVICE static int LaneOf(int row) { return row; }
  GPU_DEVICE static int OtherRow(int lane, int e) { return 4 * (lane / 16) + e; }
  GPU_DEVICE static int KeyOfSlot(int quarter, int slot) {
    return 16 * (slot / 4) + 4 * quarter + slot % 4;
  }
  GPU_DEVICE static constexpr int ElementOfSlot(int, int slot) { return slot % 4; }
};

// One operand of 16 rows and 32 values of k.
template <int kWave>
struct Operand {
  gpu::Vector vector[MatrixLayout<kWave>::kVectors];
};

template <int kWave>
struct Accumulator {
  float element[MatrixLayout<kWave>::kElements];
};

#if defined(ASHLAR_GPU_HOST)

template <class T, int kWave>
struct Product {
  Accumulator<kWave>* sum;
  const Operand<kWave>*stationary, *other;
};

// The whole tile at once, by the last lane that arrives.
template <class T, int kWave, int kHalves>
void MultiplyAll(void* const* all) {
  using Layout = MatrixLayout<kWave>;
  float s[kTile][kChunk], o[kTile][kChunk];
  const auto read = [](const gpu::Vector& vector, float* to) {
    for (int i = 0; i < 8; ++i) {
      to[i] = Load(T{static_cast<uint16_t>(vector.word[i / 2] >> (i % 2 * 16))});
    }
  };
  for (int lane = 0; lane < kWave; ++lane) {
    const auto& product = *static_cast<const Product<T, kWave>*>(all[lane]);
    for (int v = 0; v < Layout::kVectors; ++v) {
      const int row = Layout::Row(lane, v), k = 8 * Layout::Quarter(lane);
      read(product.stationary->vector[v], &s[row][k]);
      read(product.other->vector[v], &o[row][k]);
    }
  }
  for (int lane = 0; lane < kWave; ++lane) {
    const auto& product = *static_cast<const Product<T, kWave>*>(all[lane]);
    for (int e = 0; e < Layout::kElements; ++e) {
      const float* a = s[Layout::SlotRow(lane, Layout::Slot(e))];
      const float* b = o[Layout::OtherRow(lane, e)];
      float sum = 0;
      for (int k = 0; k < kChunk; ++k) {
        if (k % 8 < 4 * kHalves) sum += a[k] * b[k];
      }
      product.sum->element[e] += sum;
    }
  }
}

template <class T, int kWave, int kHalves = 2>
void Multiply(Accumulator<kWave>& sum, const Operand<kWave>& stationary,
              const Operand<kWave>& other) {
  Product<T, kWave> product{&sum, &stationary, &other};
  gpu::Together(kWave, &product, MultiplyAll<T, kWave, kHalves>);
}

#elif defined(GPU_PTX)

template <class T>
GPU_DEVICE void MultiplyWords(float* d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                              uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, BF16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

template <class T, int kWave, int kHalves = 2>
GPU_DEVICE void Multiply(Accumulator<kWave>& sum, const Operand<kWave>& stationary,
                         const Operand<kWave>& other) {
#pragma unroll
  for (int half = 0; half < kHalves; ++half) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint32_t a0 = stationary.vector[0].word[2 * half];
      const uint32_t a1 = stationary.vector[1].word[2 * half];
      const uint32_t a2 = stationary.vector[0].word[2 * half + 1];
      const uint32_t a3 = stationary.vector[1].word[2 * half + 1];
      MultiplyWords<T>(sum.element + 4 * j, a0, a1, a2, a3, other.vector[j].word[2 * half],
                       other.vector[j].word[2 * half + 1]);
    }
  }
}

#else

#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define ASHLAR_MFMA 1
#endif

// By shuffles: every lane fetches the rows of O that its elements need, quarter by quarter.
template <class T, int kWave, int kHalves>
GPU_DEVICE void MultiplyByShuffles(Accumulator<kWave>& sum, const Operand<kWave>& stationary,
                                   const Operand<kWave>& other) {
  using Layout = MatrixLayout<kWave>;
  const int lane = gpu::ThreadX() % kWave;
  const auto fetch = [](const Operand<kWave>& operand, int row, int quarter, int word) {
    uint32_t got = 0;
    for (int v = 0; v < Layout::kVectors; ++v) {
      const int holder = kWave == 32 ? row % 8 * 4 + quarter : quarter * 16 + row;
      const uint32_t value = gpu::Shuffle<kWave>(operand.vector[v].word[word], holder);
      if (Layout::kVectors == 1 || row / 8 == v) got = value;
    }
    return got;
  };
  for (int quarter = 0; quarter < 4; ++quarter) {
    for (int word = 0; word < 2 * kHalves; ++word) {
      for (int e = 0; e < Layout::kElements; ++e) {
        const uint32_t s = fetch(stationary, Layout::SlotRow(lane, Layout::Slot(e)), quarter, word);
        const uint32_t o = fetch(other, Layout::OtherRow(lane, e), quarter, word);
        sum.element[e] +=
            Load(T{static_cast<uint16_t>(s)}) * Load(T{static_cast<uint16_t>(o)}) +
            Load(T{static_cast<uint16_t>(s >> 16)}) * Load(T{static_cast<uint16_t>(o >> 16)});
      }
    }
  }
}

template <class T, int kWave, int kHalves = 2>
GPU_DEVICE void Multiply(Accumulator<kWave>& sum, const Operand<kWave>& stationary,
                         const Operand<kWave>& other) {
#if defined(ASHLAR_MFMA)
  if constexpr (kWave == 64) {
    typedef float Four __attribute__((ext_vector_type(4)));
    typedef short Shorts __attribute__((ext_vector_type(4)));
    typedef _Float16 Halves __attribute__((ext_vector_type(4)));
    Four d = {sum.element[0], sum.element[1], sum.element[2], sum.element[3]};
    for (int half = 0; half < kHalves; ++half) {
      const uint32_t* s = stationary.vector[0].word + 2 * half;
      const uint32_t* o = other.vector[0].word + 2 * half;
      if constexpr (std::is_same_v<T, BF16>) {
        Shorts a, b;
        memcpy(&a, o, sizeof a);
        memcpy(&b, s, sizeof b);
        d = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, d, 0, 0, 0);
      } else {
        Halves a, b;
        memcpy(&a, o, sizeof a);
        memcpy(&b, s, sizeof b);
        d = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, d, 0, 0, 0);
      }
    }
    for (int e = 0; e < 4; ++e) sum.element[e] = d[e];
    return;
  }
#endif
  MultiplyByShuffles<T, kWave, kHalves>(sum, stationary, other);
}

#endif

// A strip: kWave / 4 rows of O, of which a lane holds vector 0 of an operand. The wave's sums are
// elements 0-3 of the layout.
template <class T, int kWave>
GPU_DEVICE void MultiplyStrip(float* sum, const Operand<kWave>& stationary,
                              const gpu::Vector& strip) {
#if defined(GPU_PTX)
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    MultiplyWords<T>(sum, stationary.vector[0].word[2 * half], stationary.vector[1].word[2 * half],
                     stationary.vector[0].word[2 * half + 1],
                     stationary.vector[1].word[2 * half + 1], strip.word[2 * half],
                     strip.word[2 * half + 1]);
  }
#else
  Operand<kWave> other{};
  other.vector[0] = strip;
  Accumulator<kWave> all{};
  for (int e = 0; e < 4; ++e) all.element[e] = sum[e];
  Multiply<T, kWave>(all, stationary, other);
  for (int e = 0; e < 4; ++e) sum[e] = all.element[e];
#endif
}

// Largest and sum over the lanes that share a row of S.
template <int kWave>
GPU_DEVICE float RowMax(float value) {
  using Layout = MatrixLayout<kWave>;
  value = fmaxf(value, gpu::ShuffleXor<kWave>(value, Layout::kFirstMask));
  return fmaxf(value, gpu::ShuffleXor<kWave>(value, Layout::kSecondMask));
}
template <int kWave>
GPU_DEVICE float RowSum(float value) {
  using Layout = MatrixLayout<kWave>;
  value += gpu::ShuffleXor<kWave>(value, Layout::kFirstMask);
  return value + gpu::ShuffleXor<kWave>(value, Layout::kSecondMask);
}

// Products over keys 0-15 and, with two halves, 16-31 as the operand of the next product over those
// keys; slot s of it stands for key KeyOfSlot(quarter, s).
template <class T, int kWave, int kHalves>
GPU_DEVICE Operand<kWave> AsOperand(const Accumulator<kWave>* products) {
  using Layout = MatrixLayout<kWave>;
  Operand<kWave> operand;
#pragma unroll
  for (int v = 0; v < Layout::kVectors; ++v) {
#pragma unroll
    for (int word = 0; word < 2 * kHalves; ++word) {
      const Accumulator<kWave>& from = products[word / 2];
      operand.vector[v].word[word] =
          Pack<T>(from.element[Layout::ElementOfSlot(v, 2 * word % 4)],
                  from.element[Layout::ElementOfSlot(v, 2 * word % 4 + 1)]);
    }
  }
  return operand;
}

// The operand of 16 rows that lie `pitch` elements apart, 16-byte aligned, in k's own order.
template <class T, int kWave>
GPU_DEVICE Operand<kWave> LoadRows(const T* first, int pitch) {
  using Layout = MatrixLayout<kWave>;
  const int lane = gpu::ThreadX() % kWave;
  Operand<kWave> operand;
#pragma unroll
  for (int v = 0; v < Layout::kVectors; ++v) {
    operand.vector[v] = *reinterpret_cast<const gpu::Vector*>(first + Layout::Row(lane, v) * pitch +
                                                              8 * Layout::Quarter(lane));
  }
  return operand;
}

// The same of rows that are stored as W and multiplied as T: F8 as BF16.
template <class W, class T, int kWave>
GPU_DEVICE Operand<kWave> LoadStoredRows(const W* first, int pitch) {
  if constexpr (std::is_same_v<W, T>) {
    return LoadRows<T, kWave>(first, pitch);
  } else {
    static_assert(std::is_same_v<W, F8> && std::is_same_v<T, BF16>);
    using Layout = MatrixLayout<kWave>;
    const int lane = gpu::ThreadX() % kWave;
    Operand<kWave> operand;
#pragma unroll
    for (int v = 0; v < Layout::kVectors; ++v) {
      const EightF8 eight = *reinterpret_cast<const EightF8*>(first + Layout::Row(lane, v) * pitch +
                                                              8 * Layout::Quarter(lane));
      WidenToBF16(eight.word[0], operand.vector[v].word);
      WidenToBF16(eight.word[1], operand.vector[v].word + 2);
    }
    return operand;
  }
}

}  // namespace ashlar::gpu_kernels

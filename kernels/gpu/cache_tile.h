// Entries of the paged cache in shared memory and the operands read from there. An entry, K then V,
// is a row of 16-byte pieces; the pieces of a row are exchanged by its number, so that the lanes of
// one access meet all banks.
#pragma once

#include "matrix.h"

namespace ashlar::gpu_kernels {

template <class Stored, int kHeadDim>
struct CacheTile {
  static constexpr bool kF8 = std::is_same_v<Stored, F8>;
  static constexpr int kKeyPieces = kHeadDim * int{sizeof(Stored)} / 16;
  static constexpr int kPieces = 2 * kKeyPieces;
  static constexpr int kPitch = (kPieces + 7) / 8 * 128;  // bytes
  static constexpr int kRun = 16;  // entries that lie in one block: blocks hold a multiple
  static constexpr int kChunks = (kHeadDim + kChunk - 1) / kChunk;
  static constexpr int kColumnTiles = kHeadDim / kTile;
  // Keys of one product with values are kHalf * kHalves.
  static constexpr int kHalves = kF8 ? 2 : 1;

  // What the number of a piece in row `row` is exchanged by; eight rows in line differ. Rows that
  // one access of LoadKeys meets differ in the upper bits. It is the same eight rows further, and
  // that of a | b is Exchange(a) ^ Exchange(b): a lane finds its own part once.
  GPU_DEVICE static constexpr int Exchange(int row) {
    return kF8 ? (row & 3) << 1 | (row >> 2 & 1) : (row & 1) << 2 | (row >> 1 & 3);
  }
  GPU_DEVICE static int At(int row, int piece) {
    return row * kPitch + ((piece ^ Exchange(row)) << 4);
  }
  // The column of a 16-column tile that row `row` of LoadValues' operand stands for.
  GPU_DEVICE static constexpr int Column(int row) { return kF8 ? row % 8 * 2 + row / 8 : row; }
};

// Where the entries of one KV head lie, for keys of one sequence.
struct CacheWalk {
  const char* base;  // of the head in block 0
  const int32_t* table;
  int64_t block_stride, token_stride;
  int block_shift, block_tokens;  // log2 of block_tokens, or -1

  // Entry of the key whose block is `block`.
  GPU_DEVICE const char* Entry(int key, int block) const {
    return base + block * block_stride + (key - Index(key) * block_tokens) * token_stride;
  }
  GPU_DEVICE int Index(int key) const {
    return block_shift >= 0 ? key >> block_shift : key / block_tokens;
  }
};

// A wave copies the kRun entries from `from` on into rows of `to`, those of keys outside [low,
// high) as zeros; `low` and `high` count from the first. The first row's number is a multiple of
// eight. Unless all lie at multiples of 16 bytes, `aligned` is false. With kOnce whole runs leave
// no traces in the device's cache.
template <class Stored, int kHeadDim, int kWave, bool kOnce = false>
GPU_DEVICE void CopyRun(char* to, const char* from, int64_t token_stride, int low, int high,
                        bool aligned) {
  using Tile = CacheTile<Stored, kHeadDim>;
  const int lane = gpu::ThreadX() % kWave;
  constexpr int kAll = Tile::kRun * Tile::kPieces;
  if (aligned && low <= 0 && high >= Tile::kRun && kAll % kWave == 0) {
    // A wave copies so many whole rows at a time, or parts of one.
    constexpr int kRows = kWave % Tile::kPieces == 0 ? kWave / Tile::kPieces : 0;
    const auto copy = [](char* place, const char* entry) {
      kOnce ? gpu::CopyOnceToShared(place, entry, true) : gpu::CopyToShared(place, entry, true);
    };
    const int own_row = lane / Tile::kPieces;
    const char* at = from + own_row * token_stride + lane % Tile::kPieces * 16;
    const int own_place = lane % Tile::kPieces ^ Tile::Exchange(own_row);
#pragma unroll
    for (int i = 0; i < kAll / kWave; ++i) {
      if constexpr (kRows == 0) {
        const int row = (i * kWave + lane) / Tile::kPieces;
        const int piece = (i * kWave + lane) % Tile::kPieces;
        at = from + row * token_stride + piece * 16;
        copy(to + Tile::At(row, piece), at);
      } else {
        const int place = (own_place ^ Tile::Exchange(i * kRows)) << 4;
        copy(to + own_row * Tile::kPitch + place + i * kRows * Tile::kPitch, at);
        at += kRows * token_stride;
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = lane; i < kAll; i += kWave) {
    const int row = i / Tile::kPieces, piece = i % Tile::kPieces;
    const bool valid = row >= low && row < high;
    const char* entry = valid ? from + row * token_stride + piece * 16 : from;
    char* at = to + Tile::At(row, piece);
    if (aligned || !valid) {
      gpu::CopyToShared(at, entry, valid);
    } else {
      for (int e = 0; e < 16; ++e) at[e] = entry[e];
    }
  }
}

// K of 16 rows from `first` on, values 32 * chunk..; past the head's size the values are V's.
template <class Stored, int kHeadDim, int kWave>
GPU_DEVICE Operand<kWave> LoadKeys(const char* tile, int first, int chunk) {
  using Tile = CacheTile<Stored, kHeadDim>;
  using Layout = MatrixLayout<kWave>;
  const int lane = gpu::ThreadX() % kWave, quarter = Layout::Quarter(lane);
  const int row = Layout::Row(lane, 0);  // and eight rows further each
  // A lane's piece of a chunk: its number's low bits are the lane's, the others the chunk's.
  constexpr int kPerPiece = Tile::kF8 ? 2 : 1;  // quarters
  const int own = (quarter / kPerPiece ^ Tile::Exchange(row)) << 4 | quarter % kPerPiece * 8;
  const char* from = tile + row * Tile::kPitch + (own ^ chunk * (kChunk * int{sizeof(Stored)}));
  Operand<kWave> operand;
#pragma unroll
  for (int v = 0; v < Layout::kVectors; ++v) {
    const char* at = from + (first + 8 * v) * Tile::kPitch;
    if constexpr (Tile::kF8) {
      const EightF8 eight = *reinterpret_cast<const EightF8*>(at);
      for (int i = 0; i < 2; ++i) {
        Widen(eight.word[i], operand.vector[v].word[2 * i], operand.vector[v].word[2 * i + 1]);
      }
    } else {
      operand.vector[v] = *reinterpret_cast<const gpu::Vector*>(at);
    }
  }
  return operand;
}

// V of kHalf * kHalves keys from row `first` on, columns 16 * column_tile..: row r of the operand
// is column Column(r), its values of k are the keys in AsOperand's order.
template <class Stored, int kHeadDim, int kWave>
GPU_DEVICE Operand<kWave> LoadValues(const char* tile, int first, int column_tile) {
  using Tile = CacheTile<Stored, kHeadDim>;
  using Layout = MatrixLayout<kWave>;
  const int lane = gpu::ThreadX() % kWave;
  Operand<kWave> operand;
#if defined(GPU_PTX)
  uint32_t got[4];
  // A lane names a row, and a piece whose number's lowest bit may be its own.
  constexpr int kTilePieces = Tile::kF8 ? 1 : 2;
  const int row = Tile::kF8 ? lane : lane % 16;
  const int own = (Tile::kF8 ? 0 : lane / 16) ^ Tile::Exchange(row);
  static_assert(Tile::kKeyPieces % kTilePieces == 0);
  const char* at = tile + (first + row) * Tile::kPitch +
                   ((own ^ (Tile::kKeyPieces + kTilePieces * column_tile)) << 4);
  gpu::LoadTransposed(at, got);
  if constexpr (Tile::kF8) {  // matrices of pairs of columns
    for (int word = 0; word < 4; ++word) {
      Widen(gpu::SwapMiddleBytes(got[word]), operand.vector[0].word[word],
            operand.vector[1].word[word]);
    }
  } else {
    for (int word = 0; word < 4; ++word) operand.vector[word / 2].word[word % 2] = got[word];
  }
#else
  const auto value = [&](int key, int column) {
    const int byte = column * int{sizeof(Stored)};
    Stored stored;
    memcpy(&stored, tile + Tile::At(first + key, Tile::kKeyPieces + byte / 16) + byte % 16,
           sizeof stored);
    return static_cast<uint32_t>(Store<Multiplied<Stored> >(Load(stored)).bits);
  };
  for (int v = 0; v < Layout::kVectors; ++v) {
    const int column = column_tile * kTile + Tile::Column(Layout::Row(lane, v));
    for (int word = 0; word < 2 * Tile::kHalves; ++word) {
      const int low = Layout::KeyOfSlot(Layout::Quarter(lane), 2 * word);
      const int high = Layout::KeyOfSlot(Layout::Quarter(lane), 2 * word + 1);
      operand.vector[v].word[word] = value(low, column) | value(high, column) << 16;
    }
  }
#endif
  return operand;
}

}  // namespace ashlar::gpu_kernels

// The work of a decode step as one line of units: for each short sequence, for each of its KV
// heads, its visible keys in steps of kUnitKeys. The line is divided evenly over the blocks of a
// launch whose size does not depend on it: a block finds its part from `context` alone.
#pragma once

#include "attention_rows.h"
#include "block.h"
#include "wave.h"

namespace ashlar::gpu_kernels {

// A unit of the line. A pair is a sequence and a KV head.
struct LinePlace {
  RowTile rows;
  int head = 0;
  int unit = 0, units = 0;  // which of the pair, and how many it has
  int oldest = 0;           // first visible key of the pair
};

struct LineSize {
  int units;
  int alike;  // pairs, when all have as many units; else 0
};

template <int kUnitKeys, int kWave>
struct AttentionLine {
  const AttentionParams& p;

  // Where a sequence's first unit begins, and how many each of its pairs has: none when its rows
  // are more than a tile, or its context is 0, as that of what fills up a captured step.
  GPU_DEVICE static int Begin(int oldest) { return oldest / kUnitKeys * kUnitKeys; }
  GPU_DEVICE LinePlace Sequence(int sequence) const {
    LinePlace place;
    place.rows = TileOf(p, sequence, 0);
    place.oldest = RowTile::Oldest(p, place.rows.FirstPosition());
    const int keys = place.rows.context - Begin(place.oldest);
    const bool is_short = place.rows.rows > 0 && place.rows.rows <= kTile;
    place.units = is_short ? (keys + kUnitKeys - 1) / kUnitKeys : 0;
    return place;
  }

  // Units of sequence first + lane, all heads together.
  GPU_DEVICE int LaneUnits(int first) const {
    const int sequence = first + gpu::ThreadX() % kWave;
    return sequence < p.args.sequences ? Sequence(sequence).units * p.args.kv.kv_heads : 0;
  }

  // Of the whole line. Every lane of a wave calls this and Find.
  GPU_DEVICE LineSize Measure() const {
    int total = 0, most = 0, busy = 0;
    for (int first = 0; first < p.args.sequences; first += kWave) {
      const int units = LaneUnits(first);
      total += units;
      most = units > most ? units : most;
      busy += units > 0 ? 1 : 0;
    }
    total = WaveSum<kWave>(total);
    most = WaveReduce<kWave>(most, [](int a, int b) { return a > b ? a : b; });
    busy = WaveSum<kWave>(busy);
    return {total, total == most * busy ? busy * p.args.kv.kv_heads : 0};
  }

  // The place of unit `at` of the line.
  GPU_DEVICE LinePlace Find(int at) const {
    const int lane = gpu::ThreadX() % kWave;
    int before = 0, first = 0, own = 0, through = 0;
    for (;; first += kWave) {
      own = LaneUnits(first);
      through = own;
#pragma unroll
      for (int step = 1; step < kWave; step *= 2) {
        const int lower = gpu::Shuffle<kWave>(through, lane - step < 0 ? lane : lane - step);
        if (lane >= step) through += lower;
      }
      const int all = gpu::Shuffle<kWave>(through, kWave - 1);
      if (before + all > at) break;
      before += all;
    }
    const int holder = WaveSum<kWave>(before + through <= at ? 1 : 0);
    before += gpu::Shuffle<kWave>(through - own, holder);
    LinePlace place = Sequence(first + holder);
    place.head = (at - before) / place.units;
    place.unit = (at - before) % place.units;
    return place;
  }

  // To the next unit, which exists.
  GPU_DEVICE void Advance(LinePlace& place) const {
    if (++place.unit < place.units) return;
    place.unit = 0;
    if (++place.head < p.args.kv.kv_heads) return;
    int sequence = place.rows.sequence;
    do {
      place = Sequence(++sequence);
    } while (place.units == 0);
  }
};

// Of `most` blocks those that share pairs, all alike, without cutting one: nearly all or all.
GPU_DEVICE int WholePairs(int pairs, int most) {
  const int each = (pairs + most - 1) / most;
  const bool fits = pairs > 0 && pairs % each == 0 && 16 * (pairs / each) >= 15 * most;
  return fits ? pairs / each : most;
}

// A line of `length` units divided over no more blocks than that: the first `longer` have one unit
// more than the others.
struct LineParts {
  int length = 0, blocks = 0, each = 0, longer = 0;

  GPU_DEVICE LineParts(int units, int most) : length(units), blocks(units < most ? units : most) {
    if (blocks == 0) return;
    each = length / blocks;
    longer = length - each * blocks;
  }
  GPU_DEVICE int Begin(int block) const { return block * each + (block < longer ? block : longer); }
  // The block that has unit `at`.
  GPU_DEVICE int Of(int at) const {
    const int in_longer = longer * (each + 1);
    return at < in_longer ? at / (each + 1) : longer + (at - in_longer) / each;
  }
};

}  // namespace ashlar::gpu_kernels

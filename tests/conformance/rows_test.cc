// The ops that work by rows: embed, gather, norms, activations, add, copy_blocks.
#include <gtest/gtest.h>

#include "conformance/weights.h"

namespace ashlar::testing {
namespace {

class RowOps : public PluginTest {
 protected:
  Tensor Matrix(const Guarded<float>& values, int64_t rows, int64_t cols) {
    return Tensor::Of(values.data(), DType::kF32, {rows, cols});
  }
  std::vector<float> Poisoned(int64_t count) {
    return std::vector<float>(static_cast<size_t>(count), kPoison);
  }
  // Runs the test body on each variant of the device, on fresh shapes.
  template <class Body>
  void OnEveryVariant(int shapes, Body body) {
    for (const DeviceOptions& options : Variants(plugin())) {
      const auto device = Open(options);
      for (int i = 0; i < shapes; ++i) body(*device);
    }
  }
};

// Dequantising rounds two or three times, fused or not, and scaling once more: four units in the
// last place of the largest value of the row.
TEST_P(RowOps, EmbedAgrees) {
  OnEveryVariant(4, [&](const Device& device) {
    for (DType type : kWeightTypes) {
      const int64_t cols = Info(type).elements * random_.Int(1, 3), n = random_.Int(1, 12);
      std::vector<DType> types = {type};
      std::vector<int64_t> rows = {random_.Int(3, 60)};
      if (random_.Chance(0.3)) types.push_back(DType::kF32), rows.push_back(random_.Int(1, 9));
      const RandomStack stack(types, rows, cols, random_);
      const float scale = random_.Chance(0.5) ? 1.0f : 25.5f;
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < n; ++i) {
        ids.push_back(static_cast<int32_t>(random_.Int(0, stack.rows() - 1)));
      }
      const bool back_guard = random_.Chance(0.5);
      const auto run = [&](const Device& on) {
        const Weight weight = on.CreateWeight(stack.parts(), cols, true).value();
        const Guarded<float> out(on, Poisoned(n * cols), back_guard);
        const Guarded<int32_t> id(on, ids, back_guard);
        (void)on.Embed(Matrix(out, n, cols), weight, id.data(), scale).value();
        return out.Read("embed");
      };
      const std::vector<float> want = run(Reference());
      std::vector<double> tolerance;
      for (int64_t i = 0; i < n; ++i) {
        const double row = Largest(want.data() + i * cols, cols) * 0x1p-21 + 1e-30;
        for (int64_t col = 0; col < cols; ++col) {
          const double value = want[static_cast<size_t>(i * cols + col)];
          tolerance.push_back(row + StorageStep(plugin(), type) * std::fabs(value));
        }
      }
      ExpectWithin(device.plugin().name(), fmt::format("embed {}", Info(type).name), stack.text(),
                   run(device), want, tolerance);
    }
  });
}

// A part that the plugin owns nothing of is read in place; every other has been copied, so its
// source may go once the weight exists.
TEST_P(RowOps, WeightsOutliveTheSourcesOfPartsThatThePluginOwns) {
  OnEveryVariant(10, [&](const Device& device) {
    const std::vector<DType> types(std::begin(kWeightTypes), std::end(kWeightTypes));
    const int64_t cols = 512;
    const RandomStack stack({random_.Pick(types), random_.Pick(types)},
                            {random_.Int(1, 40), random_.Int(1, 40)}, cols, random_);
    std::vector<WeightPart> parts = stack.parts();
    std::vector<std::vector<std::byte>> sources;
    for (WeightPart& part : parts) {
      sources.emplace_back(part.bytes.begin(), part.bytes.end());
      part.bytes = sources.back();
    }
    const Weight weight = device.CreateWeight(parts, cols, true).value();
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < stack.rows(); ++id) ids.push_back(id);
    const auto read = [&] {
      const Guarded<float> out(device, Poisoned(stack.rows() * cols));
      const Guarded<int32_t> id(device, ids);
      (void)device.Embed(Matrix(out, stack.rows(), cols), weight, id.data(), 1).value();
      return out.Read("embed");
    };
    const std::vector<float> before = read();
    for (size_t part = 0; part < parts.size(); ++part) {
      if (device.WeightBytes(std::span(&parts[part], 1), cols, true) == 0) continue;
      std::fill(sources[part].begin(), sources[part].end(), std::byte{0xff});
    }
    EXPECT_TRUE(SameBits(read(), before)) << stack.text();
  });
}

TEST_P(RowOps, GatherCopiesBits) {
  OnEveryVariant(20, [&](const Device& device) {
    const int64_t m = random_.Int(1, 20), n = random_.Int(1, 30), cols = random_.Int(1, 200);
    const std::vector<float> x = random_.Normals(m * cols);
    std::vector<int32_t> rows;
    std::vector<float> want;
    for (int64_t i = 0; i < n; ++i) {
      rows.push_back(static_cast<int32_t>(random_.Int(0, m - 1)));
      want.insert(want.end(), x.begin() + rows.back() * cols, x.begin() + (rows.back() + 1) * cols);
    }
    const bool back_guard = random_.Chance(0.5);
    const Guarded<float> in(device, x, back_guard), out(device, Poisoned(n * cols), back_guard);
    const Guarded<int32_t> index(device, rows, back_guard);
    (void)device.Gather(Matrix(out, n, cols), Matrix(in, m, cols), index.data()).value();
    EXPECT_TRUE(SameBits(out.Read("gather"), want)) << n << " of [" << m << ", " << cols << "]";
  });
}

// All terms of the mean are positive, so float32 sums keep their relative error small: 1e-5.
std::vector<double> NormTolerance(const std::vector<float>& want) {
  std::vector<double> tolerance;
  for (float value : want) tolerance.push_back(1e-5 * std::fabs(double{value}) + 1e-30);
  return tolerance;
}

TEST_P(RowOps, RmsNormAgreesAlsoInPlace) {
  OnEveryVariant(20, [&](const Device& device) {
    const int64_t n = random_.Int(1, 12), cols = random_.Int(1, 700);
    const std::vector<float> x = random_.Normals(n * cols, random_.Pick<double>({1e-3, 1, 100}));
    const std::vector<float> weight = random_.Normals(cols);
    const float eps = random_.Chance(0.5) ? 1e-5f : 1e-6f;
    const bool in_place = random_.Chance(0.5), back_guard = random_.Chance(0.5);
    const auto run = [&](const Device& on) {
      const Guarded<float> in(on, x, back_guard), w(on, weight, back_guard);
      const Guarded<float> out(on, Poisoned(n * cols), back_guard);
      const Guarded<float>& to = in_place ? in : out;
      (void)on
          .RmsNorm(Matrix(to, n, cols), Matrix(in, n, cols),
                   Tensor::Of(w.data(), DType::kF32, {cols}), eps)
          .value();
      if (!in_place) {
        EXPECT_TRUE(SameBits(in.Read("x"), x));
      }
      return to.Read("rms_norm");
    };
    const std::vector<float> want = run(Reference());
    ExpectWithin(device.plugin().name(), "rms_norm",
                 fmt::format("[{}, {}]{}", n, cols, in_place ? " in place" : ""), run(device), want,
                 NormTolerance(want));
  });
}

// exp and tanh by float32 approximations, and 1 + tanh near -1 keeps only absolute accuracy: 2e-6
// of |gate * up|.
TEST_P(RowOps, GatedActivationAgrees) {
  OnEveryVariant(20, [&](const Device& device) {
    const int64_t n = random_.Int(1, 12), width = random_.Int(1, 500);
    std::vector<float> gate_up = random_.Normals(n * 2 * width, 3);
    for (float& value : gate_up) {
      if (random_.Chance(0.01)) value *= 1000;  // exp must neither overflow nor give a NaN
      if (random_.Chance(0.01)) value = 0;
    }
    const auto activation = random_.Chance(0.5) ? ASHLAR_SILU : ASHLAR_GELU_TANH;
    const bool back_guard = random_.Chance(0.5);
    const auto run = [&](const Device& on) {
      const Guarded<float> in(on, gate_up, back_guard), out(on, Poisoned(n * width), back_guard);
      (void)on.GatedActivation(Matrix(out, n, width), Matrix(in, n, 2 * width), activation).value();
      EXPECT_TRUE(SameBits(in.Read("gate_up"), gate_up));
      return out.Read("gated_activation");
    };
    std::vector<double> tolerance;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t col = 0; col < width; ++col) {
        const float* row = gate_up.data() + i * 2 * width;
        tolerance.push_back(2e-6 * std::fabs(double{row[col]} * double{row[width + col]}) + 1e-30);
      }
    }
    ExpectWithin(device.plugin().name(), activation == ASHLAR_SILU ? "silu" : "gelu",
                 fmt::format("[{}, {}]", n, width), run(device), run(Reference()), tolerance);
  });
}

TEST_P(RowOps, AddIsExact) {
  OnEveryVariant(20, [&](const Device& device) {
    const int64_t n = random_.Int(1, 12), cols = random_.Int(1, 500);
    const std::vector<float> x = random_.Normals(n * cols);
    std::vector<float> want = random_.Normals(n * cols);
    const bool back_guard = random_.Chance(0.5);
    const Guarded<float> in(device, x, back_guard), sum(device, want, back_guard);
    (void)device.Add(Matrix(sum, n, cols), Matrix(in, n, cols)).value();
    for (size_t i = 0; i < want.size(); ++i) want[i] += x[i];
    EXPECT_TRUE(SameBits(sum.Read("sum"), want)) << "[" << n << ", " << cols << "]";
    EXPECT_TRUE(SameBits(in.Read("x"), x));
  });
}

TEST_P(RowOps, CopyBlocksMovesWholeBlocksOnly) {
  OnEveryVariant(10, [&](const Device& device) {
    const int64_t blocks = random_.Int(4, 20), bytes = random_.Int(1, 300), n = random_.Int(0, 4);
    std::vector<uint8_t> want;
    for (int64_t i = 0; i < blocks * bytes; ++i) {
      want.push_back(static_cast<uint8_t>(random_.Int(0, 255)));
    }
    const Guarded<uint8_t> arena(device, want);
    std::vector<int64_t> order, pairs;
    for (int64_t i = 0; i < blocks; ++i) order.push_back(i);
    random_.Shuffle(order);
    for (int64_t i = 0; i < std::min(n, blocks / 2); ++i) {
      const int64_t from = order[size_t(2 * i)] * bytes, to = order[size_t(2 * i + 1)] * bytes;
      pairs.insert(pairs.end(), {from, to});
      std::copy(want.begin() + from, want.begin() + from + bytes, want.begin() + to);
    }
    const Guarded<int64_t> offsets(device, pairs);
    (void)device.CopyBlocks(arena.data(), {offsets.data(), pairs.size()}, bytes).value();
    EXPECT_TRUE(SameBits(arena.Read("arena"), want));
  });
}

TEST_P(RowOps, MemoryIsZeroedAndAligned) {
  const auto device = Open();
  for (int64_t bytes : {1, 63, 64, 4097, 1 << 20}) {
    const Buffer buffer = device->Alloc(bytes).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    std::vector<std::byte> out(static_cast<size_t>(bytes), std::byte{1});
    ASSERT_TRUE(device->CopyOut(out, buffer.data()).ok());
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](std::byte b) { return b == std::byte{}; }));
  }
  EXPECT_FALSE(device->Alloc(-1).ok());
}

ASHLAR_PLUGIN_SUITE(RowOps);

}  // namespace
}  // namespace ashlar::testing

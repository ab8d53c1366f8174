// The products of a launch of whole layers on the host executor, against sums in double. Every
// product is checked on what it really read, so that no error hides behind an earlier one's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda/hopper_cluster.h"
#include "cuda/hopper_layers_product.h"

namespace ashlar::hopper {
namespace {

using namespace gpu_kernels;

constexpr uint32_t kSeed = 20;
constexpr uint32_t kFirstRound = 0xfffffffeu;  // as many launches leave it

struct Case {
  int hidden, qkv, heads, intermediate;  // widths; heads: what the attention hands on
  int layers, tokens, blocks;
  ashlar_activation activation = ASHLAR_SILU;
  bool bias = false;
  int pad = 0;               // elements of a row of the weight beyond cols
  int64_t room = 157 << 10;  // bytes
  ashlar_dtype weights = ASHLAR_BF16;
  // Deviation of what the first layer gets and of what attention hands on; each token's is 64
  // times that of the one before.
  float width = 1;
};

std::string TextOf(const Case& c) {
  return "hidden " + std::to_string(c.hidden) + " qkv " + std::to_string(c.qkv) + " heads " +
         std::to_string(c.heads) + " intermediate " + std::to_string(c.intermediate) + " layers " +
         std::to_string(c.layers) + " tokens " + std::to_string(c.tokens) + " blocks " +
         std::to_string(c.blocks) + (c.bias ? " bias" : "") + " room " + std::to_string(c.room) +
         " width " + std::to_string(c.width) + " pad " + std::to_string(c.pad) +
         (c.weights == ASHLAR_F8_E4M3 ? " float8" : "") + " seed " + std::to_string(kSeed);
}

class Layers {
 public:
  explicit Layers(const Case& c) : case_(c), random_(kSeed) {
    params_.layers = c.layers;
    params_.tokens = c.tokens;
    params_.weights = c.weights;
    params_.eps = 0.1f;
    params_.activation = c.activation;
    hidden_ = Values(c.hidden);
    attended_ = Values(c.heads);
    Shape(kQkv, c.qkv, c.hidden);
    Shape(kOutput, c.hidden, c.heads);
    Shape(kGateUp, 2 * c.intermediate, c.hidden);
    Shape(kDown, c.hidden, c.intermediate);
    params_.hidden = hidden_.data();
    params_.words = reinterpret_cast<uint32_t*>(words_.data());
    std::fill_n(params_.words, kMostWordBlocks, kFirstRound);
    for (int layer = 0; layer < c.layers; ++layer) Fill(params_.layer[layer]);
  }

  const LayersParams& params() const { return params_; }

  // Whether `got` is product `product` of `layer` on `x`, added to `before`.
  void Check(int layer, int product, const std::vector<BF16>& x, const std::vector<BF16>& before,
             const std::vector<BF16>& got) const {
    const LayerPlaces& places = params_.layer[layer];
    const float* bias = product == kQkv      ? places.bias[0]
                        : product == kOutput ? places.bias[1]
                                             : nullptr;
    const bool gated = product == kGateUp, adds = product == kOutput || product == kDown;
    const int rows = params_.product[product].rows / (gated ? 2 : 1);
    std::vector<std::vector<double>> operands;
    for (int token = 0; token < case_.tokens; ++token) {
      operands.push_back(OperandOf(layer, product, x, token));
    }
    for (int row = 0; row < rows; ++row) {
      const std::vector<double> weight = RowOf(layer, product, row);
      const std::vector<double> ups =
          gated ? RowOf(layer, product, rows + row) : std::vector<double>();
      for (int token = 0; token < case_.tokens; ++token) {
        Sum sum = SumOf(weight, operands[size_t(token)]);
        if (gated) sum = Gated(sum, SumOf(ups, operands[size_t(token)]));
        if (bias != nullptr) sum.value += bias[row];
        const auto at = size_t(token * rows + row);
        if (adds) sum.value += Load(before[at]);
        // Half a step of bfloat16, and sums in float.
        const double size = std::max(std::fabs(sum.value) + sum.near, 0x1p-120);
        const double step = std::ldexp(1, std::ilogb(size) - 7);
        const double near = step / 2 + sum.near;
        ASSERT_NEAR(Load(got[at]), sum.value, near * 1.001)
            << TextOf(case_) << ": layer " << layer << " product " << product << " token " << token
            << " row " << row;
      }
    }
  }

  void CheckAll() {
    std::vector<BF16> hidden = hidden_;
    if (case_.weights == ASHLAR_F8_E4M3) {
      Run<F8>();
    } else {
      Run<BF16>();
    }
    if (::testing::Test::HasFatalFailure()) return;
    for (int layer = 0; layer < case_.layers; ++layer) {
      const std::vector<BF16>* got = &results_[size_t(layer * kLayerProducts)];
      ASSERT_NO_FATAL_FAILURE(Check(layer, kQkv, hidden, {}, got[kQkv]));
      ASSERT_NO_FATAL_FAILURE(Check(layer, kOutput, attended_, hidden, got[kOutput]));
      ASSERT_NO_FATAL_FAILURE(Check(layer, kGateUp, got[kOutput], {}, got[kGateUp]));
      ASSERT_NO_FATAL_FAILURE(Check(layer, kDown, got[kGateUp], got[kOutput], got[kDown]));
      hidden = got[kDown];
    }
    for (size_t i = 0; i < hidden.size(); ++i) ASSERT_EQ(hidden_[i].bits, hidden[i].bits);
    // Other launches have more blocks.
    for (int block = 0; block < kMostWordBlocks; ++block) {
      ASSERT_EQ(params_.words[block], kFirstRound + uint32_t(case_.layers));
    }
  }

 private:
  struct Sum {
    double value = 0, near = 0;
  };

  std::vector<BF16> Values(int row) {
    std::normal_distribution<float> normal;
    std::vector<BF16> values;
    float width = case_.width;
    for (int token = 0; token < case_.tokens; ++token, width *= 64) {
      for (int i = 0; i < row; ++i) values.push_back(Store<BF16>(width * normal(random_)));
    }
    return values;
  }

  const float* Floats(int count, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    auto values = std::make_unique<gpu::Four[]>(size_t(count / 4 + 1));
    auto* floats = reinterpret_cast<float*>(values.get());
    for (int i = 0; i < count; ++i) floats[i] = uniform(random_);
    floats_.push_back(std::move(values));
    return floats;
  }

  void Shape(int product, int rows, int cols) {
    const int whole = 64 / ElementBytes(case_.weights);
    const int pitch = (cols + whole - 1) / whole * whole + case_.pad;
    params_.product[product] = {rows, cols, pitch};
  }

  // Zeros beyond cols; no byte after the last row. Of float8 some are subnormal.
  const void* Weights(const ProductShape& shape) {
    const bool f8 = case_.weights == ASHLAR_F8_E4M3;
    const float deviation = 1 / std::sqrt(static_cast<float>(shape.cols));
    std::normal_distribution<float> normal(0, f8 ? 0x1p-5f : deviation);
    const int64_t bytes = shape.rows * shape.pitch * ElementBytes(case_.weights);
    auto stored = std::make_unique<gpu::Vector[]>(size_t(bytes / 16));
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (int col = 0; col < shape.cols; ++col) {
        StoreAs(case_.weights, stored.get(), row * shape.pitch + col, normal(random_));
      }
    }
    weights_.push_back(std::move(stored));
    return weights_.back().get();
  }

  void Fill(LayerPlaces& places) {
    for (int i = 0; i < kLayerProducts; ++i) {
      const ProductShape& shape = params_.product[i];
      const float unit = 32 / std::sqrt(static_cast<float>(shape.cols));
      places.weight[i] = Weights(shape);
      if (case_.weights != ASHLAR_F8_E4M3) continue;
      places.scale[i] = Floats(shape.rows, 0.5f * unit, 2 * unit);
    }
    for (const float*& norm : places.norm) norm = Floats(case_.hidden, 0.2f, 2);
    if (!case_.bias) return;
    places.bias[0] = Floats(case_.qkv, -2, 2);
    places.bias[1] = Floats(case_.hidden, -2, 2);
  }

  template <class W>
  void Run() {
    const ProductsLayout layout = LayOutProducts(params_, case_.blocks, case_.room);
    ASSERT_GE(layout.stages, kLeastStages);
    ASSERT_LE(layout.all, case_.room);
    results_.assign(size_t(case_.layers * kLayerProducts), {});
    const auto body = [&] {
      LayerProducts<W> products(params_, layout, gpu::SharedMemory());
      products.Start();
      gpu::WaitForPrevious();
      const Rounds rounds(params_.words);
      for (int step = 0; step < params_.layers * kLayerProducts; ++step) {
        const int layer = step / kLayerProducts, product = step % kLayerProducts, next = step + 1;
        products.Run(layer, product, rounds);
        products.Refill();
        if (gpu::BlockX() == 0 && gpu::ThreadX() == 0) {
          results_[size_t(step)] = TakeOut(layout.words, product, rounds.Of(layer));
          if (product == kQkv) PutAttended(layout.words, rounds.Of(layer));
        }
        if (next < params_.layers * kLayerProducts) {
          products.Ahead(next / kLayerProducts, next % kLayerProducts);
        }
      }
      rounds.End(params_.layers, kProductThreads);
    };
    const auto blocks = static_cast<unsigned>(case_.blocks);
    gpu::RunGrid({blocks}, kProductThreads, size_t(layout.all), body, 1, true);
  }

  // By one thread, once all of it is there.
  std::vector<BF16> TakeOut(const WordPlaces& places, int product, uint32_t round) const {
    const int rows = params_.product[product].rows / (product == kGateUp ? 2 : 1);
    const uint64_t* words = ValuesOf(params_.words) + PlaceOfOut(places, product);
    gpu::AwaitRound(words, case_.tokens * rows / 2, round);
    std::vector<BF16> values;
    for (int i = 0; i < case_.tokens * rows; ++i) {
      const uint64_t word = words[WordOf(i / 2 * 2)];
      values.push_back({static_cast<uint16_t>(i % 2 == 0 ? word : word >> 16)});
    }
    return values;
  }
  // As attention, which has read all of qkv.
  void PutAttended(const WordPlaces& places, uint32_t round) {
    uint64_t* const to = ValuesOf(params_.words) + places.x[kOutput];
    for (int i = 0; i < int(attended_.size()); i += 2) {
      const auto at = size_t(i);
      WriteWord(to + WordOf(i), uint32_t{attended_[at + 1].bits} << 16 | attended_[at].bits, round);
    }
  }

  // What the weight is multiplied by.
  std::vector<double> OperandOf(int layer, int product, const std::vector<BF16>& x,
                                int token) const {
    const int cols = params_.product[product].cols;
    const float* norm = product == kQkv      ? params_.layer[layer].norm[0]
                        : product == kGateUp ? params_.layer[layer].norm[1]
                                             : nullptr;
    const double scale = norm == nullptr ? 1 : ScaleOf(cols, x, token);
    std::vector<double> operand;
    for (int col = 0; col < cols; ++col) {
      const float value = Load(x[size_t(token * cols + col)]);
      operand.push_back(scale * (norm == nullptr ? value : Load(Store<BF16>(value * norm[col]))));
    }
    return operand;
  }

  double ScaleOf(int cols, const std::vector<BF16>& x, int token) const {
    double squares = 0;
    for (int col = 0; col < cols; ++col) {
      const double value = Load(x[size_t(token * cols + col)]);
      squares += value * value;
    }
    return 1 / std::sqrt(squares / cols + params_.eps);
  }

  std::vector<double> RowOf(int layer, int product, int row) const {
    const ProductShape& shape = params_.product[product];
    const LayerPlaces& places = params_.layer[layer];
    const double scale = places.scale[product] == nullptr ? 1 : places.scale[product][row];
    std::vector<double> values;
    for (int col = 0; col < shape.cols; ++col) {
      const int64_t at = row * shape.pitch + col;
      values.push_back(scale * LoadAs(case_.weights, places.weight[product], at));
    }
    return values;
  }

  static Sum SumOf(const std::vector<double>& weight, const std::vector<double>& operand) {
    Sum sum;
    for (size_t i = 0; i < weight.size(); ++i) {
      const double product = weight[i] * operand[i];
      sum.value += product;
      sum.near += std::fabs(product);
    }
    sum.near *= 0x1p-20;
    return sum;
  }

  Sum Gated(const Sum& sum, const Sum& up) const {
    const double gate = Gate(sum.value), value = gate * up.value;
    return {value, 1.2 * sum.near * std::fabs(up.value) + std::fabs(gate) * up.near +
                       1e-5 * std::fabs(value)};
  }

  double Gate(double x) const {
    if (case_.activation == ASHLAR_SILU) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }

  const Case case_;
  std::mt19937 random_;
  LayersParams params_{};
  std::vector<BF16> hidden_, attended_;
  std::vector<uint64_t> words_ = std::vector<uint64_t>(kWordMemory / 2);
  std::vector<std::unique_ptr<gpu::Vector[]>> weights_;
  std::vector<std::unique_ptr<gpu::Four[]>> floats_;
  std::vector<std::vector<BF16>> results_;  // of every product of every layer, in order
};

LayersParams ParamsOf(int hidden, int qkv, int heads, int intermediate, int tokens) {
  LayersParams p{};
  p.layers = 1;
  p.tokens = tokens;
  p.weights = ASHLAR_BF16;
  p.product[kQkv] = {qkv, hidden, hidden};
  p.product[kOutput] = {hidden, heads, heads};
  p.product[kGateUp] = {2 * intermediate, hidden, hidden};
  p.product[kDown] = {hidden, intermediate, intermediate};
  return p;
}

TEST(LayerProducts, AreRightForEveryTokenCount) {
  for (int tokens = 1; tokens <= kMostLayerTokens; ++tokens) {
    Layers({.hidden = 192,
            .qkv = 160,
            .heads = 128,
            .intermediate = 320,
            .layers = tokens == 3 ? 2 : 1,
            .tokens = tokens,
            .blocks = 4,
            .bias = tokens % 2 == 0})
        .CheckAll();
    if (HasFatalFailure()) return;
  }
}

// One and two slices of a pass, passes after it, columns that end within a slice, and padding.
TEST(LayerProducts, AreRightOfFloat8) {
  for (int tokens = 1; tokens <= kMostLayerTokens; ++tokens) {
    Layers({.hidden = std::vector{192, 2112, 5184, 9536}[size_t(tokens - 1)],
            .qkv = 80,
            .heads = tokens == 1 ? 2880 : 128,
            .intermediate = 144,
            .layers = tokens == 1 ? 2 : 1,
            .tokens = tokens,
            .blocks = 8,
            .bias = tokens % 2 == 0,
            .pad = tokens % 2 * 64,
            .weights = ASHLAR_F8_E4M3})
        .CheckAll();
    if (HasFatalFailure()) return;
  }
}

// Far from what float16, in which it is multiplied, can hold; all zeros.
TEST(LayerProducts, AreRightOfFloat8WhateverXIs) {
  for (float width : {1e10f, 1e-12f, 1e-36f, 0.0f}) {
    Layers({.hidden = 320,
            .qkv = 80,
            .heads = 192,
            .intermediate = 144,
            .layers = 2,
            .tokens = 4,
            .blocks = 4,
            .weights = ASHLAR_F8_E4M3,
            .width = width})
        .CheckAll();
    if (HasFatalFailure()) return;
  }
}

// Every count of slices that a pass may have, and passes after it; gates in groups.
TEST(LayerProducts, AreRightWhateverAWaveHas) {
  for (const auto& [hidden, heads] : {std::pair(1024, 64), {1088, 2112}, {2944, 64}, {5184, 64}}) {
    Layers({.hidden = hidden,
            .qkv = 80,
            .heads = heads,
            .intermediate = 144,
            .layers = 1,
            .tokens = 2,
            .blocks = 8})
        .CheckAll();
    if (HasFatalFailure()) return;
  }
}

// The last with more than one pass in each group.
TEST(LayerProducts, AddUpInGroupsWhatDoesNotFitAtOnce) {
  for (int hidden : {64, 2112, 5184}) {
    Layers({.hidden = hidden,
            .qkv = 168,
            .heads = 64,
            .intermediate = hidden > 5000 ? 144 : 304,
            .layers = hidden > 5000 ? 1 : 2,
            .tokens = 4,
            .blocks = 1,
            .weights = hidden == 2112 ? ASHLAR_F8_E4M3 : ASHLAR_BF16})
        .CheckAll();
  }
}

// More stages than a layer has, the fewest, and between.
TEST(LayerProducts, AreRightWithRingsOfAnyDepth) {
  for (int stages = kLeastStages; stages <= kMostStages; stages += 6) {
    Case c{.hidden = 1152,
           .qkv = 96,
           .heads = 64,
           .intermediate = 128,
           .layers = 3,
           .tokens = 1,
           .blocks = 3};
    const ProductsLayout deep = LayOutProducts(ParamsOf(1152, 96, 64, 128, 1), c.blocks, 1 << 30);
    c.room = deep.all - (deep.stages - stages) * kProductWaves * kStageBytes;
    Layers layers(c);
    EXPECT_EQ(LayOutProducts(layers.params(), c.blocks, c.room).stages, stages);
    layers.CheckAll();
    if (HasFatalFailure()) return;
  }
}

TEST(LayerProducts, ShareRowsThatBlocksDoNotDivide) {
  Layers({.hidden = 576,
          .qkv = 960,
          .heads = 576,
          .intermediate = 1536,
          .layers = 1,
          .tokens = 1,
          .blocks = 7})
      .CheckAll();
  Layers({.hidden = 64,
          .qkv = 24,
          .heads = 64,
          .intermediate = 40,
          .layers = 3,
          .tokens = 3,
          .blocks = 8,
          .activation = ASHLAR_GELU_TANH})
      .CheckAll();
}

TEST(LayerProducts, ReadNothingBeyondThePitch) {
  for (int pad : {0, 64, 128}) {
    Layers({.hidden = 320,
            .qkv = 64,
            .heads = 192,
            .intermediate = 64,
            .layers = 1,
            .tokens = 1,
            .blocks = 4,
            .pad = pad})
        .CheckAll();
  }
}

TEST(LayOutProducts, LeavesMostOfABlocksRoomToTheRing) {
  constexpr int64_t kRoom = 157 << 10;
  for (int tokens = 1; tokens <= kMostLayerTokens; ++tokens) {
    const LayersParams p = ParamsOf(4096, 6144, 4096, 14336, tokens);
    const ProductsLayout l = LayOutProducts(p, 128, kRoom);
    EXPECT_GE(l.stages, tokens == 1 ? 8 : 7) << tokens;
    EXPECT_LE(l.all, kRoom);
  }
}

TEST(LayOutProducts, SharesEveryStrip) {
  for (int blocks : {1, 7, 16, 128}) {
    const LayersParams p = ParamsOf(576, 960, 576, 1536, 1);
    const ProductsLayout l = LayOutProducts(p, blocks, 157 << 10);
    EXPECT_EQ(l.share[kQkv].each * blocks + l.share[kQkv].more, 120);
    EXPECT_EQ(l.share[kGateUp].each * blocks + l.share[kGateUp].more, 192);
    EXPECT_LT(l.share[kQkv].more, blocks);
  }
}

TEST(LayOutProducts, HasNoRingWithoutRoomForTheFewestStages) {
  const LayersParams p = ParamsOf(1024, 4096, 2048, 3072, 1);
  EXPECT_EQ(LayOutProducts(p, 128, 64 << 10).stages, 0);
  EXPECT_EQ(LayOutProducts(p, 128, 0).stages, 0);
}

TEST(RefusesProducts, SaysWhy) {
  const LayersParams fine = ParamsOf(576, 960, 576, 1536, 4);
  EXPECT_EQ(RefusesProducts(fine), nullptr);
  const auto refused = [&](auto change) {
    LayersParams p = fine;
    change(p);
    const char* why = RefusesProducts(p);
    return std::string(why == nullptr ? "" : why);
  };
  EXPECT_NE(refused([](LayersParams& p) { p.tokens = 5; }).find("tokens"), std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.layers = 81; }).find("layers"), std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.product[kQkv].rows = 964; }).find("eights"),
            std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.product[kGateUp].rows = 3080; }).find("eights"),
            std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.product[kDown].cols = 1504; }).find("sixty-fours"),
            std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.product[kDown].pitch = 1552; }).find("64 bytes"),
            std::string::npos);
  const auto half = [](LayersParams& p) { p.product[kDown].pitch = 1568; };  // 64 bytes of bfloat16
  EXPECT_EQ(refused(half), "");
  EXPECT_NE(refused([&](LayersParams& p) { half(p), p.weights = ASHLAR_F8_E4M3; }).find("64 bytes"),
            std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.product[kDown].rows = 640; }).find("hidden"),
            std::string::npos);
  EXPECT_NE(refused([](LayersParams& p) { p.product[kQkv].rows = 8 << 17; }).find("words"),
            std::string::npos);
}

}  // namespace
}  // namespace ashlar::hopper

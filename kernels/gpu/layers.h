// Whole decoder layers of a step of few tokens in one launch, by what one architecture alone has: a
// token's products and attention, layer after layer, without a return to the stream.
#pragma once

#include <cstdint>
#include <memory>

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

inline constexpr int kMostLayers = 80;
inline constexpr int kMostLayerTokens = 4;

enum LayerProduct { kQkv = 0, kOutput, kGateUp, kDown, kLayerProducts };

// What one product is in every layer.
struct ProductShape {
  int rows, cols;  // of the weight: gates and ups together; cols a multiple of 64
  int64_t pitch;   // elements between rows of the weight, of whole 64 bytes; zeros beyond cols
};

// What differs from layer to layer.
struct LayerPlaces {
  const void* weight[kLayerProducts];  // gates before ups
  const float* scale[kLayerProducts];  // f32 [rows], what float8 rows are multiplied by; NULL of bfloat16
  const float* norm[2];                // f32 [hidden], ahead of kQkv and of kGateUp
  const float* bias[2];                // f32 [rows] of kQkv and of kOutput, or NULL
  const float *q_norm, *k_norm;        // f32 [head_dim], or NULL
  const float* inv_freq;               // [rotary_dim / 2], or NULL
  char* kv_base;
  const int32_t* block_table;  // [tokens, table_stride]
  const int64_t* slots;        // [tokens]
  int64_t table_stride;
  int32_t window;
};

// A launch. Each token is a sequence of its own. `hidden` is x of kQkv and of kGateUp, and what
// kOutput and kDown are added to and leave their answer in.
struct LayersParams {
  int layers, tokens;
  ashlar_dtype weights;  // of all products: bfloat16 or float8
  ProductShape product[kLayerProducts];
  float eps;
  ashlar_activation activation;
  // Of layer 0: what LayerPlaces does not name is that of every layer. Nothing is read of qkv,
  // q_out and the attention's out but their shapes.
  ashlar_qkv_prepare prepare;
  ashlar_attention attention;
  void* hidden;     // bfloat16 [tokens, hidden], dense and 16-byte aligned
  uint32_t* words;  // what blocks hand each other, as the launch before left it; zeros at first
  LayerPlaces layer[kMostLayers];
};

}  // namespace ashlar::gpu_kernels

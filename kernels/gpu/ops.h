// The ops of the table, one source file each. A launcher checks shapes and launches on the stream;
// tensors may be float32, float16 or bfloat16, each its own. With device->invariant each token's
// result is computed in one fixed order, alone or in a batch.
#pragma once

#include "ashlar_plugin.h"

namespace ashlar::gpu_kernels {

int Embed(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
          const ashlar_weight* weight, const int32_t* ids, float scale);
int Gather(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
           const int32_t* rows);
int RmsNorm(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
            ashlar_tensor weight, float eps);
int Matmul(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
           const ashlar_weight* weight, ashlar_tensor bias);
int Project(ashlar_device* device, ashlar_stream* stream, const ashlar_projection* args);
int QkvPrepare(ashlar_device* device, ashlar_stream* stream, const ashlar_qkv_prepare* args);
int Attention(ashlar_device* device, ashlar_stream* stream, int32_t row,
              const ashlar_attention* args);
int GatedActivation(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
                    ashlar_tensor gate_up, ashlar_activation activation);
int Add(ashlar_device* device, ashlar_stream* stream, ashlar_tensor sum, ashlar_tensor x);
int CopyBlocks(ashlar_device* device, ashlar_stream* stream, void* base, const int64_t* pairs,
               int32_t n, int64_t bytes);
int Sample(ashlar_device* device, ashlar_stream* stream, ashlar_tensor logits,
           const ashlar_draw* draws, int32_t* ids);
int ResolveIds(ashlar_device* device, ashlar_stream* stream, int32_t* ids, const int32_t* from,
               int32_t n);
int Layers(ashlar_device* device, ashlar_stream* stream, const ashlar_layer* layers, int32_t count,
           int32_t* taken);

}  // namespace ashlar::gpu_kernels

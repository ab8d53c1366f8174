// The ops of the C table as they are carried out here; all are batch-invariant, bf16 matmuls where
// the device says so.
#pragma once

#include "ashlar_plugin.h"
#include "device.h"
#include "weight.h"

namespace ashlar::cpu {

int Gather(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& x,
           const int32_t* rows);
int RmsNorm(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& x,
            const ashlar_tensor& weight, float eps);
int Matmul(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& x,
           const ashlar_weight& weight, const ashlar_tensor& bias);
int QkvPrepare(ashlar_device& device, const ashlar_qkv_prepare& args);
int Attention(ashlar_device& device, const ashlar_attention& args);
int GatedActivation(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& gate_up,
                    ashlar_activation activation);
int Add(ashlar_device& device, const ashlar_tensor& sum, const ashlar_tensor& x);
int CopyBlocks(ashlar_device& device, void* base, const int64_t* pairs, int32_t n, int64_t bytes);

}  // namespace ashlar::cpu

// Checks of whole argument lists, made before an op touches memory. Each returns "" or what is
// wrong.
#pragma once

#include <cstdint>
#include <string>

#include "ashlar_plugin.h"

namespace ashlar::gpu_kernels {

std::string CheckProject(const ashlar_projection& args);
std::string CheckPrepare(const ashlar_qkv_prepare& args);
std::string CheckAttention(int32_t row, const ashlar_attention& args);

// Whether two views are of one cache.
bool IsSame(const ashlar_kv_view& a, const ashlar_kv_view& b);
// Whether no row of one, as far as the next begins, is a row of the other too.
bool IsApart(const ashlar_tensor& a, const ashlar_tensor& b);

}  // namespace ashlar::gpu_kernels

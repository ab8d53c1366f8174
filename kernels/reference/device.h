// What an opened reference device is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ashlar_plugin.h"
#include "common/error.h"
#include "pool.h"

struct ashlar_device {
  ashlar::reference::Pool pool;
  std::vector<int64_t> launches;  // per row

  explicit ashlar_device(int threads);
};

namespace ashlar::reference {

int Probe(ashlar_probe* out);
int Open(const ashlar_open* args, ashlar_device** out);
void Close(ashlar_device* device);
int Alloc(ashlar_device* device, int64_t bytes, void** out);
void Release(ashlar_device* device, void* memory);
int Copy(ashlar_device* device, ashlar_stream* stream, void* to, const void* from, int64_t bytes);
int64_t RowLaunches(const ashlar_device* device, int32_t row);

}  // namespace ashlar::reference

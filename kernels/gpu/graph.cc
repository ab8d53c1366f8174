// Capture of a step as one launch. What a captured op reads at launch time is the memory that its
// pointers name, so a caller keeps arrays at fixed addresses and captures one graph a shape.
#include "device.h"

namespace ashlar::gpu_kernels {

int GraphBegin(ashlar_device* device, ashlar_stream* stream) {
  if (Checked(gpu::UseDevice(device->index), "graph_begin") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::BeginCapture(StreamOf(device, stream)), "graph_begin");
}

int GraphEnd(ashlar_device* device, ashlar_stream* stream, ashlar_graph** out) {
  gpu::Graph graph = nullptr;
  int code = Checked(gpu::EndCapture(StreamOf(device, stream), &graph), "graph_end");
  const int held = Checked(TakeHeldError(device), "qkv_prepare");
  if (code == ASHLAR_OK) code = held;
  *out = reinterpret_cast<ashlar_graph*>(graph);
  return code;
}

int GraphLaunch(ashlar_device* device, ashlar_stream* stream, ashlar_graph* graph) {
  if (Checked(gpu::UseDevice(device->index), "graph_launch") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::LaunchGraph(reinterpret_cast<gpu::Graph>(graph), StreamOf(device, stream)),
                 "graph_launch");
}

void GraphDestroy(ashlar_device* device, ashlar_graph* graph) {
  (void)gpu::UseDevice(device->index);
  (void)gpu::DestroyGraph(reinterpret_cast<gpu::Graph>(graph));
}

}  // namespace ashlar::gpu_kernels

// One safetensors file from anybody.
#include "checkpoint/formats.h"
#include "fuzz/checkpoint_invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  MappedFile file = MappedFile::Builtin("fuzz.safetensors", std::as_bytes(std::span(data, size)));
  Result<std::vector<TensorInfo>> tensors = ReadSafetensors(file, 0);
  if (!tensors) {
    Check(tensors.problems().size() == 1, "one cause, one problem");
    CheckProblems(tensors.problems());
    return 0;
  }
  CheckTensors(*tensors, std::span(&file, 1));
  return 0;
}

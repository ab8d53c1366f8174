// A GGUF from anybody: read, and when it is sound, understood as a model.
#include "checkpoint/formats.h"
#include "fuzz/checkpoint_invariants.h"
#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  Result<Checkpoint> read =
      ReadGguf(MappedFile::Builtin("fuzz.gguf", std::as_bytes(std::span(data, size))));
  if (!read) {
    Check(read.problems().size() == 1, "one cause, one problem");
    CheckProblems(read.problems());
    return 0;
  }
  CheckTensors(read->tensors, read->files);
  if (Result<ModelConfig> config = ReadModelConfig(*read); !config)
    CheckProblems(config.problems());
  return 0;
}

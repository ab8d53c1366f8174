// From a vLLM deployment to our ModelSpec: every flag is mapped, needs no counterpart, or is
// refused by name. Nothing is dropped in silence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ashlar {

struct ImportNote {
  enum class Outcome {
    kMapped,    // stands in the spec; the text says where meanings differ, or is ""
    kNeedless,  // decided by the plan, or always so here
    kRefused,   // changes what is served and has no counterpart
  };
  std::string flag;  // "--max-model-len 32k", "env VLLM_USE_V1": as it stands in the input
  Outcome outcome;
  std::string field;  // of the spec, when mapped
  std::string text;
};
std::string_view Name(ImportNote::Outcome outcome);  // mapped, needless, refused

struct Imported {
  Json document;                  // a ModelSpec that LoadSpec accepts
  std::vector<ImportNote> notes;  // in the order of the input
  std::string attention_backend;  // the one that vLLM was told to use, or ""
  std::string assume;             // of its installation: "connector=on,aiter=on", or ""
};

// Words of one command line: "vllm serve MODEL ...", "python -m vllm.entrypoints.openai.api_server
// ...", or the arguments alone.
Result<Imported> ImportCommand(const std::vector<std::string>& words);

// A Pod, a workload with a pod template, or a KServe LLMInferenceService, as YAML. `container`
// names one of several; "" takes the only one that runs vLLM. `name` stands for the file in
// messages.
Result<Imported> ImportManifest(std::string_view text, const std::string& name,
                                const std::string& container);

}  // namespace ashlar

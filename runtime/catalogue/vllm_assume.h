// From our own values to what the catalogue asks: a device, what is assumed to be installed on it,
// and a layer.
#pragma once

#include <string_view>

#include "catalogue/vllm.h"

namespace ashlar {

// What `--assume` states: facts of an installation that no probe can see.
struct VllmAssume {
  VllmFacts facts;  // only the installation; the machine is filled in by VllmFactsOf
  bool connector = false, batch_invariant = false;
  bool operator==(const VllmAssume&) const = default;
};

// "aiter=on,shuffle=on,connector=on,batchInvariant=on". `place` opens messages ("--assume").
Result<VllmAssume> ParseAssume(std::string_view text, const std::string& place);

// Refuses a platform that vLLM has no rows for.
Result<VllmFacts> VllmFactsOf(const DeviceInfo& device, const VllmAssume& assume);

// The attention kind stands for vLLM's type, the KV type of the model's own for "auto". Of latent
// attention the model stays unknown.
VllmRequest VllmRequestOf(const AttentionRequest& request, const VllmAssume& assume);

}  // namespace ashlar

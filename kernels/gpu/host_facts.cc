#include "host_backend.h"

namespace gpu {

// So few multiprocessors that small cases have more work than they, and as many as one cluster has
// blocks.
Error ReadFacts(int, Facts* facts) {
  *facts = {.multiprocessors = 16, .wave = ASHLAR_GPU_HOST_WAVE, .shared_bytes = 227 << 10};
  std::strcpy(facts->name, "host executor");
  return kSuccess;
}

}  // namespace gpu

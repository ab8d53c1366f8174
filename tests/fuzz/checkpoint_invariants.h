// What holds of every answer of the checkpoint readers, whatever the bytes were.
#pragma once

#include <span>

#include "base/check.h"
#include "checkpoint/checkpoint.h"

namespace ashlar {

inline void CheckProblems(const Problems& problems) {
  for (const Problem& problem : problems) {
    Check(!problem.place.empty() && !problem.found.empty() && !problem.allowed.empty() &&
              !problem.next.empty(),
          "a problem has four parts");
    Check(problem.Text().size() < 2000, "a message stays short");
  }
}

// Tensors lie inside their file, sorted by name, apart from each other.
inline void CheckTensors(std::span<const TensorInfo> tensors, std::span<const MappedFile> files) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    Check(i == 0 || tensors[i - 1].name < tensor.name, "names rise");
    const uint64_t size = files[static_cast<size_t>(tensor.file)].bytes().size();
    Check(tensor.bytes > 0 && tensor.bytes <= size && tensor.offset <= size - tensor.bytes,
          "a tensor lies inside its file");
    for (size_t j = 0; j < i && j < 8; ++j) {
      Check(tensors[j].file != tensor.file ||
                tensors[j].offset + tensors[j].bytes <= tensor.offset ||
                tensor.offset + tensor.bytes <= tensors[j].offset,
            "tensors do not overlap");
    }
  }
}

}  // namespace ashlar

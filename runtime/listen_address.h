// Where a document that is no spec says that the server listens.
#pragma once

#include <string>

#include "spec/spec.h"

namespace ashlar {

// `server.host` and `server.port` of a ModelSpec or of an InferenceModel's `spec.model`, as far as
// the document is YAML and they are right themselves; what is not so keeps its default.
Spec::Server ReadListenAddress(const std::string& path);

}  // namespace ashlar

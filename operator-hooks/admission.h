// Admission in the words of the condition Accepted, before a resource is stored.
#pragma once

#include <string>

#include "operator-hooks/json_reader.h"
#include "operator-hooks/settings.h"

namespace ashlar::hooks {

// The answer to an AdmissionReview (admission.k8s.io/v1) of an InferenceModel, as JSON. Refuses
// only what no node of any cluster could serve: nodes may come after their models. A change that
// leaves the model and its wishes as they are always passes, so that what is stored can be scaled,
// suspended and deleted whatever it is. A body that is no such review adds problems.
std::string ReviewAdmission(JsonElement review, const Settings& settings, Problems& problems);

}  // namespace ashlar::hooks

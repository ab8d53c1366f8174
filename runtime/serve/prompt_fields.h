// Fields that hold tokens: prompts, stop strings and ids, logit_bias.
#pragma once

#include <vector>

#include "serve/field_reader.h"
#include "serve/openai_request.h"

namespace ashlar {

// `prompt`: a string, several, one list of ids or several; never a mixture.
std::vector<Prompt> ReadPrompts(FieldReader& fields, const RequestLimits& limits);
// `stop` and `stop_token_ids`.
void ReadStops(FieldReader& fields, const RequestLimits& limits, ApiRequest& request);
// `logit_bias`: ids as strings, as JSON names are.
void ReadLogitBias(FieldReader& fields, const RequestLimits& limits, Sampling& sampling);

}  // namespace ashlar

#include "serve/other_fields.h"

#include <algorithm>
#include <set>

namespace ashlar {

void ReadOtherFields(FieldReader& fields, Endpoint endpoint) {
  for (const RefusedField& row : kRefusedFields) {
    const Json* value = fields.Find(row.name);
    if (value == nullptr) continue;
    Json neutral = Json::parse(row.neutral);
    if (std::find(neutral.begin(), neutral.end(), *value) != neutral.end()) continue;
    fields.Fail(ErrorCode::kUnsupported, row.name, Quoted(*value),
                "this build does not do " + std::string(row.what), "leave it out");
  }
  if (endpoint == Endpoint::kCompletions && fields.Find("messages") != nullptr) {
    fields.Fail(ErrorCode::kUnknownField, "messages", "it belongs to chat", "prompt on this path",
                "post it to /v1/chat/completions");
  }
  if (endpoint == Endpoint::kChat && fields.Find("prompt") != nullptr) {
    fields.Fail(ErrorCode::kUnknownField, "prompt", "it belongs to completions",
                "messages on this path", "post it to /v1/completions");
  }
  fields.RefuseUnknown({kIgnoredFields.begin(), kIgnoredFields.end()});
}

}  // namespace ashlar

// The messages of a chat request as the variables of a chat template.
#pragma once

#include "serve/field_reader.h"
#include "serve/openai_request.h"

namespace ashlar {

// {messages, tools, documents, add_generation_prompt, ...chat_template_kwargs}. Text parts are
// joined with line breaks, the role developer becomes system, and a tool call's arguments become an
// object where they are one, as templates expect. Members of a message that a template does not
// need are dropped.
Json ReadChatDocument(FieldReader& fields, const RequestLimits& limits);

}  // namespace ashlar

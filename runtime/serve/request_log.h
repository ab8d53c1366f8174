// One line of the log for each request to the API and each one that never got there. Never what a
// request said or what was answered.
#pragma once

#include <string_view>

#include "http/server.h"

namespace ashlar {

// "POST /v1/completions 200 0.123 s from 10.0.0.7, id req-...: 12 + 16 tokens". `note` comes last,
// unless empty. Any thread.
void LogRequest(const HttpRequest& request, int status, double seconds, std::string_view id,
                std::string_view note);

// For a request that was refused before a handler saw it.
void LogRefusal(const HttpRequest& request, int status, std::string_view reason);

}  // namespace ashlar

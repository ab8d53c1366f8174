#include "serve/request_log.h"

#include "base/log.h"

namespace ashlar {
namespace {

constexpr size_t kPathBytes = 128;  // longer ones are nobody's path

std::string_view Shown(const std::string& part) {
  return part.empty() ? std::string_view("-") : std::string_view(part).substr(0, kPathBytes);
}

}  // namespace

void LogRequest(const HttpRequest& request, int status, double seconds, std::string_view id,
                std::string_view note) {
  LogInfo("http", "{} {} {} {:.3f} s from {}, id {}{}{}", Shown(request.method),
          Shown(request.path), status, seconds, request.peer, id, note.empty() ? "" : ": ", note);
}

void LogRefusal(const HttpRequest& request, int status, std::string_view reason) {
  LogInfo("http", "{} {} {} from {}: {}", Shown(request.method), Shown(request.path), status,
          request.peer, reason);
}

}  // namespace ashlar

// Who may use the API: the keys of one file, one a line. Immutable after loading.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "http/server.h"

namespace ashlar {

class ApiKeys {
 public:
  ApiKeys() = default;  // no keys: everyone may
  // Blank lines are skipped. A file without a key, and a key with a space or control character in
  // it, are refused; messages never quote a key.
  static Result<ApiKeys> Load(const std::string& path);

  // Whether `Authorization: Bearer KEY` names one of the keys. Takes the same time for every wrong
  // key.
  bool Admits(std::string_view authorization) const;
  // Whether the path asks for a key: all do but health, metrics and status.
  static bool Guards(std::string_view path);

 private:
  std::vector<Sha256Digest> digests_;
};

}  // namespace ashlar

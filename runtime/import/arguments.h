// vLLM's arguments, read as its own parser reads them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "import/import.h"

namespace ashlar {

// Collects the spec while arguments, manifest fields and variables are read.
class Importer {
 public:
  // `place` opens the messages of mistakes: "arguments", "pod.yaml container main".
  explicit Importer(std::string place) : place_(std::move(place)) {}

  // The arguments after the program's own words; the first positional one is the model.
  void Arguments(const std::vector<std::string>& words);
  // One flag as if it stood there; `shown` is what the note calls it.
  void Flag(std::string_view name, const std::string& value, const std::string& shown);
  void Note(ImportNote note) { notes_.push_back(std::move(note)); }
  void Model(const std::string& model, const std::string& shown);
  // Sets `field` ("kv.blockSize") unless it is set: what was said first wins.
  void Set(std::string_view field, Json value);
  // A fact of vLLM's installation, as `plan --assume` takes it.
  void Assume(std::string_view name, bool on);
  void Mistake(std::string found, std::string allowed, std::string next);
  const std::string& place() const { return place_; }

  Result<Imported> Finish();

 private:
  class Words;
  void Positional(const std::string& word);
  void Argument(Words& words);

  std::string place_;
  Json document_ = Json::object();
  bool model_named_ = false;  // by the arguments
  std::vector<ImportNote> notes_;
  std::string attention_backend_, assume_;
  Problems problems_;
};

}  // namespace ashlar

// The readers behind OpenCheckpoint, each over bytes that may hold anything. Memory used stays in
// proportion to the bytes read, whatever counts and sizes they state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace ashlar {

// Metadata and directory of a GGUF version 3. Touches only the header's bytes.
Result<Checkpoint> ReadGguf(MappedFile file);

// Directory of one safetensors file, sorted by name; `index` becomes TensorInfo::file.
Result<std::vector<TensorInfo>> ReadSafetensors(const MappedFile& file, int index);

// Which shard holds which tensor: model.safetensors.index.json.
Result<std::map<std::string, std::string>> ReadSafetensorsIndex(std::string_view text,
                                                                const std::string& path);

// The files of a Hugging Face model, on disk or in the binary.
class ModelFolder {
 public:
  virtual ~ModelFolder() = default;
  virtual const std::string& path() const = 0;
  // Names of the files directly inside, sorted.
  virtual const std::vector<std::string>& names() const = 0;
  virtual Result<MappedFile> Map(const std::string& name) const = 0;

  bool Has(std::string_view name) const;
};
Result<std::unique_ptr<ModelFolder>> OpenDiskFolder(const std::string& path);

// config.json, the weights if there are any, the tokenizer's files; every mistake in one report.
Result<Checkpoint> ReadModelFolder(const ModelFolder& folder);
// config.json by itself: Format::kConfigOnly.
Result<Checkpoint> ReadConfigAlone(const MappedFile& file);

}  // namespace ashlar

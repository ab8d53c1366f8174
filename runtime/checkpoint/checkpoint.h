// A model's files: their metadata and tensor directory. Nothing is copied; tensors are views of
// mapped files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/result.h"

namespace ashlar {

struct TensorInfo {
  std::string name;  // as in the file
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // outermost first; a matrix is [rows, cols]
  int file = 0;                // index into Checkpoint::files
  uint64_t offset = 0, bytes = 0;
};

// Values of GGUF metadata. Arrays of strings and numbers are kept whole; the tokenizer's are large.
using GgufValue =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<std::string>,
                 std::vector<int64_t>, std::vector<double>, std::vector<bool>>;

struct Checkpoint {
  enum class Format { kConfigOnly, kSafetensors, kGguf };

  Format format = Format::kConfigOnly;
  std::string path;                       // what the user named, or "builtin:demo"
  Json config;                            // config.json; null for GGUF
  std::optional<Json> generation_config;  // generation_config.json
  std::map<std::string, GgufValue> gguf;  // metadata of a GGUF
  std::vector<MappedFile> files;
  bool on_disk = false;             // `files` are mapped: pages let go of can be read again
  std::vector<TensorInfo> tensors;  // sorted by name

  // Tokenizer of a Hugging Face folder; a GGUF keeps its own in `gguf` under tokenizer.*.
  std::string tokenizer_json;
  std::string chat_template;  // from chat_template.jinja or tokenizer_config.json
  std::optional<Json> tokenizer_config;

  const TensorInfo* Find(std::string_view name) const;
  std::span<const std::byte> Bytes(const TensorInfo& tensor) const;
  int64_t total_bytes() const;  // of all tensors
};

// `path` is a .gguf, a directory with config.json and *.safetensors, or a config.json alone.
Result<Checkpoint> OpenCheckpoint(const std::string& path);
// "demo": linked into the binary.
Result<Checkpoint> OpenBuiltinCheckpoint(const std::string& name);
std::vector<std::string> BuiltinCheckpointNames();

}  // namespace ashlar

// The user's ModelSpec as plain members with their defaults. Immutable after loading. docs/spec.md
// describes each field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ashlar {

// Where each field stands, so that later stages can point at it: field path ("kv.blockSize") ->
// "model.yaml:12:15".
class Origins {
 public:
  void Set(std::string field, std::string where) { where_[std::move(field)] = std::move(where); }
  // "model.yaml:12:15 kv.blockSize", or "model.yaml kv.blockSize" when the field is not in the
  // document. From a manifest: "spec.model.kv.blockSize (model.yaml:12:15)".
  std::string Place(const std::string& field) const;
  bool Has(const std::string& field) const { return where_.contains(field); }
  void SetDocument(std::string name) { document_ = std::move(name); }
  // Path of the ModelSpec inside its manifest: "spec.model", or "" when it is a document of its
  // own.
  void SetPrefix(std::string prefix) { prefix_ = std::move(prefix); }

 private:
  std::string document_;
  std::string prefix_;
  std::map<std::string, std::string> where_;
};

// What the user says of the backend of one KV group, one kind, or all ("default").
struct BackendChoice {
  std::string use;                  // forced: this row or a refusal
  std::vector<std::string> prefer;  // tried first, in order
  std::vector<std::string> forbid;  // never chosen
};

// A share of what is free, or an amount.
struct MemoryAmount {
  std::optional<int> percent;
  std::optional<int64_t> bytes;
};

struct Spec {
  std::string name;  // served model name; default: the stem of the source

  struct Source {
    std::string path;     // a .gguf, a directory of safetensors, or a config.json (plan only)
    std::string builtin;  // "demo"
    std::optional<Json> config;
  } source;

  std::string platform = "auto";  // auto | cuda | hip | cpu | reference
  struct Parallel {
    int tensor = 1, pipeline = 1;
  } parallel;
  struct Cpu {
    int threads = 0;  // 0: all that the process may use
  } cpu;
  std::optional<int64_t> context_length;  // tokens
  bool invariant = false;                 // numerics: invariant
  std::string quantization = "auto";      // auto | fp8

  struct Kv {
    int block_size = 0;  // tokens, 0: auto
    std::string dtype = "auto";
    std::string layout = "auto";
    MemoryAmount memory{.percent = 80, .bytes = std::nullopt};
    bool prefix_cache = true;
  } kv;

  std::map<std::string, BackendChoice> backends;  // "default", a kind, or a group name

  struct Limits {
    int sequences = 64;       // running together
    int batch_tokens = 2048;  // in one step
    int64_t queued_tokens = 200'000;
    int queued_requests = 1024;
    int queue_seconds = 30;  // the oldest wait; over it 429
    int messages = 2048;     // in one chat request
    int prompts = 64;        // in one completion request
    int choices = 16;        // n and best_of of one request
  } limits;

  struct Server {
    std::string host = "0.0.0.0";
    int port = 8000;
    std::string api_key_file;
    int connections = 256;  // served at once
    int64_t body_bytes = 8 << 20;
    int head_seconds = 10, body_seconds = 30, idle_seconds = 75, stuck_reader_seconds = 60;
    int lame_duck_seconds = 5;  // after SIGTERM: unready but still accepting
    int drain_seconds = 45;     // then: for running requests to end
  } server;

  Origins origins;
  std::string document;  // canonical JSON of the ModelSpec document, what the digest is taken over
  std::string digest;    // SHA-256 of `document`, hex
};

// Reads `text` as a ModelSpec or as a whole InferenceModel manifest (then `spec.model`; what stands
// beside it is the operator's and is not judged), strictly.
// `name` stands for the file in messages. Reports every mistake it can find in one go. Reads no
// file but the text given.
Result<Spec> LoadSpec(std::string_view text, const std::string& name);
// The same from a file of at most 256 KiB.
Result<Spec> LoadSpecFile(const std::string& path);

// One row per field of the document: the reference docs, the CRD schema and the agreement test read
// it.
struct SpecField {
  std::string path;      // "kv.blockSize"; "backends.*" for a map
  std::string type;      // string | integer | boolean | object | map | stringList | intOrString
  std::string allowed;   // as in messages: "auto, cuda, hip, cpu or reference"
  std::string fallback;  // default as text
};
const std::vector<SpecField>& SpecFields();

}  // namespace ashlar

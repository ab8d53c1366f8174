#include "import/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "spec/scalar.h"

namespace ashlar {
namespace {

using enum ImportNote::Outcome;
using enum Takes;

Conversion Mapped(Json value, std::string text = "") {
  return {kMapped, std::move(value), std::move(text)};
}
Conversion Needless(std::string text) { return {kNeedless, nullptr, std::move(text)}; }
Conversion Refused(std::string text) { return {kRefused, nullptr, std::move(text)}; }

Conversion Text(const std::string& value) { return Mapped(value); }

Conversion Integer(const std::string& value) {
  std::optional<int64_t> number = StrictInteger(value);
  return number ? Mapped(*number) : Refused("is not an integer");
}

// 32k is 32,000 and 32K is 32,768; -1 and auto leave it to the model.
Conversion Tokens(const std::string& value) {
  if (value == "-1" || value == "auto") return Needless("automatic by default");
  char* end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  std::string_view unit = end;
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
      {{"", 1}, {"k", 1e3}, {"K", 1024}, {"m", 1e6}, {"M", 1024 * 1024}}};
  for (auto [name, factor] : kUnits) {
    double tokens = number * factor;
    if (end != value.c_str() && unit == name && tokens >= 1 && tokens < 1e12)
      return Mapped(static_cast<int64_t>(std::llround(tokens)));
  }
  return Refused("is not a number of tokens such as 8192 or 32k");
}

Conversion Share(const std::string& value) {
  char* end = nullptr;
  double share = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || *end != 0 || !(share > 0 && share <= 1))
    return Refused("is not a share above 0 and up to 1");
  return Mapped(fmt::format("{}%", std::max(1, static_cast<int>(std::lround(share * 100)))),
                "vLLM counts weights in; here it is a share of what is free after them");
}

Conversion Bytes(const std::string& value) {
  std::optional<int64_t> bytes = StrictInteger(value);
  if (!bytes || *bytes < 1024) return Refused("is not a number of bytes of at least 1024");
  return Mapped(fmt::format("{}KiB", *bytes / 1024), *bytes % 1024 == 0 ? "" : "in whole KiB");
}

Conversion Block(const std::string& value) {
  if (value == "None" || value == "auto") return Needless("automatic by default");
  return Integer(value);
}

Conversion KvDType(const std::string& value) {
  if (value == "auto") return Needless("automatic by default");
  if (value == "bfloat16" || value == "float16") return Mapped(value);
  if (value == "fp8" || value == "fp8_e4m3") return Mapped("float8_e4m3", "without scales");
  return Refused("no cache of this type; auto, float16, bfloat16 and fp8_e4m3 are here");
}

Conversion DType(const std::string& value) {
  if (value == "auto") return Needless("the checkpoint's own type is kept");
  return Refused("weights keep the type of the checkpoint; convert the checkpoint");
}

Conversion Quantization(const std::string& value) {
  if (value == "fp8") return Mapped(value, "an fp8 checkpoint is told from its files instead");
  return Needless("told from the checkpoint");
}

// `only` is what is always so here.
Conversion Only(const std::string& value, std::string_view only, std::string text) {
  return value == only ? Needless("always so here") : Refused(std::move(text));
}
Conversion OneReplica(const std::string& value) {
  return Only(value, "1", "replicas of the InferenceModel, or of the Deployment, do that");
}
Conversion Fcfs(const std::string& value) {
  return Only(value, "fcfs", "requests are taken in the order of arrival");
}
Conversion Generate(const std::string& value) {
  if (value == "auto" || value == "generate") return Needless("always so here");
  return Refused("only text generation is served");
}
Conversion LoadFormat(const std::string& value) {
  if (value == "auto" || value == "safetensors" || value == "gguf")
    return Needless("told from the files");
  return Refused("safetensors and GGUF are read");
}
Conversion Backend(const std::string&) {
  return Needless("backends are chosen for each KV group; `ashlar plan` explains them");
}

constexpr std::string_view kByPlan = "decided by the plan";
constexpr std::string_view kAlways = "always so here";
constexpr std::string_view kLogs = "one log line a request, on stderr";
constexpr std::string_view kNoLora = "LoRA adapters are not served";
constexpr std::string_view kNoDraft = "speculative decoding is not there";
constexpr std::string_view kNoTransfer = "KV transfer between servers is not there";
constexpr std::string_view kNoImages = "models take text only";
constexpr std::string_view kOneHost = "a plan uses one host";
constexpr std::string_view kNoTls = "end TLS in front of the server: Ingress, Gateway or a mesh";
constexpr std::string_view kOwnTemplate =
    "the checkpoint's own chat template is used; put it there";
constexpr std::string_view kNoCode = "code from checkpoints is never run";

constexpr Flag kFlags[] = {
    {"allow-credentials", "", kNothing, kRefused, "", nullptr, "no CORS headers are sent"},
    {"allowed-headers", "", kValue, kRefused, "", nullptr, "no CORS headers are sent"},
    {"allowed-local-media-path", "", kValue, kRefused, "", nullptr, kNoImages},
    {"allowed-methods", "", kValue, kRefused, "", nullptr, "no CORS headers are sent"},
    {"allowed-origins", "", kValue, kRefused, "", nullptr, "no CORS headers are sent"},
    {"api-key", "", kValues, kRefused, "", nullptr,
     "keys are read from a file, one a line: server.apiKeyFile"},
    {"api-server-count", "", kValue, kNeedless, "", nullptr, "one process serves"},
    {"async-scheduling", "", kNothing, kNeedless, "", nullptr, kByPlan},
    {"attention-backend", "", kValue, kNeedless, "", Backend, ""},
    {"attention-config", "", kValue, kNeedless, "", Backend, ""},
    {"block-size", "", kValue, kMapped, "kv.blockSize", Block, ""},
    {"calculate-kv-scales", "", kNothing, kRefused, "", nullptr, "the cache is not quantised"},
    {"chat-template", "", kValue, kRefused, "", nullptr, kOwnTemplate},
    {"chat-template-content-format", "", kValue, kNeedless, "", nullptr, "told from the template"},
    {"code-revision", "", kValue, kNeedless, "", nullptr, kNoCode},
    {"compilation-config", "O", kValue, kNeedless, "", nullptr, kByPlan},
    {"config", "", kValue, kRefused, "", nullptr, "give the flags of that file"},
    {"config-format", "", kValue, kNeedless, "", nullptr, "told from the files"},
    {"convert", "", kValue, kNeedless, "", Generate, ""},
    {"cpu-offload-gb", "", kValue, kRefused, "", nullptr, "weights stay on the device"},
    {"cuda-graph-sizes", "", kValues, kNeedless, "", nullptr, kByPlan},
    {"data-parallel-size", "dp", kValue, kNeedless, "", OneReplica, ""},
    {"decode-context-parallel-size", "dcp", kValue, kNeedless, "", OneReplica, ""},
    {"disable-access-log-for-endpoints", "", kValue, kNeedless, "", nullptr, kLogs},
    {"disable-cascade-attn", "", kNothing, kNeedless, "", nullptr, kByPlan},
    {"disable-custom-all-reduce", "", kNothing, kNeedless, "", nullptr, kByPlan},
    {"disable-fastapi-docs", "", kNothing, kNeedless, "", nullptr, kAlways},
    {"disable-frontend-multiprocessing", "", kNothing, kNeedless, "", nullptr, kAlways},
    {"disable-hybrid-kv-cache-manager", "", kNothing, kNeedless, "", nullptr,
     "each KV group has its own pool"},
    {"disable-log-requests", "", kNothing, kNeedless, "", nullptr, kLogs},
    {"disable-log-stats", "", kNothing, kNeedless, "", nullptr, "see /metrics"},
    {"disable-sliding-window", "", kNothing, kRefused, "", nullptr, "the model's windows are kept"},
    {"disable-uvicorn-access-log", "", kNothing, kNeedless, "", nullptr, kLogs},
    {"distributed-executor-backend", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"download-dir", "", kValue, kNeedless, "", nullptr, "nothing is downloaded at start"},
    {"dtype", "", kValue, kNeedless, "", DType, ""},
    {"enable-auto-tool-choice", "", kNothing, kRefused, "", nullptr, "tool calls are not parsed"},
    {"enable-chunked-prefill", "", kNothing, kNeedless, "", nullptr, kAlways},
    {"enable-dbo", "", kNothing, kNeedless, "", nullptr, kByPlan},
    {"enable-expert-parallel", "ep", kNothing, kNeedless, "", nullptr, kByPlan},
    {"enable-force-include-usage", "", kNothing, kRefused, "", nullptr,
     "usage is sent when a request asks: stream_options.include_usage"},
    {"enable-log-requests", "", kNothing, kNeedless, "", nullptr, kLogs},
    {"enable-lora", "", kNothing, kRefused, "", nullptr, kNoLora},
    {"enable-prefix-caching", "", kNothing, kMapped, "kv.prefixCache", nullptr, ""},
    {"enable-prompt-tokens-details", "", kNothing, kNeedless, "", nullptr, kAlways},
    {"enable-server-load-tracking", "", kNothing, kNeedless, "", nullptr, "see /metrics"},
    {"enable-sleep-mode", "", kNothing, kRefused, "", nullptr, "scale the InferenceModel to 0"},
    {"enforce-eager", "", kNothing, kNeedless, "", nullptr, kByPlan},
    {"generation-config", "", kValue, kNeedless, "", nullptr,
     "end ids are read from it; a request's other defaults are the OpenAI API's"},
    {"gpu-memory-utilization", "", kValue, kMapped, "kv.memory", Share, ""},
    {"headless", "", kNothing, kRefused, "", nullptr, kOneHost},
    {"hf-config-path", "", kValue, kRefused, "", nullptr,
     "state the geometry as source.config, or put config.json beside the weights"},
    {"hf-overrides", "", kValue, kRefused, "", nullptr, "change the checkpoint's config.json"},
    {"hf-token", "", kValue, kNeedless, "", nullptr, "nothing is downloaded at start"},
    {"host", "", kValue, kMapped, "server.host", Text, ""},
    {"io-processor-plugin", "", kValue, kRefused, "", nullptr, kNoCode},
    {"kv-cache-dtype", "", kValue, kMapped, "kv.dtype", KvDType, ""},
    {"kv-cache-memory-bytes", "", kValue, kMapped, "kv.memory", Bytes, ""},
    {"kv-events-config", "", kValue, kRefused, "", nullptr, "no events are published"},
    {"kv-offloading-backend", "", kValue, kRefused, "", nullptr, "blocks stay on the device"},
    {"kv-offloading-size", "", kValue, kRefused, "", nullptr, "blocks stay on the device"},
    {"kv-sharing-fast-prefill", "", kNothing, kNeedless, "", nullptr, kByPlan},
    {"kv-transfer-config", "", kValue, kRefused, "", nullptr, kNoTransfer},
    {"limit-mm-per-prompt", "", kValue, kRefused, "", nullptr, kNoImages},
    {"load-format", "", kValue, kNeedless, "", LoadFormat, ""},
    {"log-config-file", "", kValue, kNeedless, "", nullptr, kLogs},
    {"logits-processors", "", kValues, kRefused, "", nullptr, kNoCode},
    {"long-prefill-token-threshold", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"lora-modules", "", kValues, kRefused, "", nullptr, kNoLora},
    {"mamba-block-size", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"mamba-cache-dtype", "", kValue, kRefused, "", nullptr, "states keep the model's types"},
    {"mamba-ssm-cache-dtype", "", kValue, kRefused, "", nullptr, "states keep the model's types"},
    {"master-addr", "", kValue, kRefused, "", nullptr, kOneHost},
    {"max-cpu-loras", "", kValue, kRefused, "", nullptr, kNoLora},
    {"max-log-len", "", kValue, kNeedless, "", nullptr, "prompts are never logged"},
    {"max-logprobs", "", kValue, kNeedless, "", nullptr, "up to 20, as the OpenAI API has it"},
    {"max-lora-rank", "", kValue, kRefused, "", nullptr, kNoLora},
    {"max-loras", "", kValue, kRefused, "", nullptr, kNoLora},
    {"max-model-len", "", kValue, kMapped, "contextLength", Tokens, ""},
    {"max-num-batched-tokens", "", kValue, kMapped, "limits.batchTokens", Tokens, ""},
    {"max-num-partial-prefills", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"max-num-seqs", "", kValue, kMapped, "limits.sequences", Integer, ""},
    {"max-parallel-loading-workers", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"max-seq-len-to-capture", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"middleware", "", kValues, kRefused, "", nullptr, kNoCode},
    {"mm-encoder-tp-mode", "", kValue, kRefused, "", nullptr, kNoImages},
    {"mm-processor-cache-gb", "", kValue, kRefused, "", nullptr, kNoImages},
    {"mm-processor-kwargs", "", kValue, kRefused, "", nullptr, kNoImages},
    {"model", "", kValue, kMapped, "source.path", nullptr, ""},
    {"model-impl", "", kValue, kNeedless, "", nullptr, "models are Ashlar's own"},
    {"nnodes", "n", kValue, kNeedless, "", OneReplica, ""},
    {"node-rank", "r", kValue, kRefused, "", nullptr, kOneHost},
    {"num-gpu-blocks-override", "", kValue, kRefused, "", nullptr,
     "the number of blocks follows from kv.memory"},
    {"otlp-traces-endpoint", "", kValue, kRefused, "", nullptr, "no traces are sent"},
    {"override-generation-config", "", kValue, kRefused, "", nullptr,
     "requests state their own sampling"},
    {"pipeline-parallel-size", "pp", kValue, kMapped, "parallel.pipeline", Integer, ""},
    {"port", "", kValue, kMapped, "server.port", Integer, ""},
    {"prefill-context-parallel-size", "pcp", kValue, kNeedless, "", OneReplica, ""},
    {"prefix-caching-hash-algo", "", kValue, kNeedless, "", nullptr, kAlways},
    {"quantization", "q", kValue, kMapped, "quantization", Quantization, ""},
    {"reasoning-parser", "", kValue, kRefused, "", nullptr, "reasoning stays in the text"},
    {"return-tokens-as-token-ids", "", kNothing, kRefused, "", nullptr,
     "requests ask for ids: return_token_ids"},
    {"revision", "", kValue, kNeedless, "", nullptr, "the files at source.path are what is served"},
    {"root-path", "", kValue, kRefused, "", nullptr, "rewrite paths in the proxy"},
    {"runner", "", kValue, kNeedless, "", Generate, ""},
    {"safetensors-load-strategy", "", kValue, kNeedless, "", nullptr, "files are mapped"},
    {"scheduling-policy", "", kValue, kNeedless, "", Fcfs, ""},
    {"seed", "", kValue, kRefused, "", nullptr, "requests state their own seed"},
    {"served-model-name", "", kValues, kMapped, "name", Text, ""},
    {"skip-mm-profiling", "", kNothing, kNeedless, "", nullptr, kNoImages},
    {"skip-tokenizer-init", "", kNothing, kRefused, "", nullptr, "the tokenizer is always loaded"},
    {"speculative-config", "", kValue, kRefused, "", nullptr, kNoDraft},
    {"ssl-ca-certs", "", kValue, kRefused, "", nullptr, kNoTls},
    {"ssl-certfile", "", kValue, kRefused, "", nullptr, kNoTls},
    {"ssl-keyfile", "", kValue, kRefused, "", nullptr, kNoTls},
    {"structured-outputs-config", "", kValue, kNeedless, "", nullptr, kByPlan},
    {"swap-space", "", kValue, kNeedless, "", nullptr, "preempted requests are computed again"},
    {"task", "", kValue, kNeedless, "", Generate, ""},
    {"tensor-parallel-size", "tp", kValue, kMapped, "parallel.tensor", Integer, ""},
    {"tokenizer", "", kValue, kRefused, "", nullptr, "the tokenizer is the checkpoint's own"},
    {"tokenizer-mode", "", kValue, kNeedless, "", nullptr, "told from the files"},
    {"tool-call-parser", "", kValue, kRefused, "", nullptr, "tool calls are not parsed"},
    {"tool-parser-plugin", "", kValue, kRefused, "", nullptr, kNoCode},
    {"trust-remote-code", "", kNothing, kNeedless, "", nullptr, kNoCode},
    {"trust-request-chat-template", "", kNothing, kRefused, "", nullptr, kOwnTemplate},
    {"uds", "", kValue, kRefused, "", nullptr, "the server listens on a port"},
    {"uvicorn-log-level", "", kValue, kNeedless, "", nullptr, kLogs},
    {"worker-cls", "", kValue, kRefused, "", nullptr, kNoCode},
    {"worker-extension-cls", "", kValue, kRefused, "", nullptr, kNoCode},
};
static_assert(std::is_sorted(std::begin(kFlags), std::end(kFlags),
                             [](const Flag& a, const Flag& b) { return a.name < b.name; }));

}  // namespace

std::span<const Flag> Flags() { return kFlags; }

const Flag* FindFlag(std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  auto at =
      std::lower_bound(std::begin(kFlags), std::end(kFlags), wanted,
                       [](const Flag& flag, const std::string& key) { return flag.name < key; });
  return at != std::end(kFlags) && at->name == wanted ? at : nullptr;
}

const Flag* FindAlias(std::string_view alias) {
  if (alias.empty()) return nullptr;
  auto at = std::find_if(std::begin(kFlags), std::end(kFlags),
                         [&](const Flag& flag) { return flag.alias == alias; });
  return at != std::end(kFlags) ? at : nullptr;
}

}  // namespace ashlar

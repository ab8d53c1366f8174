#include "catalogue/vllm_assume.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/nearest.h"
#include "plan/cache_spec.h"

namespace ashlar {
namespace {

struct Switch {
  std::string_view name;
  bool VllmFacts::*fact;
  bool VllmAssume::*wish;  // instead of `fact`
};

constexpr std::array<Switch, 20> kSwitches = {{
    {"aiter", &VllmFacts::aiter, nullptr},  // the package and the master switch, see Set
    {"aiterPackage", &VllmFacts::aiter, nullptr},
    {"aiterMha", &VllmFacts::aiter_mha, nullptr},
    {"aiterMla", &VllmFacts::aiter_mla, nullptr},
    {"shuffle", &VllmFacts::shuffle, nullptr},
    {"connector", nullptr, &VllmAssume::connector},
    {"batchInvariant", nullptr, &VllmAssume::batch_invariant},
    {"flashinfer", &VllmFacts::flashinfer, nullptr},
    {"flashinferCubin", &VllmFacts::flashinfer_cubin, nullptr},
    {"artifactory", &VllmFacts::artifactory, nullptr},
    {"nvcc", &VllmFacts::nvcc, nullptr},
    {"fa2", &VllmFacts::flash_attn_2, nullptr},
    {"fa3", &VllmFacts::flash_attn_3, nullptr},
    {"fa4", &VllmFacts::flash_attn_4, nullptr},
    {"flashmla", &VllmFacts::flashmla, nullptr},
    {"tokenspeed", &VllmFacts::tokenspeed, nullptr},
    {"b12x", &VllmFacts::b12x, nullptr},
    {"cutlassDsl", &VllmFacts::cutlass_dsl, nullptr},
    {"trtllmOff", &VllmFacts::trtllm_off, nullptr},
    {"aiterSwitch", &VllmFacts::aiter_on, nullptr},
}};

std::vector<std::string> SwitchNames() {
  std::vector<std::string> names;
  for (const Switch& one : kSwitches) names.emplace_back(one.name);
  return names;
}

void Set(VllmAssume& assume, const Switch& one, bool on) {
  (one.fact != nullptr ? assume.facts.*one.fact : assume.*one.wish) = on;
  if (one.name == "aiter") assume.facts.aiter_on = on;
}

Problem UnknownSwitch(const std::string& place, std::string_view name) {
  const std::vector<std::string> names = SwitchNames();
  const std::string nearest = Nearest(name, names);
  return {place, fmt::format("\"{}\" is no assumption", name), OneOf(names),
          nearest.empty() ? "name one of these" : fmt::format("did you mean {}?", nearest)};
}

void ReadOne(std::string_view word, const std::string& place, VllmAssume& assume, Problems& out) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  auto one = std::find_if(kSwitches.begin(), kSwitches.end(),
                          [&](const Switch& known) { return known.name == name; });
  if (one == kSwitches.end()) {
    out.push_back(UnknownSwitch(place, name));
  } else if (value != "on" && value != "off") {
    out.push_back({place, fmt::format("\"{}\" says neither on nor off", word), "on or off",
                   fmt::format("write {}=on", name)});
  } else {
    Set(assume, *one, value == "on");
  }
}

// "gfx942" -> 9.4, as ROCm derives a capability: the last two digits are minor and stepping.
bool ReadGfx(std::string_view name, VllmFacts& facts) {
  if (!name.starts_with("gfx") || name.size() < 6) return false;
  facts.gfx = name;
  name.remove_prefix(3);
  const std::string_view major = name.substr(0, name.size() - 2);
  const auto [end, error] = std::from_chars(major.data(), major.data() + major.size(), facts.major);
  facts.minor = name[name.size() - 2] - '0';
  return error == std::errc() && end == major.data() + major.size();
}

VllmKvDType KvOf(DType type) {
  switch (type) {
    case DType::kF16:
      return VllmKvDType::kFloat16;
    case DType::kBF16:
      return VllmKvDType::kBFloat16;
    case DType::kF8E4M3:
      return VllmKvDType::kFp8E4M3;
    default:
      return VllmKvDType::kAuto;  // float32: as the model computes
  }
}

VllmAttention AttentionOf(KvKind kind) {
  if (kind == KvKind::kCross) return VllmAttention::kEncoderDecoder;
  if (kind == KvKind::kEncoderOnly) return VllmAttention::kEncoderOnly;
  return VllmAttention::kDecoder;
}

}  // namespace

Result<VllmAssume> ParseAssume(std::string_view text, const std::string& place) {
  VllmAssume assume;
  Problems problems;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    ReadOne(text.substr(0, comma), place, assume, problems);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  if (!problems.empty()) return problems;
  return assume;
}

Result<VllmFacts> VllmFactsOf(const DeviceInfo& device, const VllmAssume& assume) {
  VllmFacts facts = assume.facts;
  const Capability& have = device.capability;
  if (device.platform == "cuda") {
    facts.platform = VllmPlatform::kCuda;
    facts.major = static_cast<int>(have.value / 10);
    facts.minor = static_cast<int>(have.value % 10);
    return facts;
  }
  if (device.platform == "cpu" || device.platform == "reference") {
    facts.platform = VllmPlatform::kCpu;
    facts.avx512 = (have.value & kAvx512) != 0;
    facts.amx = (have.value & kAmx) != 0;
    return facts;
  }
  if (device.platform == "xpu") {
    facts.platform = VllmPlatform::kXpu;
    return facts;
  }
  facts.platform = VllmPlatform::kRocm;
  const std::string name = have.names.empty() ? "" : have.names.front();
  if (device.platform == "hip" && ReadGfx(name, facts)) return facts;
  return Problem{"platform", fmt::format("{} ({}) is no device of vLLM's", device.platform, name),
                 "cuda, hip with a gfx name, cpu or xpu", "plan with another --platform"};
}

VllmRequest VllmRequestOf(const AttentionRequest& request, const VllmAssume& assume) {
  VllmRequest asked;
  asked.head_size = request.head_dim;
  asked.dtype = request.dtype;
  asked.kv = request.kv_dtype == request.dtype ? VllmKvDType::kAuto : KvOf(request.kv_dtype);
  asked.block_tokens = request.block_tokens;
  asked.query_heads = request.heads;
  asked.attention = AttentionOf(request.kind);
  asked.mla = Info(request.kind).latent;
  asked.sparse = request.sparse;
  asked.sinks = request.sinks;
  asked.mm_prefix = request.mm_prefix;
  asked.head_scales = request.head_scales;
  asked.window = request.window > 0;
  asked.prefix_window = request.prefix_window;
  asked.non_causal = request.non_causal;
  asked.batch_invariant = request.batch_invariant || assume.batch_invariant;
  asked.kv_connector = request.kv_connector || assume.connector;
  asked.pcp = request.pcp;
  asked.dcp = request.dcp;
  asked.adaptive_verification = request.adaptive_verification;
  if (asked.mla) return asked;  // a request does not carry the dimensions that rules ask for
  VllmModel& model = asked.model.emplace();
  model.query_heads = request.heads;
  model.kv_heads = request.kv_heads;
  model.head_size = request.head_dim;
  model.encoder_decoder = request.kind == KvKind::kCross;
  return asked;
}

}  // namespace ashlar

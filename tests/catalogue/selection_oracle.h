// Reading the recorded answers: one line a case, see data/README.md.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/vllm.h"

namespace ashlar::testing {

inline std::vector<std::string> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

// The words of one section: key=value, or a key alone.
class Words {
 public:
  Words() = default;
  explicit Words(const std::string& text) {
    for (const std::string& word : Split(text, " ")) {
      if (word.empty()) continue;
      size_t equals = word.find('=');
      std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
      values_[word.substr(0, equals)] = value;
      order_.push_back(word.substr(0, equals));
    }
  }
  bool Has(const std::string& key) const { return values_.contains(key); }
  std::string Text(const std::string& key) const { return Has(key) ? values_.at(key) : ""; }
  int Number(const std::string& key) const { return Has(key) ? std::stoi(values_.at(key)) : 0; }
  std::vector<std::string> List(const std::string& key) const {
    return Text(key).empty() ? std::vector<std::string>() : Split(Text(key), ",");
  }
  const std::vector<std::string>& order() const { return order_; }
  bool empty() const { return order_.empty(); }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> order_;
};

inline DType OracleDType(const std::string& name) { return ParseDType(name).value(); }

inline VllmFacts OracleFacts(const Words& words) {
  VllmFacts facts;
  facts.platform = words.Has("rocm")  ? VllmPlatform::kRocm
                   : words.Has("cpu") ? VllmPlatform::kCpu
                   : words.Has("xpu") ? VllmPlatform::kXpu
                                      : VllmPlatform::kCuda;
  if (words.Has("cc")) {
    std::vector<std::string> parts = Split(words.Text("cc"), ".");
    facts.major = std::stoi(parts[0]);
    facts.minor = std::stoi(parts[1]);
  }
  facts.gfx = words.Text("gfx");
  if (words.Has("run")) facts.run_kv = ParseVllmKvDType(words.Text("run")).value();
  facts.flash_attn_version = words.Number("flashAttn");
  facts.flashinfer = facts.flashinfer_cubin = facts.aiter_mha = facts.aiter_mla = false;
  const std::map<std::string, bool VllmFacts::*> switches = {
      {"flashinfer", &VllmFacts::flashinfer},
      {"cubin", &VllmFacts::flashinfer_cubin},
      {"nvcc", &VllmFacts::nvcc},
      {"artifactory", &VllmFacts::artifactory},
      {"tokenspeed", &VllmFacts::tokenspeed},
      {"b12x", &VllmFacts::b12x},
      {"aiter", &VllmFacts::aiter},
      {"aiterOn", &VllmFacts::aiter_on},
      {"aiterMha", &VllmFacts::aiter_mha},
      {"aiterMla", &VllmFacts::aiter_mla},
      {"shuffle", &VllmFacts::shuffle},
      {"trtllmOff", &VllmFacts::trtllm_off},
      {"amx", &VllmFacts::amx},
      {"avx512", &VllmFacts::avx512},
      {"fa2", &VllmFacts::flash_attn_2},
      {"fa3", &VllmFacts::flash_attn_3},
      {"fa4", &VllmFacts::flash_attn_4},
      {"flashmla", &VllmFacts::flashmla},
      {"cutlassDsl", &VllmFacts::cutlass_dsl}};
  for (const std::string& name : words.List("on")) facts.*switches.at(name) = true;
  for (const std::string& name : words.List("off")) facts.*switches.at(name) = false;
  return facts;
}

inline VllmAttention OracleAttention(const std::string& name) {
  if (name == "encoder") return VllmAttention::kEncoder;
  if (name == "encoder_only") return VllmAttention::kEncoderOnly;
  if (name == "encoder_decoder") return VllmAttention::kEncoderDecoder;
  return VllmAttention::kDecoder;
}

inline VllmRequest OracleRequest(const Words& words, const Words& model) {
  VllmRequest request;
  request.head_size = words.Number("head");
  request.dtype = OracleDType(words.Text("dtype"));
  if (words.Has("kv")) request.kv = ParseVllmKvDType(words.Text("kv")).value_or(VllmKvDType::kNone);
  request.block_tokens = words.Number("block");
  if (words.Has("heads")) request.query_heads = words.Number("heads");
  request.attention = OracleAttention(words.Text("attn"));
  request.mla = words.Has("mla");
  request.sparse = words.Has("sparse");
  request.sinks = words.Has("sinks");
  request.mm_prefix = words.Has("mmPrefix");
  request.head_scales = words.Has("headScales");
  request.window = words.Has("window");
  request.prefix_window = words.Has("prefixWindow");
  request.non_causal = words.Has("nonCausal");
  request.batch_invariant = words.Has("batchInvariant");
  request.kv_connector = words.Has("connector");
  request.pcp = words.Has("pcp");
  request.dcp = words.Has("dcp");
  request.adaptive_verification = words.Has("adaptive");
  if (model.empty()) return request;
  VllmModel& known = request.model.emplace();
  known.query_heads = model.Number("heads");
  known.kv_heads = model.Number("kvHeads");
  known.head_size = model.Number("head");
  known.latent = model.Has("latent");
  known.encoder_decoder = model.Has("encoderDecoder");
  known.qk_nope = model.Number("qkNope");
  known.qk_rope = model.Number("qkRope");
  known.v_head = model.Number("vHead");
  known.kv_lora_rank = model.Number("rank");
  if (model.Has("topk")) known.index_topk = model.Number("topk");
  return request;
}

struct OracleCase {
  std::string id;
  Words machine, request, model, tried, answer;
};

inline std::vector<OracleCase> ReadOracle(const std::string& file) {
  std::vector<OracleCase> cases;
  std::ifstream lines(std::string(ASHLAR_SOURCE_DIR) + "/tests/catalogue/data/" + file);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> sections = Split(line, " | ");
    sections.resize(5);
    OracleCase one{sections[0].substr(0, sections[0].find(' ')),
                   Words(sections[0]),
                   Words(sections[1]),
                   Words(sections[2]),
                   {},
                   Words(sections[4])};
    // Candidates are NAME or NAME:reasons; the words of this section are read as they stand.
    one.tried = Words(sections[3]);
    cases.push_back(std::move(one));
  }
  return cases;
}

// "head_size,combination:head_dims", as the data writes reasons.
inline std::string ReasonsText(const VllmReasons& reasons) {
  std::string text;
  for (const VllmReason& reason : reasons) {
    if (!text.empty()) text += ",";
    text += Label(reason.reason);
    if (!reason.why.empty()) text += ":" + std::string(reason.why);
  }
  return text;
}

inline std::string BlocksText(const VllmRow& row) {
  std::string text;
  for (const BlockRule& rule : row.blocks) {
    if (rule.tokens == 0) break;
    if (!text.empty()) text += ",";
    text += (rule.multiple ? "x" : "") + std::to_string(rule.tokens);
  }
  return text;
}

inline std::string LayoutsText(const VllmRow& row) {
  std::string text;
  for (KvLayout layout : row.layouts) {
    if (layout == KvLayout{}) break;
    if (!text.empty()) text += ",";
    text += Name(layout);
  }
  return text.empty() ? "any" : text;
}

}  // namespace ashlar::testing

// Recorded answers of vLLM 0.33 as cases: reading them, and counting where ours differ. The files
// are written by tests/catalogue/convert_kv_oracle.py.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "catalogue/groups.h"

namespace ashlar::testing {

inline DType TypeOfBytes(int64_t bytes) {
  return bytes == 4 ? DType::kF32 : bytes == 2 ? DType::kBF16 : DType::kI8;
}

inline std::vector<BlockRule> ParseRules(const std::string& text) {
  std::vector<BlockRule> rules;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    bool multiple = text[begin] == 'm';
    rules.push_back({std::atoi(text.c_str() + begin + (multiple ? 1 : 0)), multiple});
    begin = end + 1;
  }
  return rules;
}

// "m16,64|48>64": kernel blocks, the manager blocks that replace them, the preferred one.
inline AttentionRow ParseRow(const std::string& text, std::string name) {
  AttentionRow row;
  row.name = std::move(name);
  size_t preferred = text.find('>'), manager = text.find('|');
  if (preferred != std::string::npos) row.preferred_block = std::atoi(text.c_str() + preferred + 1);
  std::string rules = text.substr(0, preferred);
  if (manager != std::string::npos) row.manager_blocks = ParseRules(rules.substr(manager + 1));
  row.kernel_blocks = ParseRules(rules.substr(0, manager));
  return row;
}

// Rows named by their place in the case, alive as long as this.
class OracleRows {
 public:
  explicit OracleRows(const Json& list) {
    for (const Json& text : list)
      rows_.push_back(ParseRow(text.get<std::string>(), std::to_string(rows_.size())));
  }
  std::vector<const AttentionRow*> pointers() const {
    std::vector<const AttentionRow*> pointers;
    for (const AttentionRow& row : rows_) pointers.push_back(&row);
    return pointers;
  }

 private:
  std::vector<AttentionRow> rows_;
};

inline KvKind OracleKind(const std::string& name) {
  static const std::map<std::string, KvKind> kinds = {
      {"full", KvKind::kFull},
      {"mla", KvKind::kMla},
      {"hidden", KvKind::kMla},
      {"sliding", KvKind::kSliding},
      {"sliding_mla", KvKind::kSlidingMla},
      {"chunked", KvKind::kChunkedLocal},
      {"cross", KvKind::kCross},
      {"encoder_only", KvKind::kEncoderOnly},
      {"mamba", KvKind::kMamba},
  };
  return kinds.at(name);
}

inline ReferenceCache ParseCache(const Json& json) {
  ReferenceCache out;
  CacheSpec& cache = out.cache;
  cache.kind = OracleKind(json.at("kind"));
  out.hidden = json.at("kind") == "hidden";
  out.block_tokens = json.at("block");
  cache.padded_page = json.value("padded", 0);
  for (const Json& state : json.value("states", Json::array())) {
    auto numbers = state.get<std::vector<int64_t>>();
    cache.states.push_back({{numbers.begin() + 1, numbers.end()}, TypeOfBytes(numbers[0])});
  }
  if (json.value("aligned", false)) cache.state_mode = StateMode::kAligned;
  if (cache.kind == KvKind::kMamba) return out;
  cache.kv_heads = json.at("heads");
  cache.head_size = json.at("size");
  cache.head_size_v = Info(cache.kind).latent ? 0 : json.value("valueSize", cache.head_size);
  cache.dtype = TypeOfBytes(json.at("bytes"));
  cache.window = json.value("window", 0);
  cache.tokens_per_state = json.value("tokensPerState", 1);
  cache.page_multiple = json.value("multiple", 1);
  if (json.contains("slots")) cache.head_slots = json.at("slots").get<int64_t>();
  if (json.contains("content")) cache.content_bytes = json.at("content").get<int64_t>();
  return out;
}

// Runs every case of a file through `answer`, which gives "" when ours is equal, else what differs.
template <class Answer>
std::vector<std::string> Differences(const std::string& file, int cases, const Answer& answer) {
  std::ifstream in(std::string(ASHLAR_SOURCE_DIR) + "/tests/catalogue/oracle/" + file);
  std::vector<std::string> different;
  int total = 0;
  for (std::string line; std::getline(in, line); ++total) {
    Json json = Json::parse(line);
    std::string difference = answer(json);
    if (difference.empty()) continue;
    different.push_back(json.at("id"));
    std::cout << file << " " << different.back() << ": " << difference << "\n";
  }
  std::cout << file << ": " << total - static_cast<int>(different.size()) << " of " << total
            << " equal\n";
  EXPECT_EQ(total, cases);
  return different;
}

}  // namespace ashlar::testing

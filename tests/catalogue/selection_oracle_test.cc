// The catalogue against the recorded answers of vLLM 0.33.0.
#include "selection_oracle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

namespace ashlar {
namespace {

using testing::BlocksText;
using testing::LayoutsText;
using testing::OracleCase;
using testing::OracleFacts;
using testing::OracleRequest;
using testing::ReadOracle;
using testing::ReasonsText;
using testing::Split;
using testing::Words;

// Cases that are known to differ: "file id cause".
std::set<std::string> KnownDifferences(const std::string& file) {
  std::set<std::string> ids;
  std::ifstream lines(std::string(ASHLAR_SOURCE_DIR) + "/tests/catalogue/data/selection-known.txt");
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words = Split(line, " ");
    if (words.size() > 2 && words[0] == file) ids.insert(words[1]);
  }
  return ids;
}

std::string TriedText(const VllmChoice& choice) {
  std::string text;
  for (const VllmCandidate& candidate : choice.candidates) {
    if (!text.empty()) text += " ";
    text += candidate.backend;
    if (!candidate.reasons.empty()) text += ":" + ReasonsText(candidate.reasons);
  }
  return text;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string ErrorText(VllmError error) {
  return error == VllmError::kNone ? "" : std::string(Name(error));
}

// What differs between the answer and the choice; "" when nothing does.
std::string Difference(const OracleCase& one, const VllmFacts& facts, const VllmRequest& request,
                       const VllmChoice& choice) {
  std::string text;
  auto compare = [&](std::string_view what, const std::string& have, const std::string& want) {
    if (have != want) text += fmt::format("\n  {}: {} instead of {}", what, have, want);
  };
  compare("tried", TriedText(choice), Joined(one.tried.order()));
  compare("chosen", std::string(choice.chosen), one.answer.Text("chosen"));
  compare("error", ErrorText(choice.error), one.answer.Text("error"));
  if (one.answer.Has("forcedReasons"))
    compare("forced", ReasonsText(choice.forced_reasons), one.answer.Text("forcedReasons"));
  if (!one.answer.Has("blocks") || choice.chosen.empty()) return text;
  VllmRow row = *FindVllmRow(choice.chosen, facts, request);
  compare("blocks", BlocksText(row), one.answer.Text("blocks"));
  compare("preferred", std::to_string(VllmPreferredBlock(row, 16)), one.answer.Text("preferred"));
  compare("layouts", LayoutsText(row), one.answer.Text("layouts"));
  if (one.answer.Has("validator"))
    compare("validator", ReasonsText(VllmValidate(row, facts, request)),
            one.answer.Text("validator"));
  return text;
}

// Judges every case by `difference`, tells the count, and holds it to `equal` of `all`. A case that
// differs without being known fails, and so does a known one that does not.
template <class Judge>
void Hold(const std::string& file, size_t equal, size_t all, Judge difference) {
  const std::set<std::string> known = KnownDifferences(file);
  const std::vector<OracleCase> cases = ReadOracle(file + ".txt");
  size_t same = 0, shown = 0;
  for (const OracleCase& one : cases) {
    std::string text = difference(one);
    same += text.empty();
    if (text.empty() == !known.contains(one.id) || ++shown > 10) continue;
    ADD_FAILURE() << file << " " << one.id
                  << (text.empty() ? " is equal, though known to differ" : text);
  }
  std::cout << file << ": " << same << " of " << cases.size() << " equal\n";
  EXPECT_EQ(cases.size(), all);
  EXPECT_GE(same, equal);
}

std::string SelectionDifference(const OracleCase& one) {
  VllmFacts facts = OracleFacts(one.machine);
  VllmRequest request = OracleRequest(one.request, one.model);
  return Difference(one, facts, request, VllmSelect(facts, request, one.answer.Text("forced")));
}

TEST(SelectionOracle, Cuda) { Hold("selection-cuda", 2386, 2386, SelectionDifference); }
TEST(SelectionOracle, Rocm) { Hold("selection-rocm", 1221, 1221, SelectionDifference); }
TEST(SelectionOracle, Cpu) { Hold("selection-cpu", 302, 302, SelectionDifference); }
TEST(SelectionOracle, Xpu) { Hold("selection-xpu", 189, 189, SelectionDifference); }

TEST(SelectionOracle, MlaPrefill) {
  Hold("mla-prefill", 498, 498, [](const OracleCase& one) {
    VllmFacts facts = OracleFacts(one.machine);
    facts.tokenspeed = false;  // the recorder's flag for it did not reach this choice
    const Words& asked = one.request;
    VllmChoice choice = VllmSelectMlaPrefill(
        facts, {testing::OracleDType(asked.Text("dtype")), asked.Number("qkNope"),
                asked.Number("qkRope"), asked.Number("vHead")});
    return Difference(one, facts, {}, choice);
  });
}

// --- what every backend declares

std::string FlagsText(const VllmRow& row) {
  constexpr std::pair<VllmFlag, std::string_view> kNames[] = {
      {kVllmMla, "mla"},
      {kVllmSparse, "sparse"},
      {kVllmSinks, "sinks"},
      {kVllmMmPrefix, "mmPrefix"},
      {kVllmHeadScales, "headScales"},
      {kVllmWindow, "window"},
      {kVllmPrefixWindow, "prefixWindow"},
      {kVllmNonCausal, "nonCausal"},
      {kVllmBatchInvariant, "batchInvariant"},
      {kVllmConnector, "connector"},
      {kVllmPcp, "pcp"},
      {kVllmDcp, "dcp"},
      {kVllmQueryLengths, "queryLengths"}};
  std::string text;
  for (const auto& [flag, name] : kNames) {
    if (row.Has(flag)) text += (text.empty() ? "" : ",") + std::string(name);
  }
  return text;
}

// The members of `list` that `accepts` refuses, and the probes outside it that it takes.
template <class Accepts>
std::string Wrong(const std::vector<std::string>& list, const std::set<std::string>& probes,
                  Accepts accepts) {
  std::string text;
  for (const std::string& probe : probes) {
    bool listed = std::find(list.begin(), list.end(), probe) != list.end();
    if (accepts(probe) != listed) text += " " + probe;
  }
  return text;
}

std::set<std::string> Probes(const std::vector<OracleCase>& cases, const std::string& key) {
  std::set<std::string> probes;
  for (const OracleCase& one : cases) {
    for (const std::string& probe : one.request.List(key)) probes.insert(probe);
  }
  return probes;
}

TEST(SelectionOracle, Backends) {
  const std::vector<OracleCase> cases = ReadOracle("backends.txt");
  const auto heads = Probes(cases, "heads"), sizes = Probes(cases, "accepts"),
             dtypes = Probes(cases, "dtypes"), kvs = Probes(cases, "kv");
  Hold("backends", 1290, 1290, [&](const OracleCase& one) -> std::string {
    VllmFacts facts = OracleFacts(one.machine);
    std::optional<VllmRow> row = FindVllmRow(one.id, facts, {});
    if (!row) return "no such backend";
    const Words& declared = one.request;
    std::string text;
    auto note = [&](std::string_view what, const std::string& wrong) {
      if (!wrong.empty()) text += fmt::format("\n  {}:{}", what, wrong);
    };
    auto compare = [&](std::string_view what, const std::string& have, const std::string& want) {
      if (have != want) note(what, fmt::format(" {} instead of {}", have, want));
    };
    note("heads", Wrong(declared.List("heads"), heads,
                        [&](const std::string& p) { return row->heads.Accepts(std::stoi(p)); }));
    note("accepts", Wrong(declared.List("accepts"), sizes,
                          [&](const std::string& p) { return row->AcceptsBlock(std::stoi(p)); }));
    note("dtypes", Wrong(declared.List("dtypes"), dtypes, [&](const std::string& p) {
           return row->Takes(testing::OracleDType(p));
         }));
    note("kv", Wrong(declared.List("kv"), kvs, [&](const std::string& p) {
           return row->Takes(ParseVllmKvDType(p).value());
         }));
    compare("blocks", BlocksText(*row), declared.Text("blocks"));
    compare("preferred", std::to_string(VllmPreferredBlock(*row, 16)), declared.Text("preferred"));
    compare("layouts", LayoutsText(*row), declared.Text("layouts"));
    compare("flags", FlagsText(*row), declared.Text("flags"));
    compare("reported", std::string(row->reported), declared.Text("reported"));
    uint32_t attention = 0;
    for (const std::string& name : declared.List("attn"))
      attention |= Set({testing::OracleAttention(name)});
    if (attention != row->attention) note("attention", " differs");
    VllmReasons reasons = VllmValidate(*row, facts, {});
    bool capable = std::none_of(reasons.begin(), reasons.end(), [](const VllmReason& reason) {
      return reason.reason == RefusalReason::kCapability;
    });
    if (capable != declared.Has("capable")) note("capable", " differs");
    return text;
  });
}

}  // namespace
}  // namespace ashlar

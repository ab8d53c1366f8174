// Expectations written by make_goldens.py.
#pragma once

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/text.h"

namespace ashlar {

inline std::string ReadTestFile(const std::string& name) {
  std::ifstream file(std::string(ASHLAR_SOURCE_DIR) + "/tests/text/" + name, std::ios::binary);
  Check(file.good(), name);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline nlohmann::ordered_json ReadGolden(const std::string& name) {
  return nlohmann::ordered_json::parse(ReadTestFile("goldens/" + name + ".json"));
}

// A vocabulary and the arrays that it borrows.
struct OwnedVocabulary {
  std::vector<std::string> tokens, merges;
  std::vector<double> scores;
  std::vector<int64_t> types;
  GgufVocabulary fields;

  GgufVocabulary View() const {
    GgufVocabulary view = fields;
    view.tokens = tokens;
    view.merges = merges;
    view.scores = scores;
    view.token_types = types;
    return view;
  }
};

inline OwnedVocabulary ByteLevelVocabulary(const std::string& pre) {
  const auto golden = ReadGolden("byte_level");
  OwnedVocabulary vocabulary;
  vocabulary.tokens = golden["tokens"].get<std::vector<std::string>>();
  vocabulary.merges = golden["merges"].get<std::vector<std::string>>();
  vocabulary.types = golden["types"].get<std::vector<int64_t>>();
  vocabulary.fields.model = "gpt2";
  vocabulary.fields.pre = pre;
  vocabulary.fields.bos = 1;
  vocabulary.fields.eos = 0;
  return vocabulary;
}

inline OwnedVocabulary SentencePieceVocabulary() {
  const auto golden = ReadGolden("sentencepiece");
  OwnedVocabulary vocabulary;
  vocabulary.tokens = golden["tokens"].get<std::vector<std::string>>();
  vocabulary.scores = golden["scores"].get<std::vector<double>>();
  vocabulary.types = golden["types"].get<std::vector<int64_t>>();
  vocabulary.fields.model = "llama";
  vocabulary.fields.bos = 1;
  vocabulary.fields.eos = 2;
  return vocabulary;
}

inline std::unique_ptr<Tokenizer> Make(const OwnedVocabulary& vocabulary) {
  Result<std::unique_ptr<Tokenizer>> made = Tokenizer::FromGguf(vocabulary.View());
  Check(made.ok(), made.ok() ? "" : Text(made.problems()));
  return *std::move(made);
}

inline std::string Refusal(const OwnedVocabulary& vocabulary) {
  Result<std::unique_ptr<Tokenizer>> made = Tokenizer::FromGguf(vocabulary.View());
  return made.ok() ? "accepted" : Text(made.problems());
}

}  // namespace ashlar

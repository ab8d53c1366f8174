#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import.h"
#include "spec/spec.h"

namespace ashlar {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<std::string> Split(std::string_view line) {
  std::vector<std::string> words;
  for (size_t end; !line.empty(); line.remove_prefix(std::min(end + 1, line.size()))) {
    end = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, end));
  }
  return words;
}

Imported Take(std::string_view line) {
  Result<Imported> imported = ImportCommand(Split(line));
  EXPECT_TRUE(imported.ok()) << (imported.ok() ? "" : Text(imported.problems()));
  return imported.ok() ? *imported : Imported{};
}

// "refused --enable-lora: LoRA adapters are not served", one a line.
std::string Notes(const Imported& imported) {
  std::string text;
  for (const ImportNote& note : imported.notes) {
    text += std::string(Name(note.outcome)) + " " + note.flag;
    if (!note.field.empty()) text += " -> " + note.field;
    text += note.text.empty() ? "\n" : ": " + note.text + "\n";
  }
  return text;
}

std::string Document(std::string_view line) {
  Json document = Take(line).document;
  document.erase("apiVersion");
  document.erase("kind");
  return document.dump();
}

TEST(ImportCommand, MapsWhatHasAField) {
  EXPECT_EQ(
      Document(
          "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32k --block-size=32 "
          "--gpu-memory-utilization 0.9 -tp 2 --max_num_seqs 128 --port 9000 --host ::1 "
          "--no-enable-prefix-caching --kv-cache-dtype bfloat16 --max-num-batched-tokens 8192"),
      R"({"name":"meta-llama/Llama-3.1-8B-Instruct","source":{"path":"/models/Llama-3.1-8B-Instruct"},)"
      R"("parallel":{"tensor":2},"contextLength":32000,)"
      R"("kv":{"blockSize":32,"memory":"90%","prefixCache":false,"dtype":"bfloat16"},)"
      R"("limits":{"sequences":128,"batchTokens":8192},"server":{"port":9000,"host":"::1"}})");
}

TEST(ImportCommand, MapsCachesOf8Bits) {
  for (const char* word : {"fp8", "fp8_e4m3"}) {
    EXPECT_EQ(Document(std::string("/m --kv-cache-dtype ") + word),
              R"({"source":{"path":"/m"},"kv":{"dtype":"float8_e4m3"}})");
  }
}

TEST(ImportCommand, MapsQuantizationWhenItIsMadeAtStart) {
  EXPECT_EQ(Document("/m --quantization fp8"), R"({"source":{"path":"/m"},"quantization":"fp8"})");
  EXPECT_EQ(Document("/m -q gptq"), R"({"source":{"path":"/m"}})");
}

TEST(ImportCommand, TakesEveryWayToStartVllm) {
  for (const char* line :
       {"vllm serve /m", "/usr/bin/vllm serve /m", "/m", "--model /m", "--model=/m",
        "python3 -m vllm.entrypoints.openai.api_server --model /m",
        "VLLM_USE_V1=1 exec /opt/bin/python -m vllm.entrypoints.openai.api_server --model /m"}) {
    EXPECT_EQ(Document(line), R"({"source":{"path":"/m"}})") << line;
  }
}

TEST(ImportCommand, NamesWhatItLeavesOutAndWhy) {
  std::string notes = Notes(
      Take("vllm serve /m --enforce-eager --enable-lora --lora-modules a=b c=d --enable-lorra "
           "--kv-cache-dtype fp8_e5m2 --data-parallel-size 2 -dp 1 --no-enable-chunked-prefill "
           "--served-model-name a b --seed 0 extra --attention-backend FLASHINFER"));
  for (const char* line :
       {"needless --enforce-eager: decided by the plan", "refused --enable-lora: LoRA",
        "refused --lora-modules a=b: LoRA",
        "refused --enable-lorra: not known here; --enable-lora is",
        "refused --kv-cache-dtype fp8_e5m2: no cache of this type",
        "refused --data-parallel-size 2: rep", "needless -dp 1: always so here",
        "refused --no-enable-chunked-prefill: prompts", "mapped --served-model-name a -> name",
        "refused --served-model-name b: one is taken", "refused --seed 0: requests state",
        "refused extra: a word that belongs to no flag",
        "needless --attention-backend FLASHINFER: backends are chosen"}) {
    EXPECT_THAT(notes, HasSubstr(line));
  }
}

TEST(ImportCommand, KeepsWhatVllmWasToldToUse) {
  EXPECT_EQ(Take("/m --attention-backend FLASHINFER").attention_backend, "FLASHINFER");
}

TEST(ImportCommand, KeepsWhatChangesVllmsChoice) {
  EXPECT_EQ(Take("/m --kv-transfer-config {}").assume, "connector=on");
  EXPECT_EQ(Take("/m --port 1").assume, "");
}

TEST(ImportCommand, RefusesWordsThatAreNoText) {
  Result<Imported> imported = ImportCommand({"vllm", "serve", "m\xde"});
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(Text(imported.problems()),
              HasSubstr("arguments: m\\xde is no text: UTF-8; write it in UTF-8"));
}

TEST(ImportCommand, ShowsAnEmptyWord) {
  Result<Imported> imported = ImportCommand({"vllm", "serve", "/m", ""});
  ASSERT_TRUE(imported.ok());
  EXPECT_THAT(Notes(*imported), HasSubstr("refused \"\": a word that belongs to no flag"));
}

TEST(ImportCommand, NeverRepeatsASecret) {
  EXPECT_THAT(Notes(Take("/m --api-key s3cret --hf-token=s3cret")),
              AllOf(HasSubstr("refused --api-key"), testing::Not(HasSubstr("s3cret"))));
}

TEST(ImportCommand, ReadsNumbersAsVllmDoes) {
  EXPECT_THAT(Document("/m --max-model-len 32K"), HasSubstr("32768"));
  EXPECT_THAT(Document("/m --max-model-len 25.6k"), HasSubstr("25600"));
  EXPECT_EQ(Document("/m --max-model-len -1"), R"({"source":{"path":"/m"}})");
  EXPECT_EQ(Document("/m --max-model-len auto"), R"({"source":{"path":"/m"}})");
  EXPECT_THAT(Document("/m --kv-cache-memory-bytes 1048576"), HasSubstr("1024KiB"));
  EXPECT_THAT(Notes(Take("/m --max-model-len many --gpu-memory-utilization 2")),
              AllOf(HasSubstr("refused --max-model-len many"),
                    HasSubstr("refused --gpu-memory-utilization 2")));
}

std::string Mistake(std::string_view line) {
  Result<Imported> imported = ImportCommand(Split(line));
  return imported.ok() ? "" : Text(imported.problems());
}

TEST(ImportCommand, MistakesHaveFourParts) {
  EXPECT_EQ(Mistake(""),
            "arguments: no model: a model as the first argument, or --model; name the model");
  EXPECT_EQ(Mistake("/m --block-size"),
            "arguments: --block-size has no value: a value after the flag; add it, or leave the "
            "flag out");
  EXPECT_THAT(Mistake("/m --block-size 0"),
              AllOf(HasSubstr("kv.blockSize"), HasSubstr("0 is too small")));
  EXPECT_THAT(Mistake("/m --port 99999"), HasSubstr("server.port"));
}

TEST(ImportCommand, AValueOfAnUnknownFlagIsNotTheModel) {
  EXPECT_EQ(Document("--new-flag 7 /m"), R"({"source":{"path":"/m"}})");
}

}  // namespace
}  // namespace ashlar

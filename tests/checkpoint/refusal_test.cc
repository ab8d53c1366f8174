// Model files that are wrong in one way each: one problem, in four parts, that says where.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "support/checkpoint_files.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing_support::GgufWriter;
using testing_support::SafetensorsWriter;
using testing_support::TempFolder;

struct BadFile {
  std::string name;                                        // of the case
  std::vector<std::pair<std::string, std::string>> files;  // a lone .gguf is opened itself
  std::string place, found;  // parts of the problem, without the folder
};

std::string Floats(int count) { return std::string(4 * count, 'f'); }

GgufWriter GoodGguf() {
  return GgufWriter()
      .String("general.architecture", "llama")
      .Strings("tokenizer.ggml.tokens", {"a", "b"})
      .Tensor("a.weight", {2, 4}, GgufWriter::kF32, Floats(8))
      .Tensor("b.weight", {8}, GgufWriter::kF32, Floats(8));
}

SafetensorsWriter GoodTensors() {
  return SafetensorsWriter()
      .Tensor("a.weight", "F32", {2, 4}, Floats(8))
      .Entry("model.norm.weight", "F32", {4}, 32, 48)
      .Data(Floats(4));
}

std::string Cut(std::string bytes, size_t drop) {
  bytes.resize(bytes.size() - drop);
  return bytes;
}

BadFile Gguf(std::string name, std::string bytes, std::string place, std::string found) {
  return {std::move(name), {{"m.gguf", std::move(bytes)}}, std::move(place), std::move(found)};
}

BadFile Single(std::string name, std::string bytes, std::string place, std::string found) {
  return {std::move(name),
          {{"config.json", "{}"}, {"model.safetensors", std::move(bytes)}},
          std::move(place),
          std::move(found)};
}

BadFile Header(std::string name, std::string header, std::string place, std::string found) {
  return Single(std::move(name), SafetensorsWriter::File(header, ""), std::move(place),
                std::move(found));
}

BadFile Sharded(std::string name, std::string index, std::string second, std::string place,
                std::string found) {
  BadFile bad{std::move(name),
              {{"config.json", "{}"},
               {"model-00001-of-00002.safetensors", GoodTensors().Bytes()},
               {"model.safetensors.index.json", std::move(index)}},
              std::move(place),
              std::move(found)};
  if (!second.empty()) bad.files.emplace_back("model-00002-of-00002.safetensors", second);
  return bad;
}

constexpr std::string_view kIndex =
    R"({"weight_map":{"a.weight":"model-00001-of-00002.safetensors",
        "model.norm.weight":"model-00001-of-00002.safetensors",
        "z":"model-00002-of-00002.safetensors"}})";

std::vector<BadFile> GgufHeaders() {
  std::string good = GoodGguf().Bytes();
  return {
      Gguf("Empty", "", "m.gguf header bytes 0..0", "the file has 0 bytes"),
      Gguf("SevenBytes", good.substr(0, 7), "m.gguf header bytes 0..4", "the file has 7 bytes"),
      Gguf("Magic", GoodGguf().Magic("GGML").Bytes(), "header", "does not begin with"),
      Gguf("Version2", GoodGguf().Version(2).Bytes(), "header", "GGUF version 2"),
      Gguf("BigEndian", GoodGguf().Version(0x03000000).Bytes(), "header", "big-endian"),
      Gguf("MillionTensors", GoodGguf().Counts(1'000'001, 2).Bytes(), "header", "1000001 tensors"),
      Gguf("TensorCount", GoodGguf().Counts(900'000, 2).Bytes(), "header",
           "900000 tensors, but only"),
      Gguf("KeyCount", GoodGguf().Counts(2, 1ull << 63).Bytes(), "header", "metadata keys"),
      Gguf("EndlessArray", GgufWriter().Array("k", 4, 1ull << 40, "1234").Bytes(), "metadata k",
           "an array of 1099511627776 uint32 values, but only 4 bytes follow"),
      Gguf("EmptyArrayOfBadType", GgufWriter().Array("k", 99, 0, "").Bytes(), "metadata k",
           "value type 99"),
      Gguf("ArrayOfArrays", GgufWriter().Array("k", GgufWriter::kArray, 0, "").Bytes(),
           "metadata k", "an array of arrays"),
      Gguf("ValueType", GgufWriter().Key("k", 13, "").Bytes(), "metadata k", "value type 13"),
      Gguf("LongString", GgufWriter().String("k", std::string(70'000, 'x')).Bytes(), "metadata k",
           "a string of 70000 bytes"),
      Gguf("LyingString", GgufWriter().Key("k", 8, GgufWriter::Raw<uint64_t>(60'000)).Bytes(),
           "metadata k", "the file has 45 bytes"),
      Gguf("KeyTwice", GgufWriter().Uint32("k", 1).Uint32("k", 2).Bytes(), "metadata k", "twice"),
      Gguf("BadBool", GgufWriter().Key("k", 7, "\2").Bytes(), "metadata k", "bool 2"),
      Gguf("Alignment", GoodGguf().Uint32("general.alignment", 1u << 31).Bytes(),
           "metadata general.alignment", "2147483648"),
      Gguf("AlignmentZero", GoodGguf().Uint32("general.alignment", 0).Bytes(),
           "metadata general.alignment", "0"),
      Gguf("Shard", GoodGguf().Key("split.count", 2, GgufWriter::Raw<uint16_t>(3)).Bytes(),
           "metadata split.count", "one shard of several"),
  };
}

std::vector<BadFile> GgufTensors() {
  std::string good = GoodGguf().Bytes();
  return {
      Gguf("CutByOne", Cut(good, 1), "m.gguf tensor b.weight bytes 256..288",
           "the file has 287 bytes"),
      Gguf("CutAtHalf", good.substr(0, good.size() / 2), "m.gguf tensor directory bytes 132..140",
           "the file has 144 bytes"),
      Gguf("Oversized", good + std::string(64, 'x'), "m.gguf bytes 288..352",
           "the file has 352 bytes, 64 after its last tensor"),
      Gguf("UnknownType", GgufWriter().TensorAt("t", {1}, 77, 0).Bytes(), "tensor t",
           "type number 77 (1 tensor) not supported"),
      Gguf("UnsupportedType", GgufWriter().TensorAt("t", {256}, 16, 0).Bytes(), "tensor t",
           "type IQ2_XXS (1 tensor) not supported"),
      Gguf("FiveDimensions", GgufWriter().TensorAt("t", {1, 1, 1, 1, 1}, 0, 0).Bytes(), "tensor t",
           "5 dimensions"),
      Gguf("ZeroDimension", GgufWriter().TensorAt("t", {4, 0}, 0, 0).Bytes(), "tensor t",
           "a dimension of 0"),
      Gguf("HugeShape", GgufWriter().TensorAt("t", {1ull << 40, 1ull << 40}, 0, 0).Bytes(),
           "tensor t", "shape [1099511627776, 1099511627776] of float32"),
      Gguf("HalfABlock", GgufWriter().TensorAt("t", {2, 48}, 8, 0).Bytes(), "tensor t",
           "shape [2, 48] of q8_0"),
      Gguf("OddOffset", GgufWriter().TensorAt("t", {1}, 0, 4).Bytes(), "tensor t", "offset 4"),
      Gguf("WrappingOffset", GgufWriter().TensorAt("t", {1}, 0, ~0ull << 5).Bytes(), "tensor t",
           "offset 18446744073709551584"),
      Gguf(
          "Overlap",
          GgufWriter().TensorAt("t", {16}, 0, 0).TensorAt("u", {8}, 0, 32).Data(Floats(16)).Bytes(),
          "tensor u bytes 128..160", "overlaps tensor t bytes 96..160"),
      Gguf("Hole",
           GgufWriter().TensorAt("t", {8}, 0, 0).TensorAt("u", {8}, 0, 64).Data(Floats(24)).Bytes(),
           "tensor u bytes 160..192", "starts after a hole at bytes 128..160"),
      Gguf("NameTwice",
           GgufWriter().Tensor("t", {8}, 0, Floats(8)).Tensor("t", {8}, 0, Floats(8)).Bytes(),
           "tensor t bytes 96..128", "twice"),
      Gguf("LongName", GgufWriter().TensorAt(std::string(513, 'n'), {1}, 0, 0).Bytes(),
           "tensor directory", "a string of 513 bytes"),
  };
}

std::vector<BadFile> SafetensorsHeaders() {
  return {
      Single("Empty", "", "model.safetensors header length bytes 0..8", "the file has 0 bytes"),
      Single("SevenBytes", "1234567", "header length bytes 0..8", "the file has 7 bytes"),
      Single("LengthNear2To64", GgufWriter::Raw<uint64_t>(~0ull) + "{}", "header length",
             "18446744073709551615 bytes"),
      Single("HeaderOver100MB", GgufWriter::Raw<uint64_t>(100'000'001) + "{}", "header length",
             "100000001 bytes"),
      Single("HeaderCutShort", GgufWriter::Raw<uint64_t>(500) + "{}", "header bytes 8..508",
             "the file has 10 bytes"),
      Header("EmptyHeader", "", "header byte 8", "an empty header"),
      Header("NotAnObject", "[]", "header byte 8", "\"[\""),
      Header("SpaceFirst", " {}", "header byte 8", "\" \""),
      Header("BrokenJson", R"({"a":)", "header", "byte 6: "),
      Header("BadUtf8", "{\"a\xff\":1}", "header", "byte 4: "),
      Header("Trailing", "{} {}", "header", "byte 4: "),
      Header("EntryIsNumber", R"({"a":1})", "header tensor a", "the number 1"),
      Header("Nested", R"({"a":{"dtype":{"x":[[[]]]}}})", "header tensor a", "an object"),
      Header("MetadataNumber", R"({"__metadata__":{"a":1}})", "header tensor __metadata__",
             "the number 1"),
      Header("MissingField", R"({"a":{"dtype":"F32","shape":[1]}})", "header tensor a",
             "a field is missing"),
      Header("UnknownField", R"({"a":{"size":1}})", "header tensor a", "the field size"),
      Header("FieldTwice", R"({"a":{"dtype":"F32","dtype":"F16"}})", "tensor a", "dtype stands"),
      Header("NegativeDimension", R"({"a":{"shape":[-1]}})", "tensor a", "the number -1"),
      Header("FractionalOffset", R"({"a":{"data_offsets":[0,1.5]}})", "tensor a", "1.5"),
      Header("ThreeOffsets", R"({"a":{"data_offsets":[0,1,2]}})", "tensor a", "the number 2"),
      Header("ZeroDimension", R"({"a":{"shape":[0]}})", "tensor a", "a dimension of 0"),
      Header("LongName", "{\"" + std::string(513, 'n') + "\":{}}", "header",
             "a tensor name of 513 bytes"),
  };
}

std::vector<BadFile> SafetensorsTensors() {
  std::string good = GoodTensors().Bytes();
  size_t size = good.size(), data = size - 48;
  std::string norm =
      fmt::format("model.safetensors tensor model.norm.weight bytes {}..{}", data + 32, data + 48);
  return {
      Single("CutByOne", Cut(good, 1), norm, fmt::format("the file has {} bytes", size - 1)),
      Single("CutAtHalf", good.substr(0, size / 2), "header bytes 8..",
             fmt::format("the file has {} bytes", size / 2)),
      Single("Oversized", good + "x", fmt::format("bytes {}..{}", size, size + 1),
             "1 after its last tensor"),
      Single("WrongSize", SafetensorsWriter().Tensor("a", "F32", {3}, Floats(2)).Bytes(),
             "header tensor a", "data_offsets 0..8 hold 8 bytes"),
      Single("HugeShape",
             SafetensorsWriter().Entry("a", "F32", {1ll << 40, 1ll << 40}, 0, 8).Bytes(),
             "header tensor a", "data_offsets 0..8 hold 8 bytes"),
      Single("EndBeforeStart", SafetensorsWriter().Entry("a", "F32", {1}, 4, 0).Bytes(),
             "header tensor a", "data_offsets 4..0"),
      Single("WrappingOffset", SafetensorsWriter().Entry("a", "F32", {1}, ~0ull - 4, ~0ull).Bytes(),
             "tensor a", "data_offsets from 18446744073709551611"),
      Single("Float8", SafetensorsWriter().Tensor("a", "F8_E4M3", {4}, "abcd").Bytes(), "tensor a",
             "dtype F8_E4M3 is not supported"),
      Single("UnknownDType", SafetensorsWriter().Tensor("a", "X9", {4}, "abcd").Bytes(), "tensor a",
             "dtype X9 is not supported"),
      Single("Overlap",
             SafetensorsWriter()
                 .Entry("a", "F16", {4}, 0, 8)
                 .Entry("b", "F16", {2}, 4, 8)
                 .Data("12345678")
                 .Bytes(),
             "tensor b bytes", "overlaps tensor a"),
      Single("Hole",
             SafetensorsWriter()
                 .Entry("a", "F16", {1}, 0, 2)
                 .Entry("b", "F16", {1}, 4, 6)
                 .Data("123456")
                 .Bytes(),
             "tensor b bytes", "starts after a hole"),
      Single("NameTwice",
             SafetensorsWriter()
                 .Tensor("a", "F16", {1}, "12")
                 .Entry("a", "F16", {1}, 2, 4)
                 .Data("34")
                 .Bytes(),
             "tensor a bytes", "twice"),
  };
}

std::vector<BadFile> Folders() {
  std::string z = SafetensorsWriter().Tensor("z", "F16", {1}, "12").Bytes();
  std::string index(kIndex);
  return {
      {"NoConfig", {{"model.safetensors", GoodTensors().Bytes()}}, "", "has no config.json"},
      {"EmptyConfig", {{"config.json", ""}}, "config.json", "the file has 0 bytes"},
      {"ConfigIsList", {{"config.json", "[{}]"}}, "config.json", "holds a JSON array"},
      {"ConfigIsText", {{"config.json", "hello"}}, "config.json byte", "syntax error"},
      {"ConfigKeyTwice", {{"config.json", R"({"a":1,"a":2})"}}, "config.json", "twice"},
      {"DeepConfig", {{"config.json", std::string(99, '[')}}, "config.json", "nested deeper"},
      {"TokenizerConfigIsNumber",
       {{"config.json", "{}"}, {"tokenizer_config.json", "7"}},
       "tokenizer_config.json",
       "holds a JSON number"},
      {"TemplateIsNumber",
       {{"config.json", "{}"}, {"tokenizer_config.json", R"({"chat_template":7})"}},
       "tokenizer_config.json chat_template",
       "is a JSON number"},
      {"LongTemplate",
       {{"config.json", "{}"}, {"chat_template.jinja", std::string((1 << 20) + 1, 'x')}},
       "chat_template.jinja",
       "1048577 bytes"},
      {"ShardsWithoutIndex",
       {{"config.json", "{}"}, {"a.safetensors", ""}, {"b.safetensors", ""}},
       "",
       "has 2 *.safetensors files and no model.safetensors.index.json"},
      Sharded("MissingShard", index, "", "model.safetensors.index.json tensor z",
              "file model-00002-of-00002.safetensors is missing"),
      Sharded("CutShard", index, Cut(z, 1), "model-00002-of-00002.safetensors tensor z bytes",
              fmt::format("the file has {} bytes", z.size() - 1)),
      Sharded("IndexPointsToTheWrongShard",
              R"({"weight_map":{"a.weight":"model-00002-of-00002.safetensors",
                  "model.norm.weight":"model-00001-of-00002.safetensors"}})",
              z, "index.json tensor a.weight", "not in model-00002-of-00002.safetensors"),
      Sharded("IndexPointsNowhere",
              R"({"weight_map":{"ghost":"model-00001-of-00002.safetensors"}})", z,
              "index.json tensor ghost", "is in no file"),
      Sharded("IndexLeavesTheFolder", R"({"weight_map":{"a.weight":"../../etc/passwd"}})", z,
              "index.json tensor a.weight", "file \"../../etc/passwd\""),
      Sharded("IndexIsList", "[]", z, "index.json", "an array"),
      Sharded("TensorInTwoShards", index,
              SafetensorsWriter()
                  .Tensor("a.weight", "F16", {1}, "12")
                  .Entry("z", "F16", {1}, 2, 4)
                  .Data("34")
                  .Bytes(),
              "tensor a.weight", "twice"),
  };
}

class RefusedCheckpoint : public testing::TestWithParam<BadFile> {};

TEST_P(RefusedCheckpoint, IsOneProblemInFourParts) {
  const BadFile& bad = GetParam();
  TempFolder folder;
  std::string path = folder.path();
  for (const auto& [name, bytes] : bad.files) {
    std::string file = folder.Write(name, bytes);
    if (name.ends_with(".gguf")) path = file;
  }
  Result<Checkpoint> opened = OpenCheckpoint(path);
  ASSERT_FALSE(opened.ok());
  ASSERT_EQ(opened.problems().size(), 1u) << Text(opened.problems());
  const Problem& problem = opened.problems()[0];
  EXPECT_THAT(problem.place, HasSubstr(folder.path()));
  EXPECT_THAT(problem.place, HasSubstr(bad.place));
  EXPECT_THAT(problem.found, HasSubstr(bad.found));
  EXPECT_FALSE(problem.allowed.empty());
  EXPECT_FALSE(problem.next.empty());
  EXPECT_LT(problem.Text().size(), 600u);
}

std::string CaseName(const testing::TestParamInfo<BadFile>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(GgufHeader, RefusedCheckpoint, testing::ValuesIn(GgufHeaders()), CaseName);
INSTANTIATE_TEST_SUITE_P(GgufTensor, RefusedCheckpoint, testing::ValuesIn(GgufTensors()), CaseName);
INSTANTIATE_TEST_SUITE_P(SafetensorsHeader, RefusedCheckpoint,
                         testing::ValuesIn(SafetensorsHeaders()), CaseName);
INSTANTIATE_TEST_SUITE_P(SafetensorsTensor, RefusedCheckpoint,
                         testing::ValuesIn(SafetensorsTensors()), CaseName);
INSTANTIATE_TEST_SUITE_P(Folder, RefusedCheckpoint, testing::ValuesIn(Folders()), CaseName);

void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.name; }

}  // namespace
}  // namespace ashlar

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/formats.h"
#include "support/checkpoint_files.h"
#include "support/gguf_writer.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::GgufWriter;
using testing_support::TempFolder;

Result<Checkpoint> Read(const std::string& bytes) {
  return ReadGguf(MappedFile::Builtin("m.gguf", std::as_bytes(std::span(bytes))));
}

template <class T>
T Value(const Checkpoint& checkpoint, const std::string& key) {
  return std::get<T>(checkpoint.gguf.at(key));
}

TEST(ReadGguf, KeepsEachValueTypeInItsWidestForm) {
  std::string bytes = GgufWriter()
                          .Key("u8", 0, GgufWriter::Raw<uint8_t>(200))
                          .Key("i8", 1, GgufWriter::Raw<int8_t>(-3))
                          .Key("u16", 2, GgufWriter::Raw<uint16_t>(60000))
                          .Key("i16", 3, GgufWriter::Raw<int16_t>(-300))
                          .Uint32("u32", 4'000'000'000u)
                          .Key("i32", 5, GgufWriter::Raw<int32_t>(-70000))
                          .Float32("f32", 0.5f)
                          .Key("bool", 7, GgufWriter::Raw<uint8_t>(1))
                          .String("string", "caf\xc3\xa9")
                          .Key("u64", 10, GgufWriter::Raw<uint64_t>(1ull << 63))
                          .Key("i64", 11, GgufWriter::Raw<int64_t>(-1))
                          .Key("f64", 12, GgufWriter::Raw<double>(0.1))
                          .Bytes();
  Result<Checkpoint> read = Read(bytes);
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  EXPECT_EQ(Value<uint64_t>(*read, "u8"), 200u);
  EXPECT_EQ(Value<int64_t>(*read, "i8"), -3);
  EXPECT_EQ(Value<uint64_t>(*read, "u16"), 60000u);
  EXPECT_EQ(Value<int64_t>(*read, "i16"), -300);
  EXPECT_EQ(Value<uint64_t>(*read, "u32"), 4'000'000'000u);
  EXPECT_EQ(Value<int64_t>(*read, "i32"), -70000);
  EXPECT_EQ(Value<double>(*read, "f32"), 0.5);
  EXPECT_EQ(Value<bool>(*read, "bool"), true);
  EXPECT_EQ(Value<std::string>(*read, "string"), "caf\xc3\xa9");
  EXPECT_EQ(Value<uint64_t>(*read, "u64"), 1ull << 63);
  EXPECT_EQ(Value<int64_t>(*read, "i64"), -1);
  EXPECT_EQ(Value<double>(*read, "f64"), 0.1);
}

TEST(ReadGguf, KeepsArraysWhole) {
  std::string bytes = GgufWriter()
                          .Strings("tokens", {"a", "", "bc"})
                          .Array("types", GgufWriter::kInt32, 2,
                                 GgufWriter::Raw<int32_t>(3) + GgufWriter::Raw<int32_t>(-1))
                          .Array("scores", GgufWriter::kFloat32, 1, GgufWriter::Raw(-1.5f))
                          .Array("flags", GgufWriter::kBool, 2, std::string("\1\0", 2))
                          .Array("empty", GgufWriter::kUint64, 0, "")
                          .Bytes();
  Result<Checkpoint> read = Read(bytes);
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  EXPECT_THAT(Value<std::vector<std::string>>(*read, "tokens"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(Value<std::vector<int64_t>>(*read, "types"), ElementsAre(3, -1));
  EXPECT_THAT(Value<std::vector<double>>(*read, "scores"), ElementsAre(-1.5));
  EXPECT_EQ(Value<std::vector<bool>>(*read, "flags"), (std::vector<bool>{true, false}));
  EXPECT_TRUE(Value<std::vector<int64_t>>(*read, "empty").empty());
}

TEST(ReadGguf, ListsTensorsByNameWithTheOutermostDimensionFirst) {
  std::string matrix(2 * 34, 'q');
  std::string bytes = GgufWriter()
                          .Tensor("w", {2, 32}, GgufWriter::kQ8_0, matrix)
                          .Tensor("b", {3}, GgufWriter::kF32, std::string(12, 'f'))
                          .Bytes();
  Result<Checkpoint> read = Read(bytes);
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  ASSERT_EQ(read->tensors.size(), 2u);
  EXPECT_EQ(read->tensors[0].name, "b");
  const TensorInfo* w = read->Find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_THAT(w->shape, ElementsAre(2, 32));
  EXPECT_EQ(w->dtype, DType::kQ8_0);
  std::span<const std::byte> data = read->Bytes(*w);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.data()), data.size()), matrix);
  EXPECT_EQ(read->Find("x"), nullptr);
  EXPECT_EQ(read->total_bytes(), 80);
}

TEST(ReadGguf, HonoursTheFilesOwnAlignment) {
  std::string bytes = GgufWriter()
                          .Alignment(256)
                          .Tensor("a", {3}, GgufWriter::kF32, std::string(12, 'a'))
                          .Tensor("b", {3}, GgufWriter::kF32, std::string(12, 'b'))
                          .Bytes();
  Result<Checkpoint> read = Read(bytes);
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  EXPECT_EQ(read->Find("a")->offset % 256, 0u);
  EXPECT_EQ(read->Find("b")->offset, read->Find("a")->offset + 256);
}

TEST(ReadGguf, DoesNotNeedPaddingAfterTheLastTensor) {
  std::string bytes = GgufWriter().Tensor("a", {3}, GgufWriter::kF32, std::string(12, 'a')).Bytes();
  bytes.resize(bytes.size() - 20);
  EXPECT_TRUE(Read(bytes).ok());
  bytes.pop_back();
  EXPECT_THAT(Text(Read(bytes).problems()), HasSubstr("the download was probably interrupted"));
}

// The count stands in a file of under 1 KB: whatever is reserved for it would show in the limit.
// LO-03.
TEST(ReadGguf, RefusesAnEndlessArrayBeforeItAllocates) {
  for (uint32_t type : {0u, 4u, 6u, 7u, 8u, 12u}) {
    std::string bytes = GgufWriter().Array("tokenizer.ggml.tokens", type, 1ull << 40, "x").Bytes();
    EXPECT_THAT(Text(Read(bytes).problems()), HasSubstr("an array of 1099511627776 "));
  }
}

// LO-01; shards in refusal_test.
TEST(ReadGguf, EveryCutOfASmallFileIsOneClearProblem) {
  std::string bytes = GgufWriter()
                          .String("general.architecture", "llama")
                          .Strings("tokenizer.ggml.tokens", {"a", "b"})
                          .Tensor("a", {8}, GgufWriter::kF32, std::string(32, 'a'))
                          .Bytes();
  ASSERT_TRUE(Read(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Result<Checkpoint> read = Read(bytes.substr(0, size));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_THAT(read.problems(), testing::SizeIs(1));
    EXPECT_EQ(read.problems()[0].next,
              "the download was probably interrupted: fetch the file again")
        << size << ": " << Text(read.problems());
  }
}

TEST(ReadGguf, OpensAFileOfManyGigabytesByItsHeader) {
  TempFolder folder;
  uint64_t rows = 1 << 21, cols = 4096;  // 16 GiB that no disk holds
  std::string bytes =
      GgufWriter().TensorAt("w", {rows, cols}, GgufWriter::kF16, 0).Data("x").Bytes();
  uint64_t start = bytes.size() - 1, end = start + rows * cols * 2;
  std::string path = folder.Write("big.gguf", bytes);
  EXPECT_THAT(Text(ReadGguf(*MappedFile::Open(path)).problems()),
              HasSubstr(fmt::format("tensor w bytes {}..{}: the file has {} bytes: {} bytes "
                                    "expected",
                                    start, end, start + 1, end)));
  std::filesystem::resize_file(path, end);
  Result<Checkpoint> read = ReadGguf(*MappedFile::Open(path));
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  EXPECT_EQ(read->total_bytes(), 16ll << 30);
}

}  // namespace
}  // namespace ashlar

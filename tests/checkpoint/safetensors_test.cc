#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/formats.h"
#include "support/safetensors_writer.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::SafetensorsWriter;

Result<std::vector<TensorInfo>> Read(const std::string& bytes) {
  return ReadSafetensors(MappedFile::Builtin("m.safetensors", std::as_bytes(std::span(bytes))), 3);
}

TEST(ReadSafetensors, ListsTensorsByNameAtTheirPlaceInTheFile) {
  std::string bytes = SafetensorsWriter()
                          .Raw(R"("__metadata__":{"format":"pt"})")
                          .Entry("w", "BF16", {2, 3}, 4, 16)
                          .Entry("b", "F32", {}, 0, 4)
                          .Data(std::string(16, 'x'))
                          .Bytes();
  auto read = Read(bytes);
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].name, "b");
  EXPECT_EQ((*read)[1].name, "w");
  EXPECT_EQ((*read)[1].dtype, DType::kBF16);
  EXPECT_THAT((*read)[1].shape, ElementsAre(2, 3));
  EXPECT_EQ((*read)[1].file, 3);
  EXPECT_EQ((*read)[1].offset + (*read)[1].bytes, bytes.size());
}

TEST(ReadSafetensors, TakesSpacesAfterTheHeader) {
  std::string header = R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}   )";
  EXPECT_TRUE(Read(SafetensorsWriter::File(header, "xx")).ok());
  header.back() = '\0';
  EXPECT_THAT(Text(Read(SafetensorsWriter::File(header, "xx")).problems()),
              HasSubstr("header byte 64: a zero byte"));
}

TEST(ReadSafetensors, EveryCutOfASmallFileIsOneClearProblem) {
  std::string bytes = SafetensorsWriter()
                          .Tensor("a", "F32", {2}, std::string(8, 'a'))
                          .Tensor("b", "F16", {4}, std::string(8, 'b'))
                          .Bytes();
  ASSERT_TRUE(Read(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto read = Read(bytes.substr(0, size));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_THAT(read.problems(), testing::SizeIs(1));
    EXPECT_EQ(read.problems()[0].next,
              "the download was probably interrupted: fetch the file again")
        << size << ": " << Text(read.problems());
  }
}

TEST(ReadSafetensors, KeepsUpWithAHundredThousandTensors) {
  std::string header;
  constexpr int kTensors = 100'000;
  for (int i = 0; i < kTensors; ++i) {
    header += fmt::format("{}\"t{}\":{{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[{},{}]}}",
                          i == 0 ? "{" : ",", i, 2 * i, 2 * i + 2);
  }
  auto read = Read(SafetensorsWriter::File(header + "}", std::string(2 * kTensors, 'x')));
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  EXPECT_EQ(read->size(), static_cast<size_t>(kTensors));
}

TEST(ReadSafetensorsIndex, KeepsTheMapAndSkipsTheRest) {
  auto read = ReadSafetensorsIndex(
      R"({"metadata":{"total_size":5,"x":[null,{"y":1.5}]},"weight_map":{"b":"2","a":"1"},"z":[]})",
      "index");
  ASSERT_TRUE(read.ok()) << Text(read.problems());
  EXPECT_THAT(*read, ElementsAre(testing::Pair("a", "1"), testing::Pair("b", "2")));
}

TEST(ReadSafetensorsIndex, RefusesWhatIsNoMapOfNames) {
  auto text_of = [](std::string_view text) {
    return Text(ReadSafetensorsIndex(text, "index").problems());
  };
  EXPECT_THAT(text_of("[]"), HasSubstr("index: an array"));
  EXPECT_THAT(text_of("5"), HasSubstr("the number 5"));
  EXPECT_THAT(text_of("{}"), HasSubstr("no weight_map"));
  EXPECT_THAT(text_of(R"({"weight_map":{}})"), HasSubstr("no weight_map"));
  EXPECT_THAT(text_of(R"({"weight_map":[]})"), HasSubstr("an array"));
  EXPECT_THAT(text_of(R"({"weight_map":{"a":1}})"), HasSubstr("index tensor a: the number 1"));
  EXPECT_THAT(text_of(R"({"weight_map":{"a":{}}})"), HasSubstr("index tensor a: an object"));
  EXPECT_THAT(text_of(R"({"weight_map":{"a":"1","a":"2"}})"), HasSubstr("stands twice"));
  EXPECT_THAT(text_of(R"({"weight_map":{"a":"1"},"weight_map":{"b":"2"}})"),
              HasSubstr("weight_map stands twice"));
  EXPECT_THAT(text_of(R"({"weight_map":{"a":"1")"), HasSubstr("byte 23: "));
  EXPECT_THAT(text_of("{\"x\":" + std::string(100, '[')), HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace ashlar

#include "weights/source.h"

#include <gtest/gtest.h>

#include "support/checkpoint_files.h"
#include "support/gguf_writer.h"
#include "support/weights_resident.h"

namespace ashlar {
namespace {

using testing_support::GgufWriter;
using testing_support::ResidentBytes;
using testing_support::TempFolder;

struct BigCheckpoint {
  BigCheckpoint() {
    path = folder.Write("big.gguf", GgufWriter()
                                        .Tensor("w", {kRows, 1024}, GgufWriter::kF32,
                                                std::string(kRows * 4096, 'w'))
                                        .Bytes());
    checkpoint = OpenCheckpoint(path).value();
  }
  static constexpr int64_t kRows = 4096;  // 16 MiB
  TempFolder folder;
  std::string path;
  Checkpoint checkpoint;
};

TEST(WeightSource, DropsWhatAPluginCopied) {
  BigCheckpoint big;
  const TensorInfo& tensor = *big.checkpoint.Find("w");
  const LoadProgress none;
  {
    WeightSource source(big.checkpoint, static_cast<int64_t>(tensor.bytes), none);
    ASSERT_TRUE(source.Open(tensor).ok());
    source.Keep(tensor);
    EXPECT_GE(ResidentBytes(big.path), static_cast<int64_t>(tensor.bytes));
    source.Drop(tensor);
  }
  EXPECT_LT(ResidentBytes(big.path), 1 << 20);
  EXPECT_EQ(big.checkpoint.Bytes(tensor)[5], std::byte{'w'});
}

TEST(WeightSource, LeavesMemoryOfTheProcessAlone) {
  std::string bytes =
      GgufWriter().Tensor("w", {64, 1024}, GgufWriter::kF32, std::string(64 * 4096, 'w')).Bytes();
  BigCheckpoint big;
  Checkpoint in_memory;
  in_memory.files.push_back(MappedFile::Builtin("m", std::as_bytes(std::span(bytes))));
  TensorInfo tensor = *big.checkpoint.Find("w");
  tensor.bytes = 64 * 4096;
  const LoadProgress none;
  WeightSource(in_memory, 1, none).Drop(tensor);
  EXPECT_EQ(bytes[bytes.size() / 2], 'w');
}

TEST(WeightSource, ReportsWithinALargeTensor) {
  BigCheckpoint big;
  const TensorInfo& tensor = *big.checkpoint.Find("w");
  std::vector<int64_t> done;
  const LoadProgress progress = [&](int64_t now, int64_t) { done.push_back(now); };
  WeightSource source(big.checkpoint, static_cast<int64_t>(tensor.bytes), progress);
  source.Keep(tensor);
  EXPECT_EQ(done, (std::vector<int64_t>{8 << 20, 16 << 20}));
}

}  // namespace
}  // namespace ashlar

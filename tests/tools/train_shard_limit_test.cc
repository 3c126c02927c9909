// A shard whose header declares more than the format allows, by every tool that reads shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/formats/shard.h"
#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainShardLimitTest : public TrainProcessTest {
 protected:
  TrainShardLimitTest() : TrainProcessTest("TRAINWRIGHT_MODEL=tiny.json") {}
  void SetUp() override {
    WriteModel("tiny.json");
    const ProcessResult made = Shell(R"(
      head -n 50 $DATA/tinyshakespeare.txt > text && pretokenize -q text | pack -q --mode none --chunk 256 > good.tws &&
      train -q --data good.tws --steps 1 --batch 1 --out model)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
    WriteFile(folder_.path("large.tws"), WithChunksOf(UINT32_MAX));
  }
  /// good.tws with another size of chunks in its header, and all hashes right.
  std::string WithChunksOf(uint32_t chunk_tokens) {
    const std::string good = ReadFile(folder_.path("good.tws"));
    const ShardView view(AsBytes(good), "good.tws");
    ShardSetHeader header = view.info().header;
    header.chunk_tokens = chunk_tokens;
    MemorySink sink;
    ShardWriter writer(&sink, header, 0, 0);
    for (size_t frame = 0; frame < view.info().frames.size(); ++frame) {
      writer.AddFrame(EncodeFrame(header, view.ReadFrame(frame), view.info().frames[frame].first_chunk, 3));
    }
    writer.Finish(/*last=*/true, 0);
    return std::string(AsText(sink.bytes()));
  }
};

TEST_F(TrainShardLimitTest, ChunksAboveTheLimitAreStatus3Everywhere) {
  const std::string good = "good.tws", large = "large.tws";
  const auto expect = [&](const std::string& command, const std::string& data, int status) {
    const ProcessResult result = Shell("set -o pipefail; data=" + data + "; " + command + " > out");
    EXPECT_EQ(result.exit_status, status) << command << ": " << result.standard_error;
    if (status == 0) return;
    EXPECT_THAT(result.standard_error, testing::HasSubstr("chunks of 4294967295 tokens")) << command;
  };
  for (const std::string command :
       {"pack --info $data", "pack --verify $data", "pack --cat $data", "pack --cat - < $data",
        "pack --info - < $data", "pack --export nanogpt $data -o exported",
        "train --data $data --steps 1 --batch 1 --out run --dry-run",
        "train --data $data --steps 1 --batch 1 --out run-$data",
        "train --data - --steps 1 --batch 1 --out piped-$data < $data",
        "train --data good.tws --eval-data $data --steps 1 --batch 1 --out evaluated-$data",
        "evaluate --checkpoint model --data $data"}) {
    expect(command, good, 0);
    expect(command, large, 3);
  }
  EXPECT_EQ(Shell("pack --repair large.tws -o repaired").exit_status, 3);
  EXPECT_FALSE(Exists("run-large.tws"));
}

}  // namespace
}  // namespace trainwright::test

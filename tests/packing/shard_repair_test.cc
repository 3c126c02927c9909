#include "lib/packing/shard_repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "lib/formats/frame_content.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/packing/shard_inspection.h"
#include "tests/formats/shard_fixture.h"
#include "tests/support/memory_shard_output.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;
using testing::ElementsAreArray;

// One chunk a frame, so that a damaged frame is one lost chunk.
ShardSetHeader OneChunkAFrame() {
  ShardSetHeader header = test::SmallShardSet();
  header.chunks_per_frame = 1;
  return header;
}

// A set of two shards: chunks 0 to 2, and 3 and 4.
std::string TwoShards(const ShardSetHeader& header = OneChunkAFrame()) {
  const std::vector<Chunk> chunks = test::SmallChunks();
  std::vector<uint8_t> bytes = test::EncodeShard(header, {chunks[0], chunks[1], chunks[2]}, 0, 0, false);
  AppendBytes(&bytes, test::EncodeShard(header, {chunks[3], chunks[4]}, 1, 3, true));
  return std::string(AsText(bytes));
}

std::vector<Chunk> ChunksOf(const std::string& path) {
  const std::unique_ptr<ShardSet> set = ShardSet::Open(path);
  set->VerifyAll();
  std::vector<Chunk> chunks;
  while (chunks.size() < set->chunks()) {
    uint64_t first = 0;
    for (Chunk& chunk : set->ReadFrameOf(chunks.size(), &first)) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

std::vector<Chunk> Without(std::initializer_list<size_t> lost) {
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < test::SmallChunks().size(); ++i) {
    if (std::find(lost.begin(), lost.end(), i) == lost.end()) chunks.push_back(test::SmallChunks()[i]);
  }
  return chunks;
}

class ShardRepairTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  RepairReport Repair(const std::string& input, const std::string& output = "out.tws") const {
    return RepairShards({.input = path(input), .output = path(output)});
  }
  // The same without a file system; what was saved is in `out`.
  RepairReport RepairInMemory(const std::string& input, test::MemoryShardOutput* out) const {
    return RepairShardsInto({.input = path(input)}, out);
  }
  // Where the frame of a chunk lies in TwoShards().
  static FrameEntry FrameOf(const std::string& bytes, size_t chunk) {
    uint64_t start = 0;
    for (const ByteSpan shard : ShardView::Split(AsBytes(bytes), "the set")) {
      const ShardView view(shard, "a shard");
      for (FrameEntry frame : view.info().frames) {
        frame.offset += start;
        if (frame.first_chunk == chunk) return frame;
      }
      start += shard.size();
    }
    return {};
  }
  TemporaryFolder folder_;
};

TEST_F(ShardRepairTest, ASoundFileComesBackWhole) {
  WriteFile(path("in.tws"), TwoShards());
  const RepairReport report = Repair("in.tws");
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.documents_lost, 0u);
  EXPECT_EQ(ChunksOf(path("out.tws")), test::SmallChunks());
}

TEST_F(ShardRepairTest, CutAnywhereItSavesTheWholeFramesBeforeTheCut) {
  const std::string bytes = TwoShards();
  std::vector<uint64_t> frame_ends;
  for (size_t chunk = 0; chunk < 5; ++chunk) {
    const FrameEntry frame = FrameOf(bytes, chunk);
    frame_ends.push_back(frame.offset + frame.size_bytes);
  }
  for (size_t size = 0; size < bytes.size(); size += 7) {
    SCOPED_TRACE(size);
    WriteFile(path("cut.tws"), bytes.substr(0, size));
    test::MemoryShardOutput out;
    const size_t whole = static_cast<size_t>(
        std::count_if(frame_ends.begin(), frame_ends.end(), [&](uint64_t end) { return end <= size; }));
    if (whole == 0) {
      EXPECT_EQ(CodeOf([&] { RepairInMemory("cut.tws", &out); }), ErrorCode::kBadInput);
      EXPECT_FALSE(out.sealed());
      continue;
    }
    const RepairReport report = RepairInMemory("cut.tws", &out);
    EXPECT_EQ(report.set.totals.chunks, whole);
    std::vector<Chunk> expected = test::SmallChunks();
    expected.resize(whole);
    EXPECT_EQ(test::ReadShardStream(out.bytes()), expected);
  }
}

TEST_F(ShardRepairTest, AFlippedByteAnywhereLosesTheChunkThatItIsInAndNoOther) {
  const std::string bytes = TwoShards();
  for (size_t at = 0; at < bytes.size(); at += 3) {
    SCOPED_TRACE(at);
    std::string flipped = bytes;
    flipped[at] ^= 0x20;
    WriteFile(path("in.tws"), flipped);
    std::optional<size_t> lost;
    for (size_t chunk = 0; chunk < 5; ++chunk) {
      const FrameEntry frame = FrameOf(bytes, chunk);
      if (at >= frame.offset && at < frame.offset + frame.size_bytes) lost = chunk;
    }
    test::MemoryShardOutput out;
    const RepairReport report = RepairInMemory("in.tws", &out);
    EXPECT_FALSE(report.sound());
    EXPECT_EQ(test::ReadShardStream(out.bytes()), lost ? Without({*lost}) : test::SmallChunks());
    if (!lost) continue;
    EXPECT_EQ(report.chunks_lost, 1u);
    EXPECT_EQ(report.documents_lost, TotalsOf(RecordKind::kLm, {&test::SmallChunks()[*lost], 1}).documents);
  }
}

TEST_F(ShardRepairTest, CodesAndTokenizerComeAlong) {
  ShardSetHeader header = OneChunkAFrame();
  std::vector<uint64_t> counts(300, 0);
  counts[7] = 5;
  header.id_codes = std::make_shared<const IdCodes>(IdCodes::ForCounts(counts));
  const std::string bytes = TwoShards(header);
  WriteFile(path("in.tws"), bytes.substr(0, bytes.size() - 100));
  const RepairReport report = Repair("in.tws");
  EXPECT_FALSE(report.tokenizer_lost);
  EXPECT_EQ(ShardSet::Open(path("out.tws"))->header().tokenizer, header.tokenizer);
  EXPECT_EQ(*ShardSet::Open(path("out.tws"))->header().id_codes, *header.id_codes);
  EXPECT_EQ(ChunksOf(path("out.tws")), test::SmallChunks());
}

TEST_F(ShardRepairTest, NoModelIsLostOfATokenizerThatWasNeverKnown) {
  ShardSetHeader header = OneChunkAFrame();
  header.tokenizer.model.clear();
  WriteFile(path("in.tws"), TwoShards(header));
  EXPECT_TRUE(Repair("in.tws").tokenizer_lost);
  header.tokenizer.kind = kUnknownTokenizerKind;
  WriteFile(path("unknown.tws"), TwoShards(header));
  EXPECT_FALSE(Repair("unknown.tws", "saved.tws").tokenizer_lost);
}

TEST_F(ShardRepairTest, AFolderThatLacksAShardSavesTheOthersAndCountsWhatIsLost) {
  const std::string bytes = TwoShards();
  const auto shards = ShardView::Split(AsBytes(bytes), "the set");
  std::filesystem::create_directory(path("set"));
  std::vector<ManifestEntry> entries;
  for (size_t i = 0; i < 2; ++i) {
    const ShardView view(shards[i], "a shard");
    entries.push_back({"shard-0000" + std::to_string(i) + "-x.tws", shards[i].size(),
                       view.info().content_sha256, view.info().totals});
  }
  WriteFile(path("set/MANIFEST.json"), EncodeManifest(OneChunkAFrame(), entries));
  WriteFile(path("set/" + entries[1].file_name), std::string(AsText(shards[1])));
  RepairReport report = Repair("set", "out/");
  EXPECT_EQ(ChunksOf(path("out")), Without({0, 1, 2}));
  EXPECT_TRUE(report.end_known);
  EXPECT_EQ(report.chunks_lost, 3u);
  EXPECT_EQ(report.documents_lost, 3u);
  EXPECT_TRUE(report.tokenizer_lost);

  WriteFile(path("set/" + entries[0].file_name), std::string(AsText(shards[0])));
  std::filesystem::remove(path("set/MANIFEST.json"));
  report = Repair("set", "again/");
  EXPECT_EQ(ChunksOf(path("again")), test::SmallChunks());
  EXPECT_EQ(report.documents_lost, 0u);
}

TEST_F(ShardRepairTest, TheInputStaysAsItIsAndIsNeverTheOutput) {
  const std::string cut = TwoShards().substr(0, 400);
  WriteFile(path("in.tws"), cut);
  Repair("in.tws");
  EXPECT_EQ(ReadFile(path("in.tws")), cut);
  EXPECT_EQ(CodeOf([&] { Repair("in.tws", "in.tws"); }), ErrorCode::kUsage);
  EXPECT_EQ(CodeOf([&] { Repair("in.tws", ""); }), ErrorCode::kUsage);
  EXPECT_EQ(ReadFile(path("in.tws")), cut);
}

TEST_F(ShardRepairTest, JunkIsRefused) {
  WriteFile(path("empty"), "");
  EXPECT_EQ(CodeOf([&] { Repair("empty"); }), ErrorCode::kBadInput);
  std::mt19937_64 random(test::TestSeed());
  std::string junk(5000, '\0');
  for (char& byte : junk) byte = static_cast<char>(random());
  WriteFile(path("junk"), junk);
  EXPECT_EQ(CodeOf([&] { Repair("junk"); }), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { Repair("absent"); }), ErrorCode::kIo);
}

TEST_F(ShardRepairTest, AFrameThatIsThereTwiceIsSavedOnce) {
  const std::string bytes = TwoShards();
  const FrameEntry frame = FrameOf(bytes, 1);
  const std::string twice = bytes.substr(0, frame.offset + frame.size_bytes) +
                            bytes.substr(frame.offset, frame.size_bytes) +
                            bytes.substr(frame.offset + frame.size_bytes);
  WriteFile(path("in.tws"), twice);
  EXPECT_FALSE(Repair("in.tws").sound());
  EXPECT_EQ(ChunksOf(path("out.tws")), test::SmallChunks());
}

TEST_F(ShardRepairTest, DocumentsOfASecondSetInTheFileAreNotSaidToBeSaved) {
  const std::vector<uint8_t> first = test::EncodeShard(test::SmallShardSet(), {test::SmallChunks()[0]}, 0, 0,
                                                       true),
                             second = test::EncodeShard(test::SmallShardSet(), {test::SmallChunks()[1]}, 0, 0,
                                                        true);
  WriteFile(path("in.tws"), std::string(AsText(first)) + std::string(AsText(second)));
  const RepairReport report = Repair("in.tws");
  EXPECT_FALSE(report.sound());
  EXPECT_EQ(report.documents_lost, std::nullopt);
  WriteFile(path("in.tws"), std::string(AsText(first)) + std::string(AsText(first)));
  EXPECT_EQ(Repair("in.tws").documents_lost, 0u);
}

}  // namespace
}  // namespace trainwright

#include "lib/formats/shard_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/formats/shard_fixture.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::ReadFile;
using test::SmallChunks;
using test::SmallShardSet;
using test::WriteFile;
using testing::HasSubstr;

/// A sealed folder of three shards: chunks 0-1, 2-3 and 4 of SmallChunks().
class ShardSetTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<Chunk> chunks = SmallChunks();
    Add({chunks[0], chunks[1]}, 0, 0, false);
    Add({chunks[2], chunks[3]}, 1, 2, false);
    Add({chunks[4]}, 2, 4, true);
    WriteFile(folder_.path(kManifestName), EncodeManifest(SmallShardSet(), entries_));
  }

  void Add(const std::vector<Chunk>& chunks, uint32_t number, uint64_t first_chunk, bool last) {
    const std::vector<uint8_t> bytes = test::EncodeShard(SmallShardSet(), chunks, number, first_chunk, last);
    const ShardInfo info = ShardView(bytes, "a shard").info();
    const std::string name = ShardFileName(number, info.content_sha256);
    WriteFile(folder_.path(name), AsText(bytes));
    entries_.push_back({name, bytes.size(), info.content_sha256, info.totals});
    joined_ += AsText(bytes);
  }

  std::string Shard(size_t i) const { return folder_.path(entries_[i].file_name); }
  std::string OpenMessage() const {
    return MessageOf([&] { ShardSet::Open(folder_.path()); });
  }

  test::TemporaryFolder folder_;
  std::vector<ManifestEntry> entries_;
  std::string joined_;
};

std::vector<Chunk> ReadAll(const ShardSet& set) {
  std::vector<Chunk> chunks;
  while (chunks.size() < set.chunks()) {
    uint64_t first_chunk = 0;
    const std::vector<Chunk> some = set.ReadFrameOf(chunks.size(), &first_chunk);
    EXPECT_EQ(first_chunk, chunks.size());
    chunks.insert(chunks.end(), some.begin(), some.end());
  }
  return chunks;
}

TEST_F(ShardSetTest, FolderAndFileAreTheSameSet) {
  WriteFile(folder_.path("set.tws"), joined_);
  const auto folder = ShardSet::Open(folder_.path() + "//");
  const auto file = ShardSet::Open(folder_.path("set.tws"));
  EXPECT_EQ(ReadAll(*folder), SmallChunks());
  EXPECT_EQ(ReadAll(*file), SmallChunks());
  EXPECT_EQ(folder->content_sha256(), file->content_sha256());
  EXPECT_EQ(folder->totals(), file->totals());
  EXPECT_EQ(folder->header().tokenizer.model, "a model");
  EXPECT_NO_THROW(folder->VerifyAll());
  EXPECT_NO_THROW(file->VerifyAll());
}

TEST_F(ShardSetTest, EveryChunkIsFoundInItsFrame) {
  const auto set = ShardSet::Open(folder_.path());
  const std::vector<Chunk> chunks = SmallChunks();
  for (uint64_t chunk = 0; chunk < chunks.size(); ++chunk) {
    uint64_t first = 0;
    const std::vector<Chunk> frame = set->ReadFrameOf(chunk, &first);
    EXPECT_EQ(frame.at(chunk - first), chunks[chunk]);
  }
}

TEST_F(ShardSetTest, AShardThatIsCutWhileItIsReadIsAnErrorThatNamesIt) {
  WriteFile(folder_.path("set.tws"), joined_);
  const auto folder = ShardSet::Open(folder_.path());
  const auto file = ShardSet::Open(folder_.path("set.tws"));
  std::filesystem::resize_file(Shard(1), 0);
  std::filesystem::resize_file(folder_.path("set.tws"), 0);
  uint64_t first = 0;
  EXPECT_THAT(MessageOf([&] { folder->ReadFrameOf(2, &first); }), HasSubstr(Shard(1)));
  EXPECT_NO_THROW(folder->ReadFrameOf(4, &first));
  EXPECT_EQ(CodeOf([&] { file->ReadFrameOf(0, &first); }), ErrorCode::kBadInput);
  EXPECT_EQ(CodeOf([&] { file->VerifyAll(); }), ErrorCode::kBadInput);
}

TEST_F(ShardSetTest, AShardThatAnotherFileReplacesIsReadToItsEnd) {
  const auto set = ShardSet::Open(folder_.path());
  WriteFile(folder_.path("other"), "");
  std::filesystem::rename(folder_.path("other"), Shard(1));
  EXPECT_EQ(ReadAll(*set), SmallChunks());
}

TEST_F(ShardSetTest, AFolderThatPackDidNotFinishIsRefused) {
  std::filesystem::remove(folder_.path(kManifestName));
  EXPECT_THAT(OpenMessage(), HasSubstr("pack did not finish"));
}

TEST_F(ShardSetTest, AMissingShardIsRefused) {
  std::filesystem::remove(Shard(1));
  EXPECT_THAT(OpenMessage(), HasSubstr("is missing"));
}

TEST_F(ShardSetTest, AShardOfAnotherSizeIsRefused) {
  WriteFile(Shard(1), ReadFile(Shard(1)) + "x");
  EXPECT_THAT(OpenMessage(), HasSubstr("instead of"));
}

TEST_F(ShardSetTest, AShardOfOtherContentIsRefused) {
  std::vector<Chunk> chunks = {SmallChunks()[2], SmallChunks()[3]};
  chunks[1].tokens.assign(8, 6);
  const std::vector<uint8_t> bytes = test::EncodeShard(SmallShardSet(), chunks, 1, 2, false);
  ASSERT_EQ(bytes.size(), entries_[1].size_bytes);
  WriteFile(Shard(1), AsText(bytes));
  EXPECT_THAT(OpenMessage(), HasSubstr("holds other content"));
}

TEST_F(ShardSetTest, StrayFilesAreIgnored) {
  WriteFile(folder_.path("shard-00009-000000000000.tws"), "from an older run");
  EXPECT_NO_THROW(ShardSet::Open(folder_.path()));
}

TEST_F(ShardSetTest, AManifestThatNamesFewerShardsIsRefused) {
  entries_.pop_back();
  WriteFile(folder_.path(kManifestName), EncodeManifest(SmallShardSet(), entries_));
  EXPECT_THAT(OpenMessage(), HasSubstr("lacks the last shard"));
}

TEST_F(ShardSetTest, AManifestInTheWrongOrderIsRefused) {
  std::swap(entries_[0], entries_[1]);
  WriteFile(folder_.path(kManifestName), EncodeManifest(SmallShardSet(), entries_));
  EXPECT_THAT(OpenMessage(), HasSubstr("out of order"));
}

TEST_F(ShardSetTest, AManifestNeverLeadsOutOfTheFolder) {
  for (const std::string name : {"../x", "/etc/passwd", "", ".", "..", "a/b"}) {
    entries_[0].file_name = name;
    EXPECT_EQ(CodeOf([&] { DecodeManifest(EncodeManifest(SmallShardSet(), entries_), "a manifest"); }),
              ErrorCode::kBadInput);
  }
}

// All folders are written before any is read: a reader waits while a file is younger than a tick of the
// clock, some milliseconds.
TEST_F(ShardSetTest, AFlipInEveryByteOfTheManifestIsRejected) {
  const std::string text = ReadFile(folder_.path(kManifestName));
  const auto set = [&](size_t i) { return folder_.path(std::to_string(i)); };
  for (size_t i = 0; i < text.size(); ++i) {
    std::filesystem::create_directory(set(i));
    for (const ManifestEntry& entry : entries_) {
      std::filesystem::create_hard_link(folder_.path(entry.file_name), set(i) + "/" + entry.file_name);
    }
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1 << (i % 8));
    WriteFile(set(i) + "/" + kManifestName, flipped);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(CodeOf([&] { ShardSet::Open(set(i)); }), ErrorCode::kBadInput)
        << "byte " << i << " of " << text;
  }
}

TEST_F(ShardSetTest, AManifestMaySayMoreThanThisReleaseKnows) {
  auto manifest = nlohmann::json::parse(ReadFile(folder_.path(kManifestName)));
  manifest["new"] = 1;
  manifest["shards"][0]["new"] = "field";
  WriteFile(folder_.path(kManifestName), manifest.dump());
  EXPECT_NO_THROW(ShardSet::Open(folder_.path()));
}

TEST_F(ShardSetTest, ManifestEntriesComeBackAsWritten) {
  const std::string text = EncodeManifest(SmallShardSet(), entries_);
  EXPECT_EQ(EncodeManifest(SmallShardSet(), DecodeManifest(text, "a manifest")), text);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema"], "trainwright.manifest/1");
  EXPECT_EQ(json["totals"]["docs"], 5);
  EXPECT_EQ(json["shards"].size(), 3u);
}

TEST_F(ShardSetTest, AFolderSaysHowAppendedShardsWereMade) {
  const std::string first = SmallShardSet().provenance_json;
  EXPECT_EQ(ShardSet::Open(folder_.path())->provenance_json(), first);
  entries_[0].provenance_json = first;
  entries_[1].provenance_json = entries_[2].provenance_json = R"({"tool":"other"})";
  WriteFile(folder_.path(kManifestName), EncodeManifest(SmallShardSet(), entries_));
  const auto set = ShardSet::Open(folder_.path());
  EXPECT_EQ(set->provenance_json(), "[" + first + R"(,{"tool":"other"}])");
  EXPECT_EQ(set->header().provenance_json, first) << "which shards that are appended next have, too";
  WriteFile(folder_.path("set.tws"), joined_);
  EXPECT_EQ(ShardSet::Open(folder_.path("set.tws"))->provenance_json(), first);
  EXPECT_EQ(ShardSet::OpenCopy(folder_.path("set.tws"), *set)->provenance_json(), set->provenance_json());
}

TEST_F(ShardSetTest, VerifyAllFindsAFlipInAnyFrame) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string good = ReadFile(Shard(i));
    const FrameEntry frame = ShardView(AsBytes(good), "a shard").info().frames[0];
    std::string bad = good;
    bad[frame.offset + frame.size_bytes / 2] ^= 4;
    WriteFile(Shard(i), bad);
    EXPECT_EQ(CodeOf([&] { ShardSet::Open(folder_.path())->VerifyAll(); }), ErrorCode::kBadInput);
    WriteFile(Shard(i), good);
  }
}

TEST_F(ShardSetTest, ACutFileIsRefused) {
  const auto path = [&](size_t cut) { return folder_.path("set" + std::to_string(cut) + ".tws"); };
  for (size_t cut = 0; cut < joined_.size(); cut += 7) WriteFile(path(cut), joined_.substr(0, cut));
  for (size_t cut = 0; cut < joined_.size(); cut += 7) {
    EXPECT_EQ(CodeOf([&] { ShardSet::Open(path(cut)); }), ErrorCode::kBadInput) << "cut at " << cut;
  }
}

TEST(ShardFileNameTest, ShowsNumberAndContent) {
  Sha256Digest digest{};
  digest[0] = 0xAB;
  EXPECT_EQ(ShardFileName(7, digest), "shard-00007-ab0000000000.tws");
  EXPECT_EQ(ShardFileName(1'234'567, digest), "shard-1234567-ab0000000000.tws");
}

}  // namespace
}  // namespace trainwright

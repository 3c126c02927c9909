// Copies of shards on another disk, as train --cache-dir makes them.
#include "lib/loading/cached_shard_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/error.h"
#include "lib/packing/pack_job.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::NamesIn;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

class CachedShardSetTest : public testing::Test {
 protected:
  CachedShardSetTest() {
    std::filesystem::create_directory(folder_.path("fast"));
    Pack("slow", 'a');
  }

  /// A folder of some shards.
  /// \param append to those that it holds
  void Pack(const std::string& name, uint32_t letter, const std::string& provenance_json = "{}",
            bool append = false) const {
    MemorySink sink;
    TokenStreamWriter writer(
        &sink, {.tokenizer = LoadTokenizer("bytes")->identity(), .provenance_json = provenance_json});
    for (uint32_t document = 0; document < 300; ++document) {
      const std::vector<uint32_t> tokens(1000 + document, letter + document % 20);
      writer.Write({.tokens = tokens, .source_bytes = tokens.size()});
    }
    writer.Finish();
    WriteFile(folder_.path(name + ".tok"), std::string(AsText(sink.bytes())));
    PackJobOptions options;
    options.inputs = {folder_.path(name + ".tok")};
    options.output = folder_.path(name) + "/";
    options.packer.chunk_tokens = 512;
    options.shard_size_bytes = 2000;
    options.append = append;
    RunPack(options, ProgressMode::kNever);
  }
  std::unique_ptr<ShardSet> Open() const {
    return OpenCachedShardSet(folder_.path("slow"), folder_.path("fast"), /*copies_always=*/true);
  }
  std::vector<std::string> Copies() const {
    std::vector<std::string> copies;
    for (const std::string& name : NamesIn(folder_.path("fast"))) {
      if (name.ends_with(".tws")) copies.push_back(folder_.path("fast") + "/" + name);
    }
    return copies;
  }
  static uint64_t InodeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_ino;
  }

  const TemporaryFolder folder_;
};

TEST_F(CachedShardSetTest, ACopyHoldsTheChunksAndServesLaterRunsWithoutTheOriginalsFrames) {
  const std::unique_ptr<ShardSet> original = ShardSet::Open(folder_.path("slow"));
  ASSERT_GT(original->shards().size(), 1u);
  const std::unique_ptr<ShardSet> copy = Open();
  ASSERT_EQ(Copies().size(), 1u);
  EXPECT_EQ(copy->parts().front().name, Copies()[0]);
  ASSERT_EQ(copy->chunks(), original->chunks());
  for (uint64_t chunk = 0; chunk < original->chunks();) {
    uint64_t first = 0, first_of_copy = 0;
    const std::vector<Chunk> expected = original->ReadFrameOf(chunk, &first);
    ASSERT_EQ(copy->ReadFrameOf(chunk, &first_of_copy), expected);
    chunk = first + expected.size();
  }
  const uint64_t inode = InodeOf(Copies()[0]);
  Open();
  ASSERT_EQ(Copies().size(), 1u);
  EXPECT_EQ(InodeOf(Copies()[0]), inode) << "it was copied a second time";
  Pack("slow", 'A');
  Open();
  EXPECT_EQ(Copies().size(), 2u) << "other content is another copy";
}

TEST_F(CachedShardSetTest, ACopySaysHowAppendedShardsWereMade) {
  Pack("slow", 'A', R"({"tool":"other"})", /*append=*/true);
  const std::string expected = ShardSet::Open(folder_.path("slow"))->provenance_json();
  EXPECT_THAT(expected, testing::HasSubstr("other"));
  EXPECT_EQ(Open()->provenance_json(), expected) << "when it is made";
  EXPECT_EQ(Open()->provenance_json(), expected) << "when it is there";
  EXPECT_EQ(Copies().size(), 1u);
}

TEST_F(CachedShardSetTest, OneOfSeveralThatWantItCopies) {
  std::vector<std::thread> threads;
  std::vector<uint64_t> inodes(6);
  for (uint64_t& inode : inodes) {
    threads.emplace_back([&] { inode = InodeOf(Open()->parts().front().name); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(inodes, testing::Each(inodes.front()));
  EXPECT_EQ(Copies().size(), 1u);
}

TEST_F(CachedShardSetTest, OnOneFileSystemNothingIsCopied) {
  const std::unique_ptr<ShardSet> set = OpenCachedShardSet(folder_.path("slow"), folder_.path("fast"));
  EXPECT_EQ(set->parts().front().name, folder_.path("slow"));
  EXPECT_TRUE(Copies().empty());
}

TEST_F(CachedShardSetTest, ACopyOfSomethingElseAndACutOneAreMadeAgain) {
  Open();
  const std::string copy = Copies().at(0), content = ReadFile(copy);
  for (const size_t kept : {content.size() - 10, size_t{0}}) {
    WriteFile(copy, content.substr(0, kept));
    Open()->VerifyAll();
    EXPECT_EQ(ReadFile(copy), content);
  }
  Pack("other", 'A');
  std::filesystem::remove(copy);
  OpenCachedShardSet(folder_.path("other"), folder_.path("fast"), true);
  std::filesystem::rename(Copies().at(0), copy);
  Open();
  EXPECT_EQ(ReadFile(copy), content);
  EXPECT_EQ(CodeOf([&] { OpenCachedShardSet(folder_.path("slow"), folder_.path("slow.tok"), true); }),
            ErrorCode::kIo);
}

}  // namespace
}  // namespace trainwright

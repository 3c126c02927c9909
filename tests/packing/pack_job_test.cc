#include "lib/packing/pack_job.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/token_stream_set.h"
#include "lib/io/byte_source.h"
#include "lib/packing/shard_folder_writer.h"
#include "lib/packing/shard_inspection.h"
#include "lib/packing/shard_set_writer.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"
#include "tests/support/syscall_faults/syscall_faults.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::NamesIn;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

using Document = std::vector<uint32_t>;

// Documents of the built-in tokenizer, a few of them empty and a few long.
std::vector<Document> SomeDocuments(uint64_t index, size_t count = 300, size_t usual_tokens = 60) {
  const Rng rng(test::TestSeed(), "pack job documents", index);
  std::vector<Document> documents(count);
  uint64_t counter = 0;
  for (Document& document : documents) {
    const uint64_t draw = rng.Bits(counter++);
    const size_t tokens =
        draw % 17 == 0 ? 0 : draw / 17 % (draw % 11 == 0 ? 10 * usual_tokens : usual_tokens);
    for (size_t i = 0; i < tokens; ++i) document.push_back('a' + rng.Bits(counter++) % 26);
  }
  return documents;
}

std::string Stream(const std::vector<Document>& documents,
                   TokenizerIdentity tokenizer = LoadTokenizer("bytes")->identity()) {
  MemorySink sink;
  TokenStreamWriter writer(&sink,
                           {.tokenizer = std::move(tokenizer), .provenance_json = "{\"tool\":\"test\"}"});
  for (const Document& document : documents) {
    writer.Write({.tokens = document, .source_bytes = document.size()});
  }
  writer.Finish();
  return std::string(AsText(sink.bytes()));
}

// Small chunks and small shards, so that little input has all the structure.
PackJobOptions SmallOptions(const std::string& input, const std::string& output) {
  PackJobOptions options;
  options.inputs = {input};
  options.output = output;
  options.packer = {PackMode::kBestFit, OverflowPolicy::kSplit, 16384, 1 << 17};
  options.shard_size_bytes = 60000;
  options.threads = 2;
  return options;
}

// About 20 frames in several shards.
std::vector<Document> ManyDocuments(uint64_t index) {
  return SomeDocuments(index, 6000, 120);
}

PackReport Pack(const PackJobOptions& options) {
  return RunPack(options, ProgressMode::kNever);
}

// What `cat DIR/shard-*.tws` gives.
std::string CatShards(const std::string& folder) {
  std::string bytes;
  for (const std::string& name : NamesIn(folder)) {
    if (name.starts_with("shard-")) bytes += ReadFile(folder + "/" + name);
  }
  return bytes;
}

// Names and contents of everything in a folder that is not the lock.
std::map<std::string, std::string> Snapshot(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : NamesIn(folder)) {
    if (name != ".lock") files[name] = ReadFile(folder + "/" + name);
  }
  return files;
}

std::vector<Chunk> ChunksOf(const std::string& path) {
  const std::unique_ptr<ShardSet> set = ShardSet::Open(path);
  std::vector<Chunk> chunks;
  while (chunks.size() < set->chunks()) {
    uint64_t first = 0;
    for (Chunk& chunk : set->ReadFrameOf(chunks.size(), &first)) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

// Feeds a named pipe from a thread, as a producer would.
class PipeFeeder {
 public:
  PipeFeeder(std::string path, std::string content) : path_(std::move(path)) {
    TRAINWRIGHT_CHECK(mkfifo(path_.c_str(), 0600) == 0);
    thread_ = std::thread([this, content = std::move(content)] { WriteFile(path_, content); });
  }
  ~PipeFeeder() { thread_.join(); }

 private:
  std::string path_;
  std::thread thread_;
};

TEST(PackJobTest, AFolderAndAFileHoldTheSameBytes) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(1)));
  const PackReport report = Pack(SmallOptions(folder.path("in"), folder.path("shards/")));
  Pack(SmallOptions(folder.path("in"), folder.path("file.tws")));
  EXPECT_GE(report.set.shards, 3u);
  EXPECT_EQ(CatShards(folder.path("shards")), ReadFile(folder.path("file.tws")));
  EXPECT_EQ(report.set.size_bytes, ReadFile(folder.path("file.tws")).size());
}

TEST(PackJobTest, BytesDoNotDependOnThreads) {
  for (const OverflowPolicy overflow : {OverflowPolicy::kSplit, OverflowPolicy::kDrop}) {
    const TemporaryFolder folder;
    WriteFile(folder.path("in"), Stream(ManyDocuments(2)));
    std::set<std::string> results;
    for (const int threads : {1, 2, 5}) {
      PackJobOptions options = SmallOptions(folder.path("in"), folder.path("out"));
      options.threads = threads;
      options.packer.overflow = overflow;
      options.packer.chunk_tokens = 1000;
      options.packer.window_tokens = 20000;
      EXPECT_GE(Pack(options).set.shards, 3u);
      results.insert(ReadFile(folder.path("out")));
    }
    EXPECT_EQ(results.size(), 1u);
  }
}

// Ids of a large vocabulary, a few of them frequent.
std::string LargeVocabularyStream(uint32_t vocab_size, uint64_t index) {
  TokenizerIdentity tokenizer = LoadTokenizer("bytes")->identity();
  tokenizer.kind = "demo";
  tokenizer.vocab_size = vocab_size;
  const Rng rng(test::TestSeed(), "large vocabulary", index);
  std::vector<Document> documents(500);
  uint64_t counter = 0;
  for (Document& document : documents) {
    document.resize(rng.Bits(counter++) % 300);
    for (uint32_t& id : document) {
      const uint64_t draw = rng.Bits(counter++);
      id = static_cast<uint32_t>(draw % (draw % 3 == 0 ? vocab_size : 1 + vocab_size / 1000));
    }
  }
  return Stream(documents, tokenizer);
}

TEST(PackJobTest, RemapChangesTheStoredBytesAndNoToken) {
  for (const uint32_t vocab_size : {300u, 65'536u, 131'072u, 200'019u, 1u << 20}) {
    SCOPED_TRACE(vocab_size);
    const TemporaryFolder folder;
    const std::string input = folder.path() + "/in";
    WriteFile(input, LargeVocabularyStream(vocab_size, vocab_size));
    PackJobOptions options = SmallOptions(input, folder.path() + "/plain/");
    const PackReport plain = Pack(options);
    options.output = folder.path() + "/remap/";
    options.remap = true;
    const PackReport remapped = Pack(options);
    EXPECT_EQ(ChunksOf(folder.path() + "/remap"), ChunksOf(folder.path() + "/plain"));
    EXPECT_EQ(VerifyShards(folder.path() + "/remap").totals, plain.set.totals);
    EXPECT_NE(remapped.set.content_sha256, plain.set.content_sha256);
    EXPECT_LT(remapped.set.frames_bytes, plain.set.frames_bytes);
  }
}

TEST(PackJobTest, RemappedBytesDoNotDependOnThreadsPipesOrFolders) {
  const TemporaryFolder folder;
  const std::string content = LargeVocabularyStream(131'072, 1);
  WriteFile(folder.path() + "/in", content);
  PackJobOptions options = SmallOptions(folder.path() + "/in", folder.path() + "/file");
  options.remap = true;
  options.threads = 1;
  Pack(options);
  const std::string expected = ReadFile(folder.path() + "/file");
  options.threads = 5;
  options.output = folder.path() + "/shards/";
  {
    const PipeFeeder feeder(folder.path() + "/pipe", content);
    options.inputs = {folder.path() + "/pipe"};
    Pack(options);
  }
  EXPECT_EQ(CatShards(folder.path() + "/shards"), expected);
}

TEST(PackJobTest, RemapOfMoreTokensThanItCountsHoldsOnlyThoseBack) {
  const TemporaryFolder folder;
  // Behind the tokens that are counted come ids that were never seen.
  std::vector<Document> documents(2, Document(kRemapTokens - 5, 'a'));
  documents.push_back({200, 201, 202});
  WriteFile(folder.path() + "/in", Stream(documents));
  PackJobOptions options = SmallOptions(folder.path() + "/in", folder.path() + "/out");
  options.packer.chunk_tokens = 1 << 20;
  options.remap = true;
  Pack(options);
  const std::vector<Chunk> chunks = ChunksOf(folder.path() + "/out");
  ASSERT_EQ(chunks.size(), 33u);
  EXPECT_THAT(chunks.back().tokens, testing::Contains(202u));
}

TEST(PackJobTest, RemapRefusesAVocabularyThatItCannotRank) {
  const TemporaryFolder folder;
  WriteFile(folder.path() + "/in", LargeVocabularyStream(IdCodes::kMaxVocabulary + 1, 1));
  PackJobOptions options = SmallOptions(folder.path() + "/in", folder.path() + "/out");
  options.remap = true;
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/out"));
}

TEST(PackJobTest, APipeAFileAndCompressedFilesAreTheSameInput) {
  const TemporaryFolder folder;
  const std::string stream = Stream(ManyDocuments(3));
  WriteFile(folder.path("in"), stream);
  std::string zstd(ZSTD_compressBound(stream.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), stream.data(), stream.size(), 1));
  WriteFile(folder.path("in.zst"), zstd);
  gzFile gzip = gzopen(folder.path("in.gz").c_str(), "wb");
  gzwrite(gzip, stream.data(), static_cast<unsigned>(stream.size()));
  gzclose(gzip);
  const PipeFeeder feeder(folder.path("pipe"), stream);
  std::set<std::string> results;
  for (const std::string name : {"in", "in.zst", "in.gz", "pipe"}) {
    Pack(SmallOptions(folder.path(name), folder.path("out")));
    results.insert(ReadFile(folder.path("out")));
  }
  EXPECT_EQ(results.size(), 1u);
}

TEST(PackJobTest, SeveralFilesArePackedAsOneStreamInTheirOrder) {
  const TemporaryFolder folder;
  const std::vector<Document> first = SomeDocuments(4), second = SomeDocuments(5);
  std::vector<Document> both = first;
  both.insert(both.end(), second.begin(), second.end());
  WriteFile(folder.path("first"), Stream(first));
  WriteFile(folder.path("both"), Stream(both));
  const PipeFeeder feeder(folder.path("second"), Stream(second));
  PackJobOptions options = SmallOptions(folder.path("first"), folder.path("of-two"));
  options.inputs.push_back(folder.path("second"));
  Pack(options);
  Pack(SmallOptions(folder.path("both"), folder.path("of-one")));
  EXPECT_EQ(ReadFile(folder.path("of-two")), ReadFile(folder.path("of-one")));
}

TEST(PackJobTest, ShardsHoldWhatThePackerMade) {
  for (const PackMode mode : {PackMode::kNone, PackMode::kConcat, PackMode::kBestFit}) {
    for (const uint32_t chunk_tokens : {7u, 500u, 16384u}) {
      const TemporaryFolder folder;
      const std::vector<Document> documents = SomeDocuments(6);
      WriteFile(folder.path("in"), Stream(documents));
      PackJobOptions options = SmallOptions(folder.path("in"), folder.path("shards/"));
      options.packer.mode = mode;
      options.packer.chunk_tokens = chunk_tokens;
      std::vector<Chunk> expected;
      Packer packer(options.packer, [&](Chunk chunk) { expected.push_back(std::move(chunk)); });
      for (const Document& document : documents)
        packer.Add({.tokens = document, .source_bytes = document.size()});
      packer.Finish();
      Pack(options);
      EXPECT_EQ(ChunksOf(folder.path("shards")), expected);
    }
  }
}

TEST(PackJobTest, ReportAndInfoCountWhatTheShardsHold) {
  const TemporaryFolder folder;
  const std::vector<Document> documents = SomeDocuments(7);
  WriteFile(folder.path("in"), Stream(documents));
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("shards/"));
  options.packer.chunk_tokens = 100;
  options.packer.overflow = OverflowPolicy::kTruncate;
  const PackReport report = Pack(options);
  uint64_t tokens = 0, with_tokens = 0, cut = 0, dropped = 0;
  for (const Document& document : documents) {
    with_tokens += document.empty() ? 0 : 1;
    cut += document.size() > 100 ? 1 : 0;
    dropped += document.size() > 100 ? document.size() - 100 : 0;
    tokens += std::min<size_t>(document.size(), 100);
  }
  ASSERT_GT(cut, 0u);
  const nlohmann::json json = ToJson(InspectShards(folder.path("shards")));
  EXPECT_EQ(json, nlohmann::json(ToJson(report.set)));
  EXPECT_EQ(json["chunk"], 100);
  EXPECT_EQ(json["docs"], with_tokens);
  EXPECT_EQ(json["tokens"], tokens);
  EXPECT_EQ(json["source_bytes"], tokens);
  EXPECT_EQ(json["docs_cut"], cut);
  EXPECT_EQ(json["tokens_dropped"], dropped);
  EXPECT_EQ(json["pad_tokens"], 100 * json["chunks"].get<uint64_t>() - tokens);
  EXPECT_EQ(json["vocab_size"], LoadTokenizer("bytes")->identity().vocab_size);
  EXPECT_EQ(json["tokenizer_sha256"], HexEncode(LoadTokenizer("bytes")->identity().sha256));
  EXPECT_EQ(json["mode"], "bestfit");
  EXPECT_EQ(json["overflow"], "truncate");
  uint64_t frames_bytes = 0;
  const std::unique_ptr<ShardSet> set = ShardSet::Open(folder.path("shards"));
  for (const ShardInfo& shard : set->shards()) {
    for (const FrameEntry& frame : shard.frames) frames_bytes += frame.size_bytes;
  }
  EXPECT_EQ(json["bits_per_token"], 8.0 * static_cast<double>(frames_bytes) / static_cast<double>(tokens));
  EXPECT_GT(json["bits_per_token"], 4.7);  // random letters: log2(26)
}

TEST(PackJobTest, TheBitsOfATokenAreOfTheChunksThatTheReportCountsWithoutTheTokenizersModel) {
  const TemporaryFolder folder;
  TokenizerIdentity tokenizer = LoadTokenizer("bytes")->identity();
  tokenizer.kind = "demo";
  tokenizer.model = std::string(100'000, 'm');
  tokenizer.sha256 = Sha256Of(AsBytes(tokenizer.model));
  WriteFile(folder.path("in"), Stream(SomeDocuments(67), tokenizer));
  const nlohmann::json json = ToJson(Pack(SmallOptions(folder.path("in"), folder.path("out.tws"))).set);
  EXPECT_LT(json["frames_bytes"].get<uint64_t>() + 100'000, json["size_bytes"].get<uint64_t>());
  EXPECT_EQ(json["bits_per_token"], 8 * json["frames_bytes"].get<double>() / json["tokens"].get<double>());
}

TEST(PackJobTest, InfoOfAPipeIsThatOfTheFileAndTheFolder) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(8)));
  Pack(SmallOptions(folder.path("in"), folder.path("file")));
  Pack(SmallOptions(folder.path("in"), folder.path("shards/")));
  const PipeFeeder feeder(folder.path("pipe"), ReadFile(folder.path("file")));
  const nlohmann::json expected = ToJson(InspectShards(folder.path("shards")));
  EXPECT_EQ(nlohmann::json(ToJson(InspectShards(folder.path("file")))), expected);
  EXPECT_EQ(nlohmann::json(ToJson(InspectShards(folder.path("pipe")))), expected);
}

TEST(PackJobTest, AStreamCutAnywhereSealsNothing) {
  const TemporaryFolder folder;
  const std::string stream = Stream(ManyDocuments(9));
  for (size_t i = 0; i < 16; ++i) {
    const size_t size = i < 10 ? i * stream.size() / 10 : stream.size() - (16 - i);
    SCOPED_TRACE("first " + std::to_string(size) + " of " + std::to_string(stream.size()) + " bytes");
    WriteFile(folder.path("in"), stream.substr(0, size));
    EXPECT_EQ(CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("file"))); }),
              ErrorCode::kBadInput);
    EXPECT_EQ(CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("shards/"))); }),
              ErrorCode::kBadInput);
    EXPECT_EQ(NamesIn(folder.path()), (std::set<std::string>{"in", "shards"}));
    EXPECT_EQ(NamesIn(folder.path("shards")), std::set<std::string>{".lock"});
  }
}

TEST(PackJobTest, AFormerSetSurvivesAFailureUnchanged) {
  const TemporaryFolder folder;
  const std::string stream = Stream(ManyDocuments(10));
  WriteFile(folder.path("in"), stream);
  Pack(SmallOptions(folder.path("in"), folder.path("shards/")));
  Pack(SmallOptions(folder.path("in"), folder.path("file")));
  const auto before = Snapshot(folder.path("shards"));
  const std::string file_before = ReadFile(folder.path("file"));
  // The same documents at another level: equal content in other bytes, the hardest neighbour for the old
  // shards.
  WriteFile(folder.path("cut"), stream.substr(0, stream.size() - 1));
  for (const std::string output : {"shards/", "file"}) {
    PackJobOptions options = SmallOptions(folder.path("cut"), folder.path(output));
    options.level = 1;
    EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kBadInput);
  }
  EXPECT_EQ(Snapshot(folder.path("shards")), before);
  EXPECT_EQ(ReadFile(folder.path("file")), file_before);
  VerifyShards(folder.path("shards"));
}

TEST(PackJobTest, ANewSetReplacesTheFormerOneAndNoOtherFile) {
  const TemporaryFolder folder;
  WriteFile(folder.path("first"), Stream(ManyDocuments(11)));
  WriteFile(folder.path("second"), Stream(SomeDocuments(12)));
  Pack(SmallOptions(folder.path("first"), folder.path("shards/")));
  const std::map<std::string, std::string> foreign = {{"notes.txt", "keep me"},
                                                      {"shard-00000-000000000000.tws", "of somebody else"},
                                                      {"shard-00000.tws", "of somebody else"},
                                                      {".hidden", ""}};
  for (const auto& [name, content] : foreign) WriteFile(folder.path("shards/" + name), content);
  Pack(SmallOptions(folder.path("second"), folder.path("shards/")));
  Pack(SmallOptions(folder.path("second"), folder.path("fresh/")));
  auto expected = Snapshot(folder.path("fresh"));
  expected.insert(foreign.begin(), foreign.end());
  EXPECT_EQ(Snapshot(folder.path("shards")), expected);
}

TEST(PackJobTest, TheTokenizerOfAnImportIsNotReplaced) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(11)));
  WriteFile(folder.path("tokenizer.model"), "a model");
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("tokenizer.model"));
  for (const std::string& tokenizer : {folder.path("tokenizer.model"), folder.path("")}) {
    options.import.tokenizer = tokenizer;
    EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kUsage) << tokenizer;
    EXPECT_EQ(ReadFile(folder.path("tokenizer.model")), "a model");
  }
}

TEST(PackJobTest, PackingTheSameAgainChangesNothing) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(13)));
  Pack(SmallOptions(folder.path("in"), folder.path("shards/")));
  const auto before = Snapshot(folder.path("shards"));
  Pack(SmallOptions(folder.path("in"), folder.path("shards")));  // exists now: no slash needed
  EXPECT_EQ(Snapshot(folder.path("shards")), before);
}

// Runs the job in a process of its own that reads from `pipe`, and kills it once it has taken `prefix` and
// waits.
void PackAndKill(const PackJobOptions& options, const std::string& pipe, const std::string& prefix) {
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = fork();
  if (child == 0) {
    Pack(options);
    _exit(0);
  }
  const int writer = open(pipe.c_str(), O_WRONLY);
  size_t written = 0;
  while (written < prefix.size()) {
    const ssize_t count = write(writer, prefix.data() + written, prefix.size() - written);
    ASSERT_GT(count, 0);
    written += static_cast<size_t>(count);
  }
  for (int unread = 1; unread > 0; usleep(2000)) ioctl(writer, FIONREAD, &unread);
  usleep(30000);  // let it work on what it has read
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(writer);
  unlink(pipe.c_str());
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(PackJobTest, WhatAKilledRunLeavesIsNotSealedAndTheNextRunRemovesIt) {
  const TemporaryFolder folder;
  const std::string stream = Stream(ManyDocuments(14));
  WriteFile(folder.path("in"), stream);
  Pack(SmallOptions(folder.path("in"), folder.path("expected/")));
  bool left_something = false;
  for (int tenths = 1; tenths < 10; tenths += 2) {
    const std::string output = folder.path("shards" + std::to_string(tenths));
    PackAndKill(SmallOptions(folder.path("pipe"), output + "/"), folder.path("pipe"),
                stream.substr(0, stream.size() * static_cast<size_t>(tenths) / 10));
    EXPECT_EQ(CodeOf([&] { ShardSet::Open(output); }), ErrorCode::kBadInput);
    left_something |= CatShards(output).size() > 0;
    Pack(SmallOptions(folder.path("in"), output + "/"));
    EXPECT_EQ(Snapshot(output), Snapshot(folder.path("expected")));
  }
  EXPECT_TRUE(left_something) << "no run was killed between two shards: the test needs more input";
}

TEST(PackJobTest, AKilledRunLeavesTheFormerSetReadable) {
  const TemporaryFolder folder;
  WriteFile(folder.path("old"), Stream(ManyDocuments(15)));
  Pack(SmallOptions(folder.path("old"), folder.path("shards/")));
  const std::vector<Chunk> old_chunks = ChunksOf(folder.path("shards"));
  const std::string stream = Stream(ManyDocuments(16));
  PackAndKill(SmallOptions(folder.path("pipe"), folder.path("shards/")), folder.path("pipe"),
              stream.substr(0, stream.size() - 1));
  EXPECT_EQ(ChunksOf(folder.path("shards")), old_chunks);
  WriteFile(folder.path("file"), "old");
  PackAndKill(SmallOptions(folder.path("pipe"), folder.path("file")), folder.path("pipe"),
              stream.substr(0, stream.size() - 1));
  EXPECT_EQ(ReadFile(folder.path("file")), "old");
}

/// \returns whether another process finished the job in so much time
bool PacksBeforeItIsKilled(const PackJobOptions& options, std::chrono::milliseconds time) {
  const pid_t child = fork();
  if (child == 0) {
    Pack(options);
    _exit(0);
  }
  std::this_thread::sleep_for(time);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status);
}

TEST(PackJobTest, KilledAtAnyMomentTheFolderHoldsTheOldSetOrTheNew) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a"), Stream(SomeDocuments(17, 3000, 60)));
  WriteFile(folder.path("b"), Stream(SomeDocuments(18, 3000, 60)));
  PackJobOptions options = SmallOptions("", folder.path("shards/"));
  options.shard_size_bytes = 10000;
  std::set<std::string> legal;
  for (const std::string name : {"b", "a"}) {
    options.inputs = {folder.path(name)};
    legal.insert(HexEncode(Pack(options).set.content_sha256));
  }
  int finished = 0;
  for (int round = 0; round < 40; ++round) {
    options.inputs = {folder.path(round % 2 == 0 ? "b" : "a")};
    finished += PacksBeforeItIsKilled(options, std::chrono::milliseconds(round)) ? 1 : 0;
    EXPECT_TRUE(legal.contains(HexEncode(VerifyShards(folder.path("shards")).content_sha256)))
        << "round " << round;
  }
  EXPECT_LT(finished, 40);
  Pack(options);
  Pack([&] {
    PackJobOptions fresh = options;
    fresh.output = folder.path("fresh/");
    return fresh;
  }());
  EXPECT_EQ(Snapshot(folder.path("shards")), Snapshot(folder.path("fresh")));
}

TEST(PackJobAppendTest, TheSetHoldsTheFormerChunksAndThenTheNew) {
  for (const bool remap : {false, true}) {
    SCOPED_TRACE(remap);
    const TemporaryFolder folder;
    WriteFile(folder.path("a"), Stream(SomeDocuments(30, 3000)));
    WriteFile(folder.path("b"), Stream(SomeDocuments(31, 2000)));
    PackJobOptions options = SmallOptions(folder.path("a"), folder.path("both/"));
    options.shard_size_bytes = 30000;
    options.remap = remap;
    Pack(options);
    const std::string first_shard = *NamesIn(folder.path("both")).lower_bound("shard-00000");
    std::vector<Chunk> expected = ChunksOf(folder.path("both"));
    PackJobOptions alone = options;
    alone.inputs = {folder.path("b")};
    alone.output = folder.path("b.tws");
    Pack(alone);
    options.inputs = {folder.path("b")};
    options.append = true;
    const PackReport report = Pack(options);
    EXPECT_EQ(report.chunks_before, expected.size());
    for (const Chunk& chunk : ChunksOf(folder.path("b.tws"))) expected.push_back(chunk);
    EXPECT_EQ(ChunksOf(folder.path("both")), expected);
    EXPECT_EQ(VerifyShards(folder.path("both")).totals, report.set.totals);
    EXPECT_TRUE(NamesIn(folder.path("both")).contains(first_shard)) << "the first of several shards stays";
    // The shards end to end are a set, too.
    WriteFile(folder.path("joined"), CatShards(folder.path("both")));
    EXPECT_EQ(ChunksOf(folder.path("joined")), expected);
    // And once more.
    Pack(options);
    EXPECT_EQ(ChunksOf(folder.path("both")).size(), 2 * expected.size() - report.chunks_before);
  }
}

TEST(PackJobAppendTest, OtherSettingsAreRefusedByNameAndChangeNothing) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(SomeDocuments(32)));
  const PackJobOptions options = SmallOptions(folder.path("in"), folder.path("set/"));
  Pack(options);
  const auto before = Snapshot(folder.path("set"));
  const auto refusal = [&](auto change) {
    PackJobOptions other = options;
    other.append = true;
    change(&other);
    return MessageOf([&] { Pack(other); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](PackJobOptions* o) { o->packer.chunk_tokens = 64; }), HasSubstr("--chunk 16384"));
  EXPECT_THAT(refusal([](PackJobOptions* o) { o->packer.mode = PackMode::kConcat; }),
              HasSubstr("--mode bestfit"));
  EXPECT_THAT(refusal([](PackJobOptions* o) { o->packer.overflow = OverflowPolicy::kDrop; }),
              HasSubstr("--overflow split"));
  EXPECT_THAT(refusal([](PackJobOptions* o) { o->remap = true; }), HasSubstr("--remap"));
  PackJobOptions remap = options;
  remap.append = remap.remap = true;
  EXPECT_EQ(CodeOf([&] { Pack(remap); }), ErrorCode::kBadInput);
  TokenizerIdentity tokenizer = LoadTokenizer("bytes")->identity();
  tokenizer.kind = "other";
  WriteFile(folder.path("other"), Stream(SomeDocuments(33), tokenizer));
  EXPECT_THAT(refusal([&](PackJobOptions* o) { o->inputs = {folder.path("other")}; }),
              HasSubstr("the tokenizer"));
  WriteFile(folder.path("nothing"), Stream({{}}));
  EXPECT_THAT(refusal([&](PackJobOptions* o) { o->inputs = {folder.path("nothing")}; }),
              HasSubstr("no token"));
  EXPECT_THAT(refusal([&](PackJobOptions* o) { o->output = folder.path("new/"); }),
              HasSubstr("no finished set"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("new")));
  EXPECT_THAT(refusal([&](PackJobOptions* o) { o->output = folder.path("in"); }), HasSubstr("folder"));
  EXPECT_EQ(Snapshot(folder.path("set")), before);
}

TEST(PackJobAppendTest, TheManifestSaysHowTheAddedShardsWereMade) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(SomeDocuments(34)));
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("set/"));
  Pack(options);
  options.append = true;
  options.level = 7;
  Pack(options);
  const auto manifest = nlohmann::json::parse(ReadFile(folder.path("set/MANIFEST.json")));
  EXPECT_FALSE(manifest["shards"][0].contains("provenance"));
  EXPECT_EQ(manifest["shards"][1]["provenance"]["options"]["level"], 7);
}

TEST(PackJobAppendTest, KilledAtAnyMomentTheFolderHoldsTheOldSetOrTheNew) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(SomeDocuments(35, 3000, 60)));
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("set/"));
  options.shard_size_bytes = 10000;
  const uint64_t chunks = Pack(options).set.totals.chunks;
  options.append = true;
  int finished = 0;
  for (int round = 0; round < 30; ++round) {
    const uint64_t before = VerifyShards(folder.path("set")).totals.chunks;
    finished += PacksBeforeItIsKilled(options, std::chrono::milliseconds(round)) ? 1 : 0;
    const uint64_t after = VerifyShards(folder.path("set")).totals.chunks;
    EXPECT_TRUE(after == before || after == before + chunks) << "round " << round;
  }
  EXPECT_LT(finished, 30);
}

TEST(PackJobTest, ASecondWriterOfAFolderIsRefused) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(SomeDocuments(19)));
  const ShardFolderWriter first(folder.path("shards"));
  EXPECT_EQ(CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("shards/"))); }),
            ErrorCode::kUsage);
}

/// Which fsync of a folder's files and of itself comes after the manifest is in place, where `second` is
/// packed over `first`; from 1.
int64_t FsyncAfterTheManifest(const PackJobOptions& first, const PackJobOptions& second) {
  Pack(first);
  test::RecordSyscalls(second.output.substr(0, second.output.size() - 1));  // without its slash
  Pack(second);
  int64_t fsyncs = 0;
  bool in_place = false;
  for (const test::RecordedSyscall& call : test::RecordedSyscalls()) {
    in_place |= call.call == "rename" && call.path.ends_with("/MANIFEST.json");
    if (call.call != "fsync") continue;
    ++fsyncs;
    if (in_place) return fsyncs;
  }
  return 0;
}

TEST(PackJobTest, ASealThatFailsAtItsLastFsyncKeepsTheShardsOfItsManifest) {
  const TemporaryFolder folder;
  WriteFile(folder.path("first"), Stream(SomeDocuments(40)));
  WriteFile(folder.path("second"), Stream(SomeDocuments(41)));
  const auto options = [&](const std::string& input, const std::string& output) {
    return SmallOptions(folder.path(input), folder.path(output + "/"));
  };
  const int64_t fsync = FsyncAfterTheManifest(options("first", "sound"), options("second", "sound"));
  ASSERT_GT(fsync, 0);
  for (const std::string action : {"EIO", "EIO..."}) {
    SCOPED_TRACE(action);
    const std::string name = action == "EIO" ? "once" : "lasting";
    Pack(options("first", name));
    test::SetSyscallFault("fsync " + folder.path(name) + " " + std::to_string(fsync) + " " + action);
    const std::string message = MessageOf([&] { Pack(options("second", name)); });
    test::SetSyscallFault("");
    EXPECT_THAT(message, testing::HasSubstr("is in place but may not survive a power loss"));
    EXPECT_EQ(VerifyShards(folder.path(name)).content_sha256,
              VerifyShards(folder.path("sound")).content_sha256);
  }
}

TEST(PackJobTest, AFolderWithAForeignManifestIsRefusedAndLeftAlone) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(SomeDocuments(20)));
  std::filesystem::create_directory(folder.path("other"));
  WriteFile(folder.path("other/MANIFEST.json"), "{\"files\":[]}");
  const std::string message =
      MessageOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("other/"))); });
  EXPECT_NE(message.find("MANIFEST.json"), std::string::npos) << message;
  EXPECT_NE(message.find("-o"), std::string::npos) << message;
  EXPECT_EQ(ReadFile(folder.path("other/MANIFEST.json")), "{\"files\":[]}");
}

TEST(PackJobTest, AStopSignalLeavesNothingBehind) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(21)));
  SetStopSignalForTest(SIGINT);
  const auto of_folder = CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("shards/"))); });
  const auto of_file = CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("file"))); });
  SetStopSignalForTest(0);
  EXPECT_EQ(of_folder, ErrorCode::kInterrupted);
  EXPECT_EQ(of_file, ErrorCode::kInterrupted);
  EXPECT_EQ(NamesIn(folder.path("shards")), std::set<std::string>{".lock"});
  EXPECT_EQ(NamesIn(folder.path()), (std::set<std::string>{"in", "shards"}));
}

TEST(PackJobTest, StreamsOfTwoTokenizersAreRefusedNamingBoth) {
  const TemporaryFolder folder;
  TokenizerIdentity other = LoadTokenizer("bytes")->identity();
  other.sha256[0] ^= 1;
  WriteFile(folder.path("ours"), Stream(SomeDocuments(22)));
  WriteFile(folder.path("theirs"), Stream(SomeDocuments(23), other));
  PackJobOptions options = SmallOptions(folder.path("ours"), folder.path("out"));
  options.inputs.push_back(folder.path("theirs"));
  const std::string message = MessageOf([&] { Pack(options); });
  EXPECT_NE(message.find("ours"), std::string::npos) << message;
  EXPECT_NE(message.find("theirs"), std::string::npos) << message;
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kBadInput);
}

TEST(PackJobTest, InputWithoutATokenIsAnError) {
  const TemporaryFolder folder;
  for (const std::vector<Document>& documents : {std::vector<Document>{}, std::vector<Document>{{}, {}}}) {
    WriteFile(folder.path("in"), Stream(documents));
    EXPECT_EQ(CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("file"))); }),
              ErrorCode::kBadInput);
    EXPECT_EQ(CodeOf([&] { Pack(SmallOptions(folder.path("in"), folder.path("shards/"))); }),
              ErrorCode::kBadInput);
    EXPECT_FALSE(std::filesystem::exists(folder.path("file")));
    EXPECT_FALSE(std::filesystem::exists(folder.path("shards/MANIFEST.json")));
  }
}

TEST(VerifyShardsTest, AFlippedBitAnywhereIsFoundInFileFolderAndPipe) {
  const TemporaryFolder folder;
  const Rng rng(test::TestSeed(), "flips");
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  WriteFile(folder.path("in"), Stream(SomeDocuments(24)));
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("shards/"));
  options.packer.chunk_tokens = 4096;
  options.shard_size_bytes = 1;  // a shard a frame
  ASSERT_GE(Pack(options).set.shards, 1u);
  options.output = folder.path("file");
  Pack(options);
  VerifyShards(folder.path("shards"));
  const std::string bytes = ReadFile(folder.path("file"));
  for (size_t at = 0; at < bytes.size(); at += 1 + rng.Bits(at) % 7) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << rng.Bits(at + bytes.size()) % 8));
    if (at % 32 == 0) {
      WriteFile(folder.path("file"), flipped);
      ASSERT_EQ(CodeOf([&] { VerifyShards(folder.path("file")); }), ErrorCode::kBadInput) << "byte " << at;
    }
    ASSERT_EQ(CodeOf([&] {
                ShardStreamReader reader(MemorySource(AsBytes(flipped)));
                for (Chunk chunk; reader.Next(&chunk);) {
                }
              }),
              ErrorCode::kBadInput)
        << "byte " << at << " of a stream";
  }
  for (const std::string& name : NamesIn(folder.path("shards"))) {
    if (!name.starts_with("shard-")) continue;
    const std::string path = folder.path("shards/" + name), whole = ReadFile(path);
    for (const size_t at : {size_t{9}, whole.size() / 3, whole.size() / 2, whole.size() - 20}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 4);
      WriteFile(path, flipped);
      const std::string message = MessageOf([&] { VerifyShards(folder.path("shards")); });
      EXPECT_NE(message.find(name), std::string::npos) << message;
    }
    WriteFile(path, whole);
  }
  VerifyShards(folder.path("shards"));
}

TEST(VerifyShardsTest, AShardThatTheManifestDoesNotNameIsSaid) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(24)));
  Pack(SmallOptions(folder.path("in"), folder.path("shards/")));
  EXPECT_TRUE(ShardsOutsideTheSet(folder.path("shards")).empty());
  WriteFile(folder.path("shards/shard-00007-0123456789ab.tws"), "anything");
  EXPECT_THAT(ShardsOutsideTheSet(folder.path("shards")),
              testing::ElementsAre("shard-00007-0123456789ab.tws"));
  EXPECT_GT(VerifyShards(folder.path("shards")).totals.chunks, 0u);
}

TEST(VerifyShardsTest, AMissingShardIsFound) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(ManyDocuments(25)));
  Pack(SmallOptions(folder.path("in"), folder.path("shards/")));
  std::vector<std::string> shards;
  for (const std::string& name : NamesIn(folder.path("shards"))) {
    if (name.starts_with("shard-")) shards.push_back(ReadFile(folder.path("shards/" + name)));
  }
  ASSERT_GE(shards.size(), 3u);
  for (size_t missing = 0; missing < shards.size(); ++missing) {
    std::string rest;
    for (size_t i = 0; i < shards.size(); ++i) rest += i == missing ? "" : shards[i];
    WriteFile(folder.path("file"), rest);
    EXPECT_EQ(CodeOf([&] { VerifyShards(folder.path("file")); }), ErrorCode::kBadInput) << missing;
  }
  std::filesystem::remove(folder.path("shards/" + *std::next(NamesIn(folder.path("shards")).rbegin())));
  EXPECT_EQ(CodeOf([&] { VerifyShards(folder.path("shards")); }), ErrorCode::kBadInput);
}

TEST(CatShardsTest, JsonLinesAreTheChunks) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), Stream(SomeDocuments(26)));
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("file"));
  options.packer.chunk_tokens = 64;
  Pack(options);
  MemorySink of_file, of_pipe;
  CatShardsAsJson(folder.path("file"), &of_file);
  {
    const PipeFeeder feeder(folder.path("pipe"), ReadFile(folder.path("file")));
    CatShardsAsJson(folder.path("pipe"), &of_pipe);
  }
  EXPECT_EQ(of_file.bytes(), of_pipe.bytes());
  std::istringstream lines{std::string(AsText(of_file.bytes()))};
  std::vector<Chunk> chunks;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    EXPECT_EQ(json["chunk"], chunks.size());
    Chunk chunk;
    chunk.tokens = json["ids"].get<std::vector<uint32_t>>();
    for (const nlohmann::json& segment : json["segments"]) {
      uint8_t flags = 0;
      if (segment["starts_mid_document"]) flags |= kSegmentStartsMidDocument;
      if (segment["ends_mid_document"]) flags |= kSegmentEndsMidDocument;
      if (segment["padding"]) flags |= kSegmentPadding;
      chunk.segments.push_back(
          {segment["tokens"], flags, segment.value("next_token", kNoId), segment["source_bytes"]});
    }
    chunks.push_back(std::move(chunk));
  }
  EXPECT_EQ(chunks, ChunksOf(folder.path("file")));
}

TEST(CatShardsTest, TextOfUnpackedDocumentsIsTheInput) {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {"To be,", "or not to be:", "that is the question."};
  std::vector<Document> documents;
  for (const std::string& text : texts) LoadTokenizer("bytes")->Encode(text, &documents.emplace_back());
  WriteFile(folder.path("in"), Stream(documents));
  PackJobOptions options = SmallOptions(folder.path("in"), folder.path("file"));
  options.packer.mode = PackMode::kNone;
  Pack(options);
  MemorySink out;
  CatShardsAsText(folder.path("file"), &out);
  EXPECT_EQ(AsText(out.bytes()), "To be,\nor not to be:\nthat is the question.\n");
}

TEST(PackJobTest, SkippedFilesLeaveTheBytesOfTheSoundOnesAlone) {
  TemporaryFolder folder;
  const std::string sound[] = {Stream(SomeDocuments(61)), Stream(SomeDocuments(62)),
                               Stream(SomeDocuments(63))};
  WriteFile(folder.path() + "/a.tok", sound[0]);
  WriteFile(folder.path() + "/cut.tok", sound[1].substr(0, sound[1].size() - 1));
  WriteFile(folder.path() + "/b.tok", sound[2]);
  std::string flipped = sound[1];
  flipped[flipped.size() / 2] ^= 1;
  WriteFile(folder.path() + "/flipped.tok", flipped);
  WriteFile(folder.path() + "/empty.tok", "");
  PackJobOptions options = SmallOptions(folder.path() + "/a.tok", folder.path() + "/expected.tws");
  options.inputs.push_back(folder.path() + "/b.tok");
  Pack(options);

  options.inputs.clear();
  for (const char* name : {"cut.tok", "a.tok", "empty.tok", "flipped.tok", "b.tok"}) {
    options.inputs.push_back(folder.path() + "/" + name);
  }
  options.output = folder.path() + "/skipped.tws";
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kBadInput);
  options.skip_corrupt = true;
  const PackReport report = Pack(options);
  EXPECT_EQ(report.files, 2u);
  EXPECT_EQ(report.files_skipped, 3u);
  EXPECT_EQ(ReadFile(folder.path() + "/skipped.tws"), ReadFile(folder.path() + "/expected.tws"));

  // Of a folder of streams, too, whose manifest does not save what is cut.
  std::filesystem::create_directory(folder.path() + "/set");
  std::vector<StreamEntry> entries;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = StreamFileName(i, std::string(64, 'a' + static_cast<char>(i)));
    WriteFile(folder.path() + "/set/" + name, i == 1 ? sound[i].substr(0, 100) : sound[i]);
    entries.push_back({.file_name = name,
                       .size_bytes = sound[i].size(),
                       .key = std::string(64, 'a'),
                       .counts = {{"documents", 1}, {"tokens", 1}, {"source_bytes", 1}}});
  }
  WriteFile(folder.path() + "/set/MANIFEST.json", EncodeStreamManifest(entries));
  options.inputs = {folder.path() + "/set"};
  const PackReport of_folder = Pack(options);
  EXPECT_EQ(of_folder.files, 2u);
  EXPECT_EQ(of_folder.files_skipped, 1u);
  EXPECT_EQ(ReadFile(folder.path() + "/skipped.tws"), ReadFile(folder.path() + "/expected.tws"));

  options.inputs = {folder.path() + "/cut.tok", folder.path() + "/empty.tok"};
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kBadInput) << "nothing is left";
  options.inputs = {folder.path() + "/a.tok", folder.path() + "/missing.tok"};
  EXPECT_NE(CodeOf([&] { Pack(options); }), ErrorCode::kBadInput) << "a missing file is no corrupt one";
}

TEST(PackJobTest, TokenStreamsBeforeAStrayFileOfAnotherProgramAreNotSkippedForIt) {
  const TemporaryFolder folder;
  const std::string first = Stream(SomeDocuments(65));
  std::string zstd(ZSTD_compressBound(first.size()), '\0');
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), first.data(), first.size(), 1));
  WriteFile(folder.path("a.tok.zst"), zstd);
  WriteFile(folder.path("b.tok"), Stream(SomeDocuments(66)));
  PackJobOptions options = SmallOptions(folder.path("a.tok.zst"), folder.path("expected.tws"));
  options.inputs.push_back(folder.path("b.tok"));
  Pack(options);
  options.output = folder.path("skipped.tws");
  options.skip_corrupt = true;
  for (const std::string stray : {"gpt2.bin", "short.idx", "stored.npz", "list.pt"}) {
    SCOPED_TRACE(stray);
    options.inputs = {folder.path("a.tok.zst"), test::Fixture("packing/fixtures/foreign/" + stray),
                      folder.path("b.tok")};
    const PackReport report = Pack(options);
    EXPECT_EQ(report.files, 2u);
    EXPECT_EQ(report.files_skipped, 1u);
    EXPECT_EQ(ReadFile(folder.path("skipped.tws")), ReadFile(folder.path("expected.tws")));
  }
}

TEST(PackJobTest, ATokenStreamBehindAFileOfAnotherProgramIsNoCorruptOneToSkip) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a.tok"), Stream(SomeDocuments(67)));
  PackJobOptions options =
      SmallOptions(test::Fixture("packing/fixtures/foreign/stored.npz"), folder.path("out.tws"));
  options.inputs.push_back(folder.path("a.tok"));
  options.import.vocab_size = 100000;
  options.skip_corrupt = true;
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST(PackJobTest, ACutCompressedFileBehindAFileOfAnotherProgramIsSkipped) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a.gz"), "\x1F\x8B\x08");
  PackJobOptions options =
      SmallOptions(test::Fixture("packing/fixtures/foreign/stored.npz"), folder.path("out.tws"));
  options.inputs.push_back(folder.path("a.gz"));
  options.import.vocab_size = 100000;
  options.skip_corrupt = true;
  EXPECT_EQ(Pack(options).files_skipped, 1u);
}

TEST(PackJobTest, AStrideNeedsDocumentsThatAreCutIntoWindows) {
  TemporaryFolder folder;
  WriteFile(folder.path() + "/a.tok", Stream(SomeDocuments(64)));
  PackJobOptions options = SmallOptions(folder.path() + "/a.tok", folder.path() + "/out.tws");
  options.packer.chunk_tokens = 64;
  options.packer.stride_tokens = 65;
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kUsage);
  options.packer.stride_tokens = 16;
  options.packer.mode = PackMode::kConcat;
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kUsage);
  options.packer.mode = PackMode::kBestFit;
  options.packer.overflow = OverflowPolicy::kTruncate;
  EXPECT_EQ(CodeOf([&] { Pack(options); }), ErrorCode::kUsage);
  options.packer.overflow = OverflowPolicy::kSplit;
  const PackReport report = Pack(options);
  EXPECT_GT(report.input.tokens_repeated, 0u);
  EXPECT_EQ(report.set.totals.tokens, report.input.tokens + report.input.tokens_repeated);
}

}  // namespace
}  // namespace trainwright

#include "lib/documents/pretokenize_job.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <utility>

#include "lib/base/signals.h"
#include "lib/documents/decode_job.h"
#include "lib/formats/token_stream.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Fixture;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;

const std::string kMistral = Fixture("../examples/data/mistral-v1.model");
const std::string kShakespeare = Fixture("../examples/data/tinyshakespeare.txt");
const std::string kGsm8k = Fixture("../examples/data/gsm8k-train.jsonl");

struct Documents {
  TokenStreamHeader header;
  std::vector<std::vector<uint32_t>> ids;
  std::vector<uint64_t> source_bytes;
};

Documents ReadStream(const std::string& path) {
  TokenStreamReader reader(OpenSource(path));
  Documents documents{reader.header(), {}, {}};
  DocumentPiece piece;
  while (reader.Next(&piece)) {
    if (piece.begins) {
      documents.ids.emplace_back();
      documents.source_bytes.push_back(0);
    }
    documents.ids.back().insert(documents.ids.back().end(), piece.tokens.begin(), piece.tokens.end());
    documents.source_bytes.back() += piece.source_bytes;
  }
  return documents;
}

class PretokenizeTest : public ::testing::Test {
 protected:
  /// Options that write to a file of this test.
  PretokenizeJobOptions Options(const std::string& input, InputFormat format = InputFormat::kLines) {
    return {.inputs = {{.path = input, .format = format}}, .output = folder_.path("out.tok")};
  }
  PretokenizeReport Run(const PretokenizeJobOptions& options) {
    return RunPretokenize(options, ProgressMode::kNever);
  }
  std::string File(const std::string& name, const std::string& content) {
    WriteFile(folder_.path(name), content);
    return folder_.path(name);
  }
  Documents Tokenize(const PretokenizeJobOptions& options) {
    report_ = Run(options);
    return ReadStream(options.output);
  }

  TemporaryFolder folder_;
  PretokenizeReport report_;
};

std::vector<uint32_t> Ids(std::string_view bytes) {
  std::vector<uint32_t> ids;
  for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

using IdLists = std::vector<std::vector<uint32_t>>;

TEST_F(PretokenizeTest, EachLineIsADocumentAndEmptyOnesAreLeftOutAndCounted) {
  const Documents documents = Tokenize(Options(File("in", "ab\n\nc\n")));
  EXPECT_EQ(documents.ids, (IdLists{Ids("ab"), Ids("c")}));
  EXPECT_EQ(documents.source_bytes, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(documents.header.tokenizer.kind, "bytes");
  EXPECT_EQ(report_.written, (TokenStreamTotals{.documents = 2, .tokens = 3, .source_bytes = 3}));
  EXPECT_EQ(report_.empty_documents, 1u);
  EXPECT_EQ(report_.input_bytes, 6u);
  EXPECT_EQ(report_.input_hash, Xxh3(AsBytes("ab\n\nc\n")));
}

TEST_F(PretokenizeTest, EmptyDocumentsAreLeftOutWithMarksToo) {
  PretokenizeJobOptions options = Options(File("in", "ab\n\n"));
  options.add_bos = options.add_eos = true;
  EXPECT_EQ(Tokenize(options).ids, (IdLists{{256, 'a', 'b', 257}}));
  EXPECT_EQ(report_.empty_documents, 1u);
}

// libsentencepiece called directly, line by line of the file, is the oracle.
TEST_F(PretokenizeTest, GivesSentencePiecesOwnIdsDocumentByDocument) {
  PretokenizeJobOptions options = Options(kShakespeare);
  options.tokenizer = kMistral;
  options.add_eos = true;
  const Documents documents = Tokenize(options);
  sentencepiece::SentencePieceProcessor reference;
  ASSERT_TRUE(reference.Load(kMistral).ok());
  std::istringstream lines(ReadFile(kShakespeare));
  IdLists expected;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    std::vector<int> ids;
    ASSERT_TRUE(reference.Encode(line, &ids).ok());
    expected.emplace_back(ids.begin(), ids.end());
    expected.back().push_back(2);
  }
  EXPECT_EQ(documents.ids, expected);
  EXPECT_EQ(documents.header.tokenizer.vocab_size, 32000u);
}

// nlohmann/json and libsentencepiece are the oracle.
TEST_F(PretokenizeTest, JoinsTheKeysOfJsonLines) {
  PretokenizeJobOptions options = Options(kGsm8k, InputFormat::kJsonl);
  options.tokenizer = kMistral;
  options.keys = {"question", "answer"};
  options.limit = 500;
  const Documents documents = Tokenize(options);
  sentencepiece::SentencePieceProcessor reference;
  ASSERT_TRUE(reference.Load(kMistral).ok());
  std::istringstream lines(ReadFile(kGsm8k));
  ASSERT_EQ(documents.ids.size(), 500u);
  for (const auto& ids : documents.ids) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    const auto json = nlohmann::json::parse(line);
    const std::string text = json["question"].get<std::string>() + "\n" + json["answer"].get<std::string>();
    std::vector<int> expected;
    ASSERT_TRUE(reference.Encode(text, &expected).ok());
    ASSERT_EQ(ids, std::vector<uint32_t>(expected.begin(), expected.end())) << line;
  }
  EXPECT_FALSE(report_.input_hash.has_value()) << "not everything was read";
}

TEST_F(PretokenizeTest, TheBytesDoNotDependOnTheNumberOfThreads) {
  PretokenizeJobOptions options = Options(kGsm8k, InputFormat::kJsonl);
  options.keys = {"question"};
  options.holdout = 0.2;
  options.holdout_output = folder_.path("held.tok");
  for (const OutputFormat to : {OutputFormat::kTokens, OutputFormat::kJsonl}) {
    options.to = to;
    std::string train, held;
    for (const int threads : {1, 2, 5}) {
      options.threads = threads;
      Run(options);
      if (threads == 1) {
        train = ReadFile(options.output);
        held = ReadFile(options.holdout_output);
        ASSERT_GT(held.size(), 100000u);
      }
      EXPECT_TRUE(ReadFile(options.output) == train) << threads << " threads";
      EXPECT_TRUE(ReadFile(options.holdout_output) == held) << threads << " threads";
    }
  }
}

TEST_F(PretokenizeTest, TheBytesDoNotDependOnCompressionOrOnTheFilesName) {
  ASSERT_EQ(test::RunShell("cd '" + folder_.path() + "' && cp '" + kGsm8k +
                           "' a.jsonl && gzip -k a.jsonl && zstd -q a.jsonl")
                .exit_status,
            0);
  PretokenizeJobOptions options = Options(folder_.path("a.jsonl"), InputFormat::kJsonl);
  options.keys = {"answer"};
  Run(options);
  const std::string plain = ReadFile(options.output);
  for (const std::string name : {"a.jsonl.gz", "a.jsonl.zst"}) {
    options.inputs[0].path = folder_.path(name);
    Run(options);
    EXPECT_TRUE(ReadFile(options.output) == plain) << name;
  }
}

std::multiset<std::vector<uint32_t>> AsSet(const IdLists& lists) {
  return {lists.begin(), lists.end()};
}

TEST_F(PretokenizeTest, HoldoutPartsTheDocumentsByTheirTextAlone) {
  const Documents all = Tokenize(Options(kShakespeare));
  PretokenizeJobOptions options = Options(kShakespeare);
  options.holdout = 0.1;
  options.holdout_output = folder_.path("held.tok");
  const Documents train = Tokenize(options);
  const Documents held = ReadStream(options.holdout_output);

  IdLists both = train.ids;
  both.insert(both.end(), held.ids.begin(), held.ids.end());
  EXPECT_EQ(AsSet(both), AsSet(all.ids));
  // 32,777 draws of probability 0.1, equal lines together: well within 3 points.
  EXPECT_NEAR(static_cast<double>(held.ids.size()) / static_cast<double>(all.ids.size()), 0.1, 0.03);
  const auto train_set = AsSet(train.ids);
  for (const auto& ids : held.ids)
    ASSERT_FALSE(train_set.contains(ids)) << "an equal document is on both sides";
  EXPECT_EQ(report_.held_out.documents, held.ids.size());

  std::vector<std::string> lines;
  std::istringstream stream(ReadFile(kShakespeare));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::shuffle(lines.begin(), lines.end(), std::mt19937_64(1));
  std::string shuffled;
  for (const std::string& line : lines) shuffled += line + "\n";
  options.inputs = {{File("shuffled", shuffled)}};
  Run(options);
  EXPECT_EQ(AsSet(ReadStream(options.holdout_output).ids), AsSet(held.ids));
}

TEST_F(PretokenizeTest, TheStreamsSayWhichSideTheyAre) {
  PretokenizeJobOptions options = Options(kShakespeare);
  options.holdout = 0.1;
  options.holdout_output = folder_.path("held.tok");
  const auto train = nlohmann::json::parse(Tokenize(options).header.provenance_json);
  const auto held = nlohmann::json::parse(ReadStream(options.holdout_output).header.provenance_json);
  EXPECT_EQ(train["tool"], "pretokenize");
  EXPECT_EQ(train["options"]["holdout"]["side"], "train");
  EXPECT_EQ(held["options"]["holdout"]["side"], "holdout");
  EXPECT_EQ(held["options"]["holdout"]["fraction"], 0.1);
}

TEST_F(PretokenizeTest, TheStreamsTellTheKeysInPlaceOfAMissingOneWhereTheyAreNotTheUsualOnes) {
  PretokenizeJobOptions options =
      Options(File("in", "{\"text\": \"a\", \"body\": \"b\"}\n"), InputFormat::kJsonl);
  const auto told = [&](std::vector<std::string> keys, std::vector<std::string> instead) {
    options.keys = std::move(keys);
    options.keys_instead = std::move(instead);
    const auto provenance = nlohmann::json::parse(Tokenize(options).header.provenance_json);
    return provenance["options"].value("key_instead", nlohmann::json());
  };
  EXPECT_TRUE(told({"text"}, OtherTextKeys()).is_null());
  EXPECT_EQ(told({"text"}, {}), nlohmann::json::array());
  EXPECT_TRUE(told({"body"}, {}).is_null());
  EXPECT_EQ(told({"body"}, {"text"}), nlohmann::json::array({"text"}));
}

// A line each of good, bad JSON, missing key, number, bad UTF-8, too long, good.
std::string BadJsonl() {
  return "{\"text\": \"one\"}\n{\"text\": \"t\n{\"body\": \"x\"}\n{\"text\": 4}\n{\"text\": "
         "\"\xFF\"}\n{\"text\": \"" +
         std::string(200, 'x') + "\"}\n\n{\"text\": \"two\"}\n";
}

TEST_F(PretokenizeTest, SkipCountsEachReasonAndGoesOn) {
  PretokenizeJobOptions options = Options(File("in", BadJsonl()), InputFormat::kJsonl);
  options.skip_bad_documents = true;
  options.max_document_bytes = 100;
  EXPECT_EQ(Tokenize(options).ids, (IdLists{Ids("one"), Ids("two")}));
  const std::array<uint64_t, kSkipReasonCount> expected = {1, 1, 1, 1, 1};
  EXPECT_EQ(report_.skipped, expected);
  EXPECT_EQ(report_.empty_documents, 1u);
  const auto json = ToJson(report_);
  EXPECT_EQ(json["skipped_documents"], 5);
  EXPECT_EQ(json["skipped_by_reason"]["too_long"], 1);
}

TEST_F(PretokenizeTest, TheFirstBadDocumentInInputOrderEndsTheRunAndLeavesNoFile) {
  const std::string good = "{\"text\": \"" + std::string(1000, 'g') + "\"}\n";
  std::string content;
  for (int i = 0; i < 2000; ++i) content += good;
  const std::string in = File("in", content + "oops\n" + content + BadJsonl());
  for (const int threads : {1, 2, 5}) {
    PretokenizeJobOptions options = Options(in, InputFormat::kJsonl);
    options.threads = threads;
    options.holdout = 0.5;
    options.holdout_output = folder_.path("held.tok");
    EXPECT_EQ(test::CodeOf([&] { Run(options); }), ErrorCode::kBadInput);
    const std::string message = test::MessageOf([&] { Run(options); });
    EXPECT_NE(message.find(in + ": not valid JSON"), std::string::npos) << message;
    EXPECT_NE(message.find("(line 2001)"), std::string::npos) << message;
    EXPECT_FALSE(std::filesystem::exists(options.output));
    EXPECT_FALSE(std::filesystem::exists(options.holdout_output));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "a temporary was left";
}

TEST_F(PretokenizeTest, ABadLineBehindTheLimitIsNoError) {
  PretokenizeJobOptions options = Options(File("in", BadJsonl()), InputFormat::kJsonl);
  options.limit = 1;
  EXPECT_EQ(Tokenize(options).ids, (IdLists{Ids("one")}));
}

TEST_F(PretokenizeTest, AnErrorBeforeDamageInTheFileIsReportedFirst) {
  const std::string in = File("in", "oops\n" + std::string(1 << 20, 'x'));
  ASSERT_EQ(
      test::RunShell("cd '" + folder_.path() + "' && gzip in && head -c -20 in.gz > cut.gz").exit_status, 0);
  const std::string message =
      test::MessageOf([&] { Run(Options(folder_.path("cut.gz"), InputFormat::kJsonl)); });
  EXPECT_NE(message.find("not valid JSON"), std::string::npos) << message;
}

TEST_F(PretokenizeTest, NoOutputReplacesWhatTheJobReads) {
  std::filesystem::create_directory(folder_.path("model"));
  std::filesystem::copy(kMistral, folder_.path("model/tokenizer.model"));
  PretokenizeJobOptions options = Options(File("in", "a\nb\n"));
  options.tokenizer = folder_.path("model");
  options.chat_template.name = File("t.jinja", "{{ messages }}");
  options.also_read = {File("list", "in\n")};
  options.holdout = 0.5;
  options.holdout_output = folder_.path("held");
  Run(options);
  for (const char* read : {"in", "model/tokenizer.model", "t.jinja", "list"}) {
    const std::string before = ReadFile(folder_.path(read));
    for (std::string PretokenizeJobOptions::*output :
         {&PretokenizeJobOptions::output, &PretokenizeJobOptions::holdout_output}) {
      PretokenizeJobOptions greedy = options;
      greedy.*output = folder_.path(read);
      EXPECT_EQ(test::CodeOf([&] { Run(greedy); }), ErrorCode::kUsage) << read;
    }
    EXPECT_EQ(ReadFile(folder_.path(read)), before) << read;
  }
}

TEST_F(PretokenizeTest, InvalidUtf8IsReplacedAsSentencePieceDoes) {
  const std::string text = "a\xFF\xFE b\xC3 c";
  PretokenizeJobOptions options = Options(File("in", text));
  options.tokenizer = kMistral;
  EXPECT_EQ(test::CodeOf([&] { Run(options); }), ErrorCode::kBadInput);
  options.replace_invalid_utf8 = true;
  const Documents documents = Tokenize(options);
  sentencepiece::SentencePieceProcessor reference;
  ASSERT_TRUE(reference.Load(kMistral).ok());
  std::vector<int> expected;
  ASSERT_TRUE(reference.Encode(text, &expected).ok());
  EXPECT_EQ(documents.ids, (IdLists{{expected.begin(), expected.end()}}));
  EXPECT_EQ(report_.replaced_bytes, 3u);
}

TEST_F(PretokenizeTest, JsonlOutputIsOneObjectADocument) {
  PretokenizeJobOptions options = Options(File("in", "ab\n\nc\n"));
  options.to = OutputFormat::kJsonl;
  Run(options);
  EXPECT_EQ(ReadFile(options.output), "{\"doc\":0,\"ids\":[97,98]}\n{\"doc\":1,\"ids\":[99]}\n");
}

TEST_F(PretokenizeTest, AStopSignalEndsTheRunWithoutAFile) {
  PretokenizeJobOptions options = Options(kShakespeare);
  SetStopSignalForTest(15);
  const auto code = test::CodeOf([&] { Run(options); });
  SetStopSignalForTest(0);
  EXPECT_EQ(code, ErrorCode::kTerminated);
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST_F(PretokenizeTest, ManyFilesAreReadInTheirOrder) {
  PretokenizeJobOptions options = Options(File("a", "1\n2"));
  options.inputs.push_back({.path = File("b.jsonl", "{\"text\": \"3\"}"), .format = InputFormat::kJsonl});
  options.inputs.push_back({.path = File("c", "4\n5"), .format = InputFormat::kFile});
  EXPECT_EQ(Tokenize(options).ids, (IdLists{Ids("1"), Ids("2"), Ids("3"), Ids("4\n5")}));
}

TEST_F(PretokenizeTest, AMarkThatTheTokenizerLacksIsAUsageError) {
  // The unigram test model has <s> and </s>; one without is made by renaming its <s> piece in the protobuf.
  std::string model = ReadFile(Fixture("tok/testdata/unigram-1k.model"));
  const size_t bos = model.find("<s>");
  ASSERT_NE(bos, std::string::npos);
  model.replace(bos, 3, "<x>");
  PretokenizeJobOptions options = Options(File("in", "a\n"));
  options.tokenizer = File("no-bos.model", model);
  options.add_bos = true;
  EXPECT_EQ(test::CodeOf([&] { Run(options); }), ErrorCode::kUsage);
}

TEST_F(PretokenizeTest, DecodeGivesTheTextBack) {
  PretokenizeJobOptions options = Options(File("in", "First line.\n\n  indented\n\xF0\x9F\x98\x80 emoji\n"));
  options.tokenizer = kMistral;
  options.add_bos = options.add_eos = true;
  const TokenStreamTotals written = Run(options).written;
  const DecodeJobOptions decode = {.inputs = {options.output}, .output = folder_.path("text")};
  const TokenStreamTotals totals = RunDecode(decode, ProgressMode::kNever);
  EXPECT_EQ(ReadFile(decode.output), "First line.\n  indented\n\xF0\x9F\x98\x80 emoji\n");
  EXPECT_EQ(totals, written);
}

TEST_F(PretokenizeTest, DecodeWritesJsonWithBadBytesReplaced) {
  const PretokenizeJobOptions options = Options(File("in", "a\"b\nc\xFF\n"));
  Run(options);
  DecodeJobOptions decode = {.inputs = {options.output}, .output = folder_.path("text"), .as_jsonl = true};
  RunDecode(decode, ProgressMode::kNever);
  EXPECT_EQ(ReadFile(decode.output),
            "{\"doc\":0,\"text\":\"a\\\"b\"}\n{\"doc\":1,\"text\":\"c\xEF\xBF\xBD\"}\n");
  decode.limit = 1;
  RunDecode(decode, ProgressMode::kNever);
  EXPECT_EQ(ReadFile(decode.output), "{\"doc\":0,\"text\":\"a\\\"b\"}\n");
}

TEST_F(PretokenizeTest, DecodeRefusesWhatIsNoStream) {
  EXPECT_EQ(test::CodeOf([&] {
              RunDecode({.inputs = {kShakespeare}, .output = folder_.path("text")}, ProgressMode::kNever);
            }),
            ErrorCode::kBadInput);
}

TEST(HoldoutPathTest, PutsHoldoutBeforeTheEnding) {
  EXPECT_EQ(DefaultHoldoutPath("train.tok"), "train.holdout.tok");
  EXPECT_EQ(DefaultHoldoutPath("dir.d/train"), "dir.d/train.holdout");
  EXPECT_EQ(DefaultHoldoutPath("dir/.hidden"), "dir/.hidden.holdout");
}

TEST(HoldoutTest, TheChoiceIsFrozen) {
  // Computed with the Python package xxhash: no document may move between the sides of data sets that exist.
  std::vector<int> held_out;
  for (int i = 0; i < 20; ++i) {
    if (IsHeldOut("document " + std::to_string(i), 0.1)) held_out.push_back(i);
  }
  EXPECT_EQ(held_out, (std::vector<int>{8, 12, 19}));
}

}  // namespace
}  // namespace trainwright

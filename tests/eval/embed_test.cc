#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "lib/base/signals.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/eval/embed_job.h"
#include "lib/nn/linear/gemm_kernels.h"
#include "lib/retrieval/vector_reader.h"
#include "lib/spec/cpu_gemms.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

constexpr int64_t kColumns = 32;  // of BytesModel

class EmbedTest : public testing::Test {
 protected:
  EmbedTest() {
    test::WriteModel(folder_.path("model"));
    test::WriteFile(folder_.path("lines.txt"), "To be, or not to be\n\nthat is the question:\nx\n");
  }
  ~EmbedTest() override { SetStopSignalForTest(0); }

  EmbedSettings Settings(const std::string& input, const std::string& output) const {
    EmbedSettings settings;
    settings.embedding.checkpoint = folder_.path("model");
    settings.input = folder_.path(input);
    settings.output = folder_.path(output);
    return settings;
  }
  static nlohmann::ordered_json Embed(const EmbedSettings& settings, World* world = Solo()) {
    return RunEmbed(test::Families(), settings, ProcessSetup{}, world, ProgressMode::kNever);
  }
  std::vector<float> Vectors(const std::string& file, std::vector<std::string>* ids = nullptr) const {
    return ReadAllVectors(OpenVectors(folder_.path(file)).get(), ids);
  }
  std::string Bytes(const std::string& file) const { return test::ReadFile(folder_.path(file)); }

  test::TemporaryFolder folder_;
};

TEST_F(EmbedTest, EveryLineHasAVectorOfUnitLengthAndAnEmptyOneOfZeros) {
  const auto summary = Embed(Settings("lines.txt", "out.npy"));
  EXPECT_EQ(summary["texts"], 4);
  EXPECT_EQ(summary["texts_empty"], 1);
  const std::vector<float> vectors = Vectors("out.npy");
  ASSERT_EQ(vectors.size(), static_cast<size_t>(4 * kColumns));
  for (size_t row = 0; row < 4; ++row) {
    double squares = 0;
    for (size_t i = 0; i < kColumns; ++i) squares += std::pow(vectors[row * kColumns + i], 2);
    EXPECT_NEAR(squares, row == 1 ? 0 : 1, 1e-5) << row;
  }
}

TEST_F(EmbedTest, AllFormatsHoldTheSameNumbers) {
  for (const char* name : {"out.npy", "out.f32", "out.jsonl"}) Embed(Settings("lines.txt", name));
  EXPECT_EQ(Vectors("out.f32"), Vectors("out.npy"));
  EXPECT_EQ(Vectors("out.jsonl"), Vectors("out.npy"));
}

TEST_F(EmbedTest, InvariantVectorsDoNotDependOnTheirNeighbours) {
  test::WriteFile(folder_.path("one.txt"), "that is the question:\n");
  EmbedSettings settings = Settings("lines.txt", "many.npy");
  settings.embedding.batch_invariant = true;
  settings.embedding.batch_tokens = 8;
  Embed(settings);
  settings.output = folder_.path("many2.npy");
  settings.embedding.batch_tokens = 4096;
  Embed(settings);
  EXPECT_EQ(Bytes("many2.npy"), Bytes("many.npy"));
  settings.input = folder_.path("one.txt");
  settings.output = folder_.path("one.npy");
  Embed(settings);
  const std::vector<float> many = Vectors("many.npy"), one = Vectors("one.npy");
  EXPECT_EQ(one, std::vector<float>(many.begin() + 2 * kColumns, many.begin() + 3 * kColumns));
}

TEST_F(EmbedTest, PackedVectorsAreThoseOfTextsAlone) {
  EmbedSettings settings = Settings("lines.txt", "packed.npy");
  Embed(settings);
  settings.output = folder_.path("alone.npy");
  settings.embedding.batch_invariant = true;
  Embed(settings);
  const std::vector<float> packed = Vectors("packed.npy"), alone = Vectors("alone.npy");
  ASSERT_EQ(packed.size(), alone.size());
  for (size_t i = 0; i < packed.size(); ++i) EXPECT_NEAR(packed[i], alone[i], 1e-5);
}

TEST_F(EmbedTest, SeveralRanksWriteWhatOneWrites) {
  const auto embed = [&](World* world) {
    EmbedSettings settings = Settings("lines.txt", "ranks" + std::to_string(world->size()) + ".npy");
    settings.embedding.batch_tokens = 20;
    return Embed(settings, world).at("tokens").dump();
  };
  test::OnOneRank(embed);
  test::OnRanks(2, embed);
  EXPECT_EQ(Bytes("ranks2.npy"), Bytes("ranks1.npy"));
}

TEST_F(EmbedTest, ShorterVectorsAreTheFirstNumbersAtUnitLength) {
  EmbedSettings settings = Settings("lines.txt", "whole.npy");
  Embed(settings);
  settings.output = folder_.path("short.npy");
  settings.embedding.truncate_dim = 5;
  Embed(settings);
  const std::vector<float> whole = Vectors("whole.npy"), cut = Vectors("short.npy");
  ASSERT_EQ(cut.size(), 4u * 5);
  double length = 0;
  for (size_t i = 0; i < 5; ++i) length += std::pow(whole[i], 2);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(cut[i], whole[i] / std::sqrt(length), 1e-5);
}

TEST_F(EmbedTest, JsonLinesBringTitlesInstructionsAndIds) {
  test::WriteFile(
      folder_.path("in.jsonl"),
      "{\"_id\": \"a\", \"title\": \"To be,\", \"text\": \"or not to be\"}\n\n"
      "{\"_id\": \"b\", \"text\": \"x\", \"instruction\": \"What is it?\", \"role\": \"query\"}\n");
  Embed(Settings("in.jsonl", "out.npy"));
  EXPECT_EQ(Bytes("out.npy.ids"), "a\nb\n");
  test::WriteFile(folder_.path("plain.txt"), "To be, or not to be\nx\n");
  Embed(Settings("plain.txt", "plain.npy"));
  const std::vector<float> with = Vectors("out.npy"), without = Vectors("plain.npy");
  for (size_t i = 0; i < kColumns; ++i) EXPECT_NEAR(with[i], without[i], 1e-5) << "the title before the text";
  double distance = 0;
  for (size_t i = kColumns; i < 2 * kColumns; ++i) distance += std::abs(with[i] - without[i]);
  EXPECT_GT(distance, 1e-3) << "the instruction is read";
}

/// A folder of sentence-transformers with a prompt for queries.
class PromptedEmbedTest : public EmbedTest {
 protected:
  PromptedEmbedTest() {
    test::WriteSentenceTransformer(folder_.path("model"), R"json({"query": "Find: "})json");
    test::WriteFile(folder_.path("text.txt"), "to be\n");
  }
  EmbedSettings Query() const {
    EmbedSettings settings = Settings("text.txt", "query.npy");
    settings.role = "query";
    return settings;
  }
  /// That the query has the vector which this text has as a passage.
  void ExpectVectorOf(const EmbedSettings& query, const std::string& text) const {
    Embed(query);
    test::WriteFile(folder_.path("whole.txt"), text + "\n");
    Embed(Settings("whole.txt", "whole.npy"));
    const std::vector<float> found = Vectors("query.npy"), expected = Vectors("whole.npy");
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
  }
};

TEST_F(PromptedEmbedTest, AQueryWithoutAnInstructionHasThePromptOfQueries) {
  ExpectVectorOf(Query(), "Find: to be");
}

TEST_F(PromptedEmbedTest, AnInstructionTakesThePlaceOfThePromptAsItIsGiven) {
  EmbedSettings query = Query();
  query.instruction = ": What is it? Query: ";
  ExpectVectorOf(query, ": What is it? Query: to be");
}

TEST_F(PromptedEmbedTest, ATemplateTakesThePlaceOfThePrompt) {
  test::WriteFile(folder_.path("template"), "user {content}\nassistant [ {content} ]\n");
  EmbedSettings query = Query();
  query.embedding.text_template = folder_.path("template");
  ExpectVectorOf(query, "to be");
}

TEST_F(EmbedTest, BadTextsAreRefusedWithTheirLine) {
  for (const char* line : {R"({"text": 1})", R"({"title": "x"})", R"({"text": "x", "role": "title"})",
                           R"({"text": "x", "instruction": 3})", R"({"text": "x", "id": "late"})", "x"}) {
    test::WriteFile(folder_.path("in.jsonl"), "{\"text\": \"ok\"}\n" + std::string(line) + "\n");
    EXPECT_THAT(test::MessageOf([&] { Embed(Settings("in.jsonl", "out.npy")); }), HasSubstr("line 2"))
        << line;
    EXPECT_THAT(test::NamesIn(folder_.path()),
                testing::UnorderedElementsAre("in.jsonl", "lines.txt", "model"));
  }
}

TEST_F(EmbedTest, AnInputWithoutATextIsRefused) {
  test::WriteFile(folder_.path("empty.jsonl"), "\n");
  EXPECT_EQ(test::CodeOf([&] { Embed(Settings("empty.jsonl", "out.npy")); }), ErrorCode::kBadInput);
}

TEST_F(EmbedTest, ANameWithoutAFormatIsToldBeforeTheModelIsRead) {
  EmbedSettings settings = Settings("lines.txt", "vectors");
  settings.embedding.checkpoint = folder_.path("no model");
  EXPECT_EQ(test::CodeOf([&] { Embed(settings); }), ErrorCode::kUsage);
}

TEST_F(EmbedTest, ALinkStaysOneAndItsFileIsReplaced) {
  std::filesystem::create_directory(folder_.path("kept"));
  test::WriteFile(folder_.path("kept/real.npy"), "old");
  std::filesystem::create_symlink("kept/real.npy", folder_.path("link.npy"));
  Embed(Settings("lines.txt", "link.npy"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path("link.npy")));
  EXPECT_EQ(Vectors("kept/real.npy").size(), static_cast<size_t>(4 * kColumns));
}

TEST_F(EmbedTest, TheFileOfNamesIsNeverAnInputNorTakenFromJsonLines) {
  test::WriteFile(folder_.path("out.npy.ids"), "a text\n");
  EXPECT_EQ(test::CodeOf([&] { Embed(Settings("out.npy.ids", "out.npy")); }), ErrorCode::kUsage);
  test::WriteFile(folder_.path("out.jsonl.ids"), "of someone else\n");
  Embed(Settings("lines.txt", "out.jsonl"));
  EXPECT_EQ(Bytes("out.jsonl.ids"), "of someone else\n");
}

TEST_F(EmbedTest, NamesOfOtherVectorsDoNotOutliveThem) {
  for (const char* name : {"out.npy.ids", ".out.npy.ids.partial"}) {
    test::WriteFile(folder_.path(name), "of texts before\n");
  }
  Embed(Settings("lines.txt", "out.npy"));
  EXPECT_EQ(test::NamesIn(folder_.path()), (std::set<std::string>{"lines.txt", "model", "out.npy"}));
}

TEST_F(EmbedTest, AJournalWhoseFileIsInPlaceAlreadyIsPassedOver) {
  test::WriteFile(folder_.path(".out.npy.embed-journal"), "{}");
  EmbedSettings settings = Settings("lines.txt", "out.npy");
  settings.resume = true;
  EXPECT_EQ(Embed(settings)["texts"], 4);
  EXPECT_EQ(test::NamesIn(folder_.path()), (std::set<std::string>{"lines.txt", "model", "out.npy"}));
}

TEST_F(EmbedTest, AnInstructionThatLeavesNoRoomIsRefused) {
  EmbedSettings settings = Settings("lines.txt", "out.npy");
  settings.instruction = "What is it that they say?";
  settings.embedding.max_length = 10;
  EXPECT_THAT(test::MessageOf([&] { Embed(settings); }), HasSubstr("--max-length"));
}

TEST_F(EmbedTest, LongTextsLoseTheirEndAndAreCounted) {
  EmbedSettings settings = Settings("lines.txt", "out.npy");
  settings.embedding.max_length = 10;
  EXPECT_EQ(Embed(settings)["texts_cut"], 2);
  test::WriteFile(folder_.path("short.txt"), "To be, or \n");
  EmbedSettings short_settings = Settings("short.txt", "short.npy");
  Embed(short_settings);
  const std::vector<float> cut = Vectors("out.npy"), whole = Vectors("short.npy");
  for (size_t i = 0; i < kColumns; ++i) EXPECT_NEAR(cut[i], whole[i], 1e-5);
}

TEST_F(EmbedTest, LettersOfGeneratingDoNotContradictTheFolder) {
  EmbeddingSpec spec;
  spec.mask = AttentionMask::kCausal;
  spec.attention = "cc";
  test::WriteFile(folder_.path("model/embedding.json"), EncodeEmbeddingSpec(spec));
  EmbedSettings settings = Settings("lines.txt", "out.npy");
  settings.embedding.attention = "cccc";
  EXPECT_EQ(Embed(settings)["embedding"]["attention"], "cc");
  settings.embedding.attention = "bbcc";
  EXPECT_EQ(test::CodeOf([&] { Embed(settings); }), ErrorCode::kUsage);
}

/// A run that a signal stops between two blocks of texts.
class StoppedEmbedTest : public EmbedTest {
 protected:
  StoppedEmbedTest() {
    std::string lines;
    for (int i = 0; i < 20000; ++i) {
      lines += "{\"id\": \"n" + std::to_string(i) + "\", \"text\": \"line " +
               std::to_string(i * 7919 % 1000) + "\"}\n";
    }
    test::WriteFile(folder_.path("many.jsonl"), lines);
  }
  void Stop(const EmbedSettings& settings) {
    const std::string partial = folder_.path(".out.npy.partial");
    std::atomic<bool> has_ended = false;  // which it must not, before the signal
    std::thread stopper([&] {
      std::error_code none;
      while (!has_ended &&
             (!std::filesystem::exists(partial, none) || std::filesystem::file_size(partial, none) <= 128)) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      SetStopSignalForTest(SIGTERM);
    });
    EXPECT_EQ(test::CodeOf([&] { Embed(settings); }), ErrorCode::kTerminated);
    has_ended = true;
    stopper.join();
    SetStopSignalForTest(0);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.npy")));
  }
};

TEST_F(StoppedEmbedTest, GoesOnToTheSameBytesAndLeavesNothingBeside) {
  Embed(Settings("many.jsonl", "whole.npy"));
  EmbedSettings settings = Settings("many.jsonl", "out.npy");
  Stop(settings);
  settings.resume = true;
  EXPECT_GT(Embed(settings)["texts_resumed"].get<uint64_t>(), 0u);
  EXPECT_EQ(Bytes("out.npy"), Bytes("whole.npy"));
  EXPECT_EQ(Bytes("out.npy.ids"), Bytes("whole.npy.ids"));
  for (const std::string& name : test::NamesIn(folder_.path())) EXPECT_NE(name[0], '.') << name;
}

// Killed between the two renames: names are in place and vectors are not.
TEST_F(StoppedEmbedTest, GoesOnWhereNamesAreInPlaceAlready) {
  Embed(Settings("many.jsonl", "whole.npy"));
  EmbedSettings settings = Settings("many.jsonl", "out.npy");
  Stop(settings);
  std::filesystem::rename(folder_.path(".out.npy.ids.partial"), folder_.path("out.npy.ids"));
  settings.resume = true;
  EXPECT_GT(Embed(settings)["texts_resumed"].get<uint64_t>(), 0u);
  EXPECT_EQ(Bytes("out.npy"), Bytes("whole.npy"));
  EXPECT_EQ(Bytes("out.npy.ids"), Bytes("whole.npy.ids"));
}

// The names cannot be put in place here: by then no other vectors may stand beside them.
TEST_F(EmbedTest, OlderVectorsAreGoneBeforeNewNamesAppear) {
  test::WriteFile(folder_.path("in.jsonl"), "{\"id\": \"a\", \"text\": \"to be\"}\n");
  test::WriteFile(folder_.path("out.npy"), "older");
  std::filesystem::create_directories(folder_.path("out.npy.ids/kept"));
  EXPECT_EQ(test::CodeOf([&] { Embed(Settings("in.jsonl", "out.npy")); }), ErrorCode::kIo);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.npy")));
  EmbedSettings settings = Settings("in.jsonl", "out.npy");
  settings.resume = true;
  std::filesystem::remove_all(folder_.path("out.npy.ids"));
  EXPECT_EQ(Embed(settings)["texts_resumed"], 1);
  EXPECT_EQ(Bytes("out.npy.ids"), "a\n");
  EXPECT_EQ(Vectors("out.npy").size(), static_cast<size_t>(kColumns));
}

TEST_F(StoppedEmbedTest, GoesOnWithNothingElse) {
  EmbedSettings settings = Settings("many.jsonl", "out.npy");
  Stop(settings);
  settings.resume = true;
  EmbedSettings other = settings;
  other.embedding.truncate_dim = 4;
  EXPECT_EQ(test::CodeOf([&] { Embed(other); }), ErrorCode::kUsage);
  const std::string config = Bytes("model/config.json");
  test::WriteFile(folder_.path("model/config.json"), config + "\n");
  EXPECT_EQ(test::CodeOf([&] { Embed(settings); }), ErrorCode::kUsage) << "a file of the model changed";
  test::WriteFile(folder_.path("model/config.json"), config);
  std::string lines = Bytes("many.jsonl");
  lines.replace(lines.find("line"), 4, "LINE");
  test::WriteFile(folder_.path("many.jsonl"), lines);
  EXPECT_EQ(test::CodeOf([&] { Embed(settings); }), ErrorCode::kBadInput);
}

TEST_F(StoppedEmbedTest, GoesOnByNoOtherKernels) {
  const CpuGemms before = ChosenCpuGemms();
  CpuGemms other = before;
  other.bf16 =
      before.bf16 == CpuGemms::Bf16::kEmulated ? CpuGemms::Bf16::kWidened : CpuGemms::Bf16::kEmulated;
  if (!WhyNotCpuGemms(other).empty()) GTEST_SKIP() << "this processor has one way alone";
  EmbedSettings settings = Settings("many.jsonl", "out.npy");
  Stop(settings);
  settings.resume = true;
  ApplyCpuGemms(other);
  const auto code = test::CodeOf([&] { Embed(settings); });
  ApplyCpuGemms(before);
  EXPECT_EQ(code, ErrorCode::kUsage);
}

TEST_F(StoppedEmbedTest, WithoutResumeARunBeginsAnew) {
  EmbedSettings settings = Settings("many.jsonl", "out.npy");
  Stop(settings);
  EXPECT_EQ(Embed(settings)["texts_resumed"], 0);
  EXPECT_EQ(Embed(Settings("many.jsonl", "whole.npy"))["texts"], 20000);
  EXPECT_EQ(Bytes("out.npy"), Bytes("whole.npy"));
}

}  // namespace
}  // namespace trainwright

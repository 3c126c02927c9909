#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/eval/generate_job.h"
#include "lib/io/byte_sink.h"
#include "lib/model/end_ids.h"
#include "lib/tok/tokenizer.h"
#include "tests/eval/bytes_model.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

/// The one line that the job writes.
nlohmann::json SampleOf(const std::string& folder, GenerateSettings settings,
                        nlohmann::ordered_json* summary = nullptr) {
  settings.checkpoint = folder;
  MemorySink sink;
  const nlohmann::ordered_json counts =
      RunGenerate(test::Families(), settings, ProcessSetup(), &sink, Solo());
  if (summary != nullptr) *summary = counts;
  return nlohmann::json::parse(AsText(sink.bytes()));
}

TEST(SampleEndTest, EachIdOfTheModelsListEndsASample) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path());
  const GenerateSettings settings = {.prompt = "To be", .max_tokens = 9};
  const auto ids = SampleOf(folder.path(), settings)["ids"].get<std::vector<uint32_t>>();
  const uint32_t end = ids[4];
  const auto place = std::find(ids.begin(), ids.end(), end);
  Write(folder.path("generation_config.json"),
        nlohmann::json{{"eos_token_id", {300, end}}}.dump());  // beyond the vocabulary, too
  nlohmann::ordered_json summary;
  const nlohmann::json sample = SampleOf(folder.path(), settings, &summary);
  EXPECT_EQ(sample["finish"], "eos");
  EXPECT_EQ(sample["ids"], nlohmann::json(std::vector(ids.begin(), place)));
  EXPECT_THAT(summary["end_ids"].get<std::vector<uint32_t>>(), testing::IsSupersetOf({300u, end}));
}

TEST(SampleEndTest, TheIdsOfConfigJsonCountWhereGenerationConfigHasNone) {
  const test::TemporaryFolder folder;
  Write(folder.path("config.json"), R"({"eos_token_id": [3, 4]})");
  EXPECT_THAT(EndIdsOf(folder.path()), testing::ElementsAre(3, 4));
  Write(folder.path("generation_config.json"), R"({"eos_token_id": null})");
  EXPECT_THAT(EndIdsOf(folder.path()), testing::ElementsAre(3, 4));
  Write(folder.path("generation_config.json"), R"({"eos_token_id": 7})");
  EXPECT_THAT(EndIdsOf(folder.path()), testing::ElementsAre(7));
}

TEST(SampleEndTest, EndsThatAreNoIdsAreRefused) {
  const test::TemporaryFolder folder;
  const auto message_of = [&](const char* config) {
    Write(folder.path("generation_config.json"), config);
    return test::MessageOf([&] { EndIdsOf(folder.path()); });
  };
  EXPECT_THAT(message_of(R"({"eos_token_id": [1, "two"]})"), testing::HasSubstr("eos_token_id"));
  EXPECT_THAT(message_of("[1]"), testing::HasSubstr("is no JSON object"));
}

// A SentencePiece tokenizer drops the first space of what it decodes.
TEST(SampleEndTest, AStopAtTheBeginningOfASampleIsFoundWithItsSpace) {
  const test::TemporaryFolder folder;
  const auto tokenizer = LoadTokenizer(test::Fixture("tok/testdata/unigram/byte-fallback.model"));
  ModelConfig config;
  config.family = &LlamaFamily();
  config.vocab_size = static_cast<int64_t>(tokenizer->identity().vocab_size);
  config.hidden_size = 16;
  config.intermediate_size = 16;
  config.num_layers = 1;
  config.num_heads = 1;
  config.num_kv_heads = 1;
  config.head_dim = 16;
  config.max_positions = 64;
  WriteHfFolder(folder.path(), *MakeModel(test::Families(), config, Precision::kFp32, at::kCPU, 1),
                tokenizer->identity());
  int spaces = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    GenerateSettings settings = {.prompt = "Hello there", .max_tokens = 6};
    settings.sampling.temperature = 1;
    settings.seed = seed;
    const std::string text = SampleOf(folder.path(), settings)["text"];
    if (text.size() < 2 || text[0] != ' ' || static_cast<uint8_t>(text[1]) >= 0x80) continue;
    ++spaces;
    settings.stops = {text.substr(0, 2)};
    const nlohmann::json stopped = SampleOf(folder.path(), settings);
    EXPECT_EQ(stopped["finish"], "stop") << seed;
    EXPECT_EQ(stopped["text"], "") << seed;
    EXPECT_LE(stopped["ids"].size(), 2u) << seed;
  }
  EXPECT_GT(spaces, 0);
}

/// Where two letters begin that a sample of bytes has side by side.
size_t PlaceOfLetters(const std::vector<uint32_t>& ids) {
  const auto is_letter = [](uint32_t id) { return id < 128 && std::isalpha(static_cast<int>(id)) != 0; };
  for (size_t i = 2; i + 1 < ids.size(); ++i) {
    if (is_letter(ids[i]) && is_letter(ids[i + 1])) return i;
  }
  return ids.size();
}

/// The ids of a sample with two letters one after the other.
/// \param differ whether these must be two different ones
/// \param settings gets the seed of that sample
std::vector<uint32_t> SampleWithLetters(const std::string& model, bool differ, GenerateSettings* settings) {
  while (++settings->seed < 200) {
    std::vector<uint32_t> ids = SampleOf(model, *settings)["ids"].get<std::vector<uint32_t>>();
    const size_t place = PlaceOfLetters(ids);
    if (place < ids.size() && !(differ && ids[place] == ids[place + 1])) return ids;
  }
  throw std::runtime_error("no sample has two letters one after the other");
}

TEST(SampleEndTest, AnAnswersEndOfSeveralTokensIsNoPartOfTextOrIds) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path());
  GenerateSettings settings = {.prompt = "To be", .max_tokens = 40};
  settings.sampling.temperature = 1;
  settings.log_probabilities = 0;
  std::vector<uint32_t> ids = SampleWithLetters(folder.path(), /*differ=*/false, &settings);
  const size_t place = PlaceOfLetters(ids);
  const std::string end = {static_cast<char>(ids[place]), static_cast<char>(ids[place + 1])};
  Write(folder.path("template"), "user {content}\nassistant [ {content} \"" + end + "\" ]\n");
  settings.chat_template = folder.path("template");
  const nlohmann::json sample = SampleOf(folder.path(), settings);
  ids.resize(place);
  EXPECT_EQ(sample["finish"], "eos");
  EXPECT_EQ(sample["ids"], nlohmann::json(ids));
  EXPECT_EQ(sample["logprobs"].size(), place);
  const std::string text = nlohmann::json(LoadTokenizer("bytes")->Decode(ids))
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  EXPECT_EQ(sample["text"], nlohmann::json::parse(text));

  settings.log_probabilities.reset();
  settings.format = "text";
  settings.checkpoint = folder.path();
  MemorySink sink;
  RunGenerate(test::Families(), settings, ProcessSetup(), &sink, Solo());
  EXPECT_EQ(AsText(sink.bytes()), sample["text"].get<std::string>() + "\n");
}

TEST(SampleEndTest, AnswersToPromptsWithToolsEndAsTheTemplateForToolsEndsThem) {
  const test::TemporaryFolder folder;
  test::WriteModel(folder.path());
  GenerateSettings settings = {.prompt = "To be", .max_tokens = 40};
  settings.sampling.temperature = 1;
  const std::vector<uint32_t> ids = SampleWithLetters(folder.path(), /*differ=*/true, &settings);
  const size_t place = PlaceOfLetters(ids);
  const auto ended_by = [](uint32_t letter) {
    return "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content + '" +
           std::string(1, static_cast<char>(letter)) +
           "' }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  };
  const nlohmann::json list = {{{"name", "default"}, {"template", ended_by(ids[place])}},
                               {{"name", "tool_use"}, {"template", ended_by(ids[place + 1])}}};
  Write(folder.path("templates.json"), nlohmann::json{{"chat_template", list}}.dump());
  settings.prompt.reset();
  settings.chat_template = folder.path("templates.json");
  settings.input = folder.path("prompts.jsonl");
  const auto expect = [&](const std::string& prompt, uint32_t end) {
    Write(settings.input, prompt + "\n");
    const nlohmann::json sample = SampleOf(folder.path(), settings);
    EXPECT_EQ(sample["finish"], "eos") << prompt;
    EXPECT_EQ(sample["ids"], nlohmann::json(std::vector(ids.begin(), std::find(ids.begin(), ids.end(), end))))
        << prompt;
  };
  expect(R"({"prompt": "To be"})", ids[place]);
  expect(R"({"prompt": "To be", "tools": [{"type": "function", "function": {"name": "f"}}]})",
         ids[place + 1]);
}

}  // namespace
}  // namespace trainwright

#include "lib/eval/sample_output.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/eval/text_stream.h"
#include "lib/formats/json_text.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

/// One object a sample, one a line.
class JsonLines final : public SampleOutput {
 public:
  JsonLines(std::optional<int64_t> log_probabilities, ByteSink* out)
      : log_probabilities_(log_probabilities), out_(out) {}

  void Write(const PromptLine& prompt, const Generation& generation, const std::string& text) override {
    nlohmann::ordered_json line = {{"prompt", prompt.text},
                                   {"text", text},
                                   {"ids", generation.ids},
                                   {"sample", generation.sample},
                                   {"finish", FinishReasonName(generation.finish)}};
    if (log_probabilities_) AddLogProbabilities(generation, &line);
    std::string text_of_line = JsonTextOf(line);
    text_of_line.pop_back();  // its closing bracket
    for (const auto& [name, value] : prompt.others) {
      if (line.contains(name)) {
        throw Error(ErrorCode::kBadInput, "prompt",
                    "has a member \"" + name + "\", which the sample's line has too", prompt.place,
                    "rename it");
      }
      text_of_line += "," + JsonTextOf(name) + ":" + value;
    }
    text_of_line += "}\n";
    out_->Write(AsBytes(text_of_line));
  }

 private:
  void AddLogProbabilities(const Generation& generation, nlohmann::ordered_json* line) const {
    auto chosen = nlohmann::ordered_json::array(), most = nlohmann::ordered_json::array();
    for (const ChosenLogProbabilities& of_token : generation.log_probabilities) {
      chosen.push_back(of_token.chosen);
      auto pairs = nlohmann::ordered_json::array();
      for (const TokenLogProbability& other : of_token.most) {
        pairs.push_back(nlohmann::ordered_json::array({other.id, other.log_probability}));
      }
      most.push_back(std::move(pairs));
    }
    (*line)["logprobs"] = std::move(chosen);
    if (*log_probabilities_ > 0) (*line)["top_logprobs"] = std::move(most);
  }

  std::optional<int64_t> log_probabilities_;
  ByteSink* out_;
};

/// The continuation as it is made, and a line feed behind it.
class Text final : public SampleOutput {
 public:
  Text(const Tokenizer* tokenizer, const SampleEnds* ends, ByteSink* out)
      : tokenizer_(tokenizer), ends_(ends), out_(out) {}

  void Begin(const std::vector<uint32_t>& prompt) override {
    stream_.emplace(tokenizer_, prompt, ends_->texts(), ends_->sequences);
  }
  bool watches() const override { return true; }
  void See(uint32_t id) override { Put(stream_->Take(id)); }
  void Write(const PromptLine& /*prompt*/, const Generation& /*generation*/,
             const std::string& text) override {
    Put(stream_->Finish(text) + "\n");
  }

 private:
  void Put(const std::string& text) {
    if (text.empty()) return;
    const bool is_utf8 = FindInvalidUtf8(text) == std::string_view::npos;
    out_->Write(AsBytes(is_utf8 ? text : AsInJson(text)));
  }

  /// Vocabularies of bytes can spell what is no UTF-8: U+FFFD stands for it, as in JSON lines.
  static std::string AsInJson(const std::string& text) {
    return nlohmann::json::parse(JsonTextOf(text)).get<std::string>();
  }

  const Tokenizer* tokenizer_;
  const SampleEnds* ends_;
  ByteSink* out_;
  std::optional<TextStream> stream_;
};

/// What only JSON lines can hold; empty: nothing.
std::string NeedsLines(const GenerateSettings& settings) {
  if (!settings.prompt && !settings.chat) return "--input";
  if (settings.samples > 1) return "--samples";
  if (!settings.keep_if.empty()) return "--keep-if";
  if (settings.log_probabilities) return "--logprobs";
  return "";
}

}  // namespace

void CheckFormat(const GenerateSettings& settings) {
  const std::string reason = NeedsLines(settings);
  if (settings.format != "text" || reason.empty()) return;
  throw Error(ErrorCode::kUsage, "--format", "text is for one sample of one prompt, without " + reason, "",
              "leave it out, or give --format jsonl");
}

bool WritesText(const GenerateSettings& settings, bool on_terminal) {
  if (settings.format == "text") return true;
  if (settings.format != "auto" || !NeedsLines(settings).empty()) return false;
  return on_terminal || settings.chat;
}

std::unique_ptr<SampleOutput> MakeSampleOutput(const Tokenizer* tokenizer, const SampleEnds* ends,
                                               bool as_text, std::optional<int64_t> log_probabilities,
                                               ByteSink* out) {
  if (as_text) return std::make_unique<Text>(tokenizer, ends, out);
  return std::make_unique<JsonLines>(log_probabilities, out);
}

}  // namespace trainwright

#include "lib/bench/guide_models.h"

#include <nlohmann/json.hpp>

#include "lib/base/rng.h"

namespace trainwright {
namespace {

GuideModel Neox(const std::string& name, int hidden_size, int layers, int heads) {
  const nlohmann::ordered_json config = {
      {"architectures", nlohmann::ordered_json::array({"GPTNeoXForCausalLM"})},
      {"model_type", "gpt_neox"},
      {"vocab_size", kGuideVocabulary},
      {"hidden_size", hidden_size},
      {"intermediate_size", 4 * hidden_size},
      {"num_hidden_layers", layers},
      {"num_attention_heads", heads},
      {"max_position_embeddings", 2048},
      {"hidden_act", "gelu"},
      {"rotary_pct", 0.25},
      {"rotary_emb_base", 10000},
      {"use_parallel_residual", true},
      {"layer_norm_eps", 1e-5},
      {"tie_word_embeddings", false}};
  return {name, config.dump(1)};
}

/// One random document after the other.
class Documents {
 public:
  void AppendTo(std::vector<uint16_t>* ids) {
    for (uint64_t left = 32 + rng_.Bits(counter_++) % 256; left > 0; --left) {
      ids->push_back(static_cast<uint16_t>(rng_.Bits(counter_++) % kEndOfText));
    }
    ids->push_back(kEndOfText);
  }

 private:
  static constexpr uint16_t kEndOfText = kGuideVocabulary - 1;
  const Rng rng_ = Rng(1, "claims ids");
  uint64_t counter_ = 0;
};

}  // namespace

std::vector<GuideModel> GuideModels() {
  return {Neox("neox-768", 768, 6, 12), Neox("neox-512", 512, 4, 8)};
}

std::vector<uint16_t> GuideIds(size_t tokens) {
  Documents documents;
  std::vector<uint16_t> ids;
  while (ids.size() < tokens) documents.AppendTo(&ids);
  return ids;
}

std::vector<uint16_t> GuideExamples() {
  Documents documents;
  std::vector<uint16_t> ids;
  for (int i = 0; i < kGuideExamples; ++i) documents.AppendTo(&ids);
  return ids;
}

std::string WithGuideModels(std::string_view flags, const std::string& folder) {
  std::string text(flags);
  for (const GuideModel& model : GuideModels()) {
    const std::string mark = "{" + model.name + "}";
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), folder + "/" + model.name + ".json");
    }
  }
  return text;
}

}  // namespace trainwright

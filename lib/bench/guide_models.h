/// The models that the guides' claims are about, with random weights, and token ids to train them on: the
/// runs of `bench --claims SYSTEM --claims-size guide`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

/// Ids of the made-up data, as many as the tokenizer of GPT-2 and GPT-NeoX has.
inline constexpr uint32_t kGuideVocabulary = 50257;
/// Steps of such a run, of which the first two warm up.
inline constexpr int kGuideSteps = 4;
/// Of the guide of the LoRA trainer.
inline constexpr int kGuideExamples = 171;

struct GuideModel {
  std::string name;    ///< "neox-768"
  std::string config;  ///< config.json of transformers
};

/// neox-768 and neox-512: GPT-NeoX of 6 layers and of 4, which the suite of ReFocused-AI builds. What the
/// other guides train are shapes that train(1) knows by name.
std::vector<GuideModel> GuideModels();

/// Documents of 32 to 287 random ids, each with the id 50256 after it: 16 bits an id, as nanoGPT stores
/// them. The same bytes each time.
std::vector<uint16_t> GuideIds(size_t tokens);
/// The first kGuideExamples of these documents.
std::vector<uint16_t> GuideExamples();

/// The flags with "{NAME}" of a model of GuideModels replaced by the path of its configuration.
/// \param folder with a file NAME.json for each
std::string WithGuideModels(std::string_view flags, const std::string& folder);

}  // namespace trainwright

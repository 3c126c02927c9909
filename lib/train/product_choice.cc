#include "lib/train/product_choice.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/log.h"
#include "lib/dist/shared_work.h"
#include "lib/memory/training_memory.h"
#include "lib/nn/linear/product_chooser.h"
#include "lib/run/run_record.h"

namespace trainwright {
namespace {

/// The writer's text, on all ranks; empty where it has none.
std::string ShareText(World* world, const std::string& text) {
  const int64_t size = world->Agree({static_cast<int64_t>(text.size())})[0];
  std::vector<int64_t> characters(static_cast<size_t>(size));
  std::transform(text.begin(), text.end(), characters.begin(),
                 [](char character) { return static_cast<int64_t>(static_cast<unsigned char>(character)); });
  if (size > 0) characters = world->Agree(characters);
  std::string shared;
  for (const int64_t character : characters) shared += static_cast<char>(character);
  return shared;
}

bool MayTry(const TrainSettings& settings, const ResolvedRun& run, LanguageModel* model) {
  FlatParameters& parameters = model->parameters();
  return !settings.deterministic && run.plan.exact_world == 0 && !settings.auto_oom &&
         parameters.adapters() == nullptr && run.plan.sharding() == Sharding::kNone &&
         !run.compute.offload.gradients && parameters[model->body().head()].trainable;
}

/// Computes as much as a micro-batch does, on tokens of no meaning.
void Rehearse(const TrainPlan& plan, LanguageModel* model, ProductChooser* chooser) {
  chooser->set_tries(true);
  model->LossAndGradients(EqualSamples(plan.batch, plan.sequence_tokens), 1.0);
  chooser->set_tries(false);
  model->parameters().ZeroGradients();
}

void Announce(const ProductChoices& choices) {
  const auto others =
      std::count_if(choices.begin(), choices.end(), [](const auto& choice) { return choice.second != 0; });
  LogInfo("GEMMs: tried the libraries' kernels for " + std::to_string(choices.size()) + " shapes; for " +
          std::to_string(others) + " another than the first is faster");
}

}  // namespace

void ChooseProducts(const TrainSettings& settings, int64_t steps_taken, World* world,
                    const RunDirectory* directory, LanguageModel* model, ResolvedRun* run) {
  if (run->compute.device.is_cpu()) return;
  const auto chooser = std::make_shared<ProductChooser>();
  model->parameters().set_product_chooser(chooser);
  DeviceChoices& choices = run->compute.identity.choices;
  const auto share = [&](const ProductChoices& products) {
    return ShareText(world, world->is_writer() && !products.empty() ? EncodeProductChoices(products) : "");
  };
  std::string text = share(choices.products);
  const bool tries = text.empty() && steps_taken == 0 && MayTry(settings, *run, model);
  if (tries) {
    Rehearse(run->plan, model, chooser.get());
    text = share(chooser->choices());
  }
  choices.products = text.empty() ? ProductChoices() : DecodeProductChoices(text, "the writing rank");
  chooser->set_choices(choices.products);
  if (!tries || text.empty()) return;
  AsWriter(world, [&] {
    StoreDeviceChoices(directory->record_path(), choices);
    Announce(choices.products);
    return 0;
  });
}

}  // namespace trainwright

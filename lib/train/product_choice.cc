#include "lib/train/product_choice.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/log.h"
#include "lib/device/memory_error.h"
#include "lib/dist/shared_work.h"
#include "lib/memory/training_memory.h"
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

/// Whether the loss of a trial is the run's: one that reads no logits may have no head.
bool Predicts(const TrainPlan& plan, LanguageModel* model) {
  const auto& embedding = plan.tuning.embedding;
  return !embedding || embedding->train_head || model->parameters()[model->body().head()].trainable;
}

bool MayTry(const TrainSettings& settings, const ResolvedRun& run, LanguageModel* model) {
  return !settings.deterministic && run.plan.exact_world == 0 && run.plan.sharding() == Sharding::kNone &&
         !run.compute.offload.gradients && Predicts(run.plan, model);
}

/// With --auto-oom, a run that has no memory for its micro-batch makes it smaller at its first step: what was
/// chosen for the larger one says nothing.
ProductChoices ChoicesOfTrial(const TrainSettings& settings, const TrainPlan& plan, LanguageModel* model,
                              ProductChooser* chooser) {
  try {
    TryProducts(plan, model, chooser);
    return chooser->choices();
  } catch (const std::exception& exception) {
    if (!settings.auto_oom || !AsMemoryError(exception, {})) throw;
  }
  chooser->set_tries(false);
  model->ReleaseActivations();
  model->parameters().ZeroGradients();
  return {};
}

void Announce(const ProductChoices& choices) {
  const auto others =
      std::count_if(choices.begin(), choices.end(), [](const auto& choice) { return choice.second != 0; });
  LogInfo("GEMMs: tried the libraries' kernels for " + std::to_string(choices.size()) + " shapes; for " +
          std::to_string(others) + " another than the first is faster");
}

}  // namespace

void TryProducts(const TrainPlan& plan, LanguageModel* model, ProductChooser* chooser) {
  chooser->set_tries(true);
  model->LossAndGradients(EqualSamples(plan.batch, plan.sequence_tokens), 1.0);
  chooser->set_tries(false);
  model->parameters().ZeroGradients();
}

AgreedProducts AgreeOnProducts(World* world, const ProductChoices& before,
                               const std::function<ProductChoices()>& trial) {
  const auto share = [&](const ProductChoices& products) {
    return ShareText(world, world->is_writer() && !products.empty() ? EncodeProductChoices(products) : "");
  };
  std::string text = share(before);
  const bool tries = text.empty() && trial != nullptr;
  if (tries) {
    ProductChoices own;
    DoAlike(world, [&] { own = trial(); });
    text = share(own);
  }
  if (text.empty()) return {};
  return {DecodeProductChoices(text, "the writing rank"), /*are_new=*/tries};
}

void ChooseProducts(const TrainSettings& settings, int64_t steps_taken, World* world,
                    const RunDirectory* directory, LanguageModel* model, ResolvedRun* run) {
  if (run->compute.device.is_cpu()) return;
  const auto chooser = std::make_shared<ProductChooser>();
  model->parameters().set_product_chooser(chooser);
  DeviceChoices& choices = run->compute.identity.choices;
  std::function<ProductChoices()> trial;
  if (steps_taken == 0 && MayTry(settings, *run, model)) {
    trial = [&] { return ChoicesOfTrial(settings, run->plan, model, chooser.get()); };
  }
  const AgreedProducts agreed = AgreeOnProducts(world, choices.products, trial);
  choices.products = agreed.choices;
  chooser->set_choices(choices.products);
  if (!agreed.are_new) return;
  AsWriter(world, [&] {
    StoreDeviceChoices(directory->record_path(), choices);
    Announce(choices.products);
    return 0;
  });
}

}  // namespace trainwright

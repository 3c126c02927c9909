/// Runs of small models of all families, on the CPU and on the device that refuses the host.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "lib/loading/sample_stream.h"
#include "lib/spec/family.h"
#include "lib/train/trainer.h"
#include "tests/model/small_models.h"
#include "tests/model/ten_models.h"
#include "tests/train/tiny_training.h"

namespace trainwright::test {

struct NamedModel {
  std::string name;
  ModelConfig config;
};

inline void PrintTo(const NamedModel& model, std::ostream* out) {
  *out << model.name;
}

/// Of every family that runs on a GPU, and of the family ten one of each kind of layer, with the vocabulary
/// of CountingDocuments. Spans, windows, biases and positions are among what they have.
inline std::vector<NamedModel> DeviceModels() {
  std::vector<NamedModel> models = {
      {"llama", SmallLlama()},     {"biased_llama", SmallBiasedLlama()},
      {"mistral", SmallMistral()}, {"qwen2", SmallQwen2()},
      {"gpt2", SmallGpt2()},       {"gpt2_without_biases", SmallGpt2(/*bias=*/false)},
      {"neox", SmallNeox()},       {"neox_one_after_another", SmallNeox(/*parallel=*/false)}};
  ModelConfig dynamic = SmallDynamicLlama();
  dynamic.rope.original_positions = 10;  // below the samples that the tests have
  models.push_back({"dynamic_llama", dynamic});
  for (const TenKind& kind : TenKinds()) models.push_back({"ten_" + kind.name, TenOf(kind.fields)});
  std::erase_if(models, [](const NamedModel& model) { return !FamilyOf(model.config).runs_on_gpu(); });
  for (NamedModel& model : models) model.config.vocab_size = kTinyVocab;
  return models;
}

inline at::Tensor HostWeights(const LanguageModel& model) {
  return model.parameters().values().to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/true);
}

/// What of a run does not depend on where it computes.
struct DeviceRunSetup {
  ModelConfig model;
  TrainPlan plan = TinyPlan();
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNo;
  OffloadChoice offload = {};
  std::string offload_folder = {};  ///< of a CPU's
  ComputeKinds kinds = {};
};

/// A model, a stream and a trainer.
struct DeviceRun {
  DeviceRun(const ShardSet& set, const DeviceRunSetup& setup, at::Device device)
      : model(MakeModel(Families(), setup.model, setup.plan.precision, device, setup.plan.seed, setup.kinds,
                        setup.plan.tuning)),
        stream(&set, setup.plan.stream_options()),
        trainer(PartsOf(model.get(), &stream, setup.plan), setup.plan, device) {
    model->set_activation_checkpointing(setup.checkpointing);
    model->set_tbptt(setup.plan.tbptt);
    model->Offload(setup.offload, setup.offload_folder);
  }
  at::Tensor Weights() const { return HostWeights(*model); }

  std::unique_ptr<LanguageModel> model;
  SampleStream stream;
  Trainer trainer;
};

}  // namespace trainwright::test

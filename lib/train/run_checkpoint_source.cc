#include "lib/train/run_checkpoint_source.h"

#include <ATen/Context.h>

#include <utility>

#include "lib/base/elapsed.h"
#include "lib/run/plan_codec.h"
#include "lib/train/checkpoint_parts.h"

namespace trainwright {

std::vector<at::Tensor> ShardsOfCheckpoint(const LanguageModel& model, const Optimizer& optimizer) {
  const FlatParameters& parameters = model.parameters();
  std::vector<at::Tensor> shards = {parameters.masters_sharded() ? parameters.values() : at::Tensor()};
  for (const OptimizerState& state : optimizer.States()) {
    shards.push_back(optimizer.is_sharded(state) ? state.value : at::Tensor());
  }
  return shards;
}

RunCheckpointSource::RunCheckpointSource(const ResolvedRun* run, LanguageModel* model, Trainer* trainer,
                                         const TrainingHistory* history, const RunListener* listener,
                                         CheckpointFacts facts, ShardReader* shards)
    : run_(run),
      model_(model),
      trainer_(trainer),
      history_(history),
      listener_(listener),
      facts_(std::move(facts)),
      shards_(shards),
      layout_(DescribeLayout(model->parameters())),
      matrices_(DescribeMatrices(model->parameters(), trainer->optimizer().States())) {}

std::vector<at::Tensor> RunCheckpointSource::LiveTensors() {
  std::vector<at::Tensor> tensors = {model_->parameters().values()};
  for (const OptimizerState& state : trainer_->optimizer().States()) tensors.push_back(state.value);
  return tensors;
}

CheckpointContent RunCheckpointSource::Describe(const std::vector<at::Tensor>& tensors, bool are_copies) {
  TrainState state = {.plan = trainer_->plan(),
                      .trainer = trainer_->state(),
                      .compute = run_->compute.identity,
                      .data_sha256 = HexEncode(run_->data->set().content_sha256()),
                      .layout = layout_,
                      .watchdog = listener_->watchdog_state(),
                      .matrices = matrices_};
  for (size_t i = 0; i < state.trainer.optimizer.size(); ++i)
    state.trainer.optimizer[i].value = tensors[i + 1];
  // In the background one thread compresses: the others train.
  const int threads = are_copies ? 1 : static_cast<int>(run_->compute.identity.threads);
  WeightsOutput weights;
  if (are_copies) weights.values = tensors[0];
  if (shards_ != nullptr) {
    weights.read_masters = [this](int64_t begin, at::Tensor out) { shards_->Read(0, begin, std::move(out)); };
    state.sharded = {.elements = model_->parameters().elements(),
                     .read = [this](size_t index, int64_t begin, at::Tensor out) {
                       shards_->Read(index + 1, begin, std::move(out));
                     }};
  }
  weights.compress = facts_.compress_model;
  weights.threads = threads;
  CheckpointContent content = DescribeCheckpoint(*model_, weights, run_->data->set().header().tokenizer,
                                                 std::move(state), facts_.provenance,
                                                 {.state = {.on = facts_.compress_state, .threads = threads},
                                                  .model_only = facts_.model_only,
                                                  .base_model = facts_.base_folder,
                                                  .embedding = facts_.embedding,
                                                  .chat_template = facts_.chat_template,
                                                  .generation_before = facts_.generation_before});
  content.metadata.update(DescribeRun());
  return content;
}

nlohmann::ordered_json RunCheckpointSource::DescribeRun() const {
  const TrainPlan& plan = trainer_->plan();
  const ComputeIdentity& compute = run_->compute.identity;
  const int64_t step = trainer_->step();
  const std::string precision = PrecisionName(plan.precision);
  const double epochs = run_->epochs();
  const size_t files = run_->data->set().shards().size();
  nlohmann::ordered_json metadata = {{"epoch", epochs}};
  metadata.update(history_->Encode(step));
  metadata["training_progress"] = {
      {"completed_steps", step},
      {"total_steps", plan.schedule.total_steps},
      {"total_epochs", epochs},
      {"tokens_seen", trainer_->tokens_seen()},
      {"files", files},
      {"files_processed", static_cast<int64_t>(epochs * static_cast<double>(files))}};
  metadata["system_info"] = {{"cuda_available", run_->compute.device.is_cuda()},
                             {"device_count", plan.ranks},
                             {"device", compute.device},
                             {"cpu_capability", compute.cpu_capability},
                             {"threads", compute.threads},
                             {"mixed_precision", precision}};
  metadata["model_config"] = facts_.provenance.at("model");
  metadata["training_config_summary"] = PlanAsOptions(plan);
  metadata["additional_metadata"]["optimization_settings"] = {
      {"mixed_precision", precision},
      {"effective_batch_size", plan.samples_per_step()},
      {"cudnn_benchmark", at::globalContext().benchmarkCuDNN()}};
  metadata["volatile"] = {"system_info"};
  if (trainer_->done()) DescribeEnd(&metadata);
  return metadata;
}

void RunCheckpointSource::DescribeEvaluation(nlohmann::ordered_json* metadata) const {
  const nlohmann::ordered_json described = history_->Encode(trainer_->step());
  (*metadata)["validation_metrics"].update(described.at("validation_metrics"));
  (*metadata)["history_state"] = described.at("history_state");
}

void RunCheckpointSource::DescribeEnd(nlohmann::ordered_json* metadata) const {
  const TrainPlan& plan = trainer_->plan();
  const int64_t step = trainer_->step();
  const double time_s = SecondsSince(facts_.start);
  nlohmann::ordered_json& validation = (*metadata)["validation_metrics"];
  validation["training_completed"] = true;
  validation["total_steps"] = step;
  validation["final_loss"] = (*metadata)["current_loss"];
  validation["best_loss_achieved"] = (*metadata)["best_loss"];
  validation["total_epochs"] = run_->epochs();
  validation["average_loss"] = history_->mean_loss_nats();
  validation["loss_std"] = history_->loss_deviation_nats();
  validation["effective_batch_size"] = plan.samples_per_step();
  const int64_t steps_here = step - facts_.first_step;
  const double steps_per_s = static_cast<double>(steps_here) / time_s;
  validation["training_time_seconds"] = time_s;
  validation["steps_per_second"] = steps_per_s;
  const int64_t tokens_here = trainer_->tokens_seen() - facts_.tokens_before;
  (*metadata)["additional_metadata"]["training_summary"] = {
      {"completed", true},
      {"total_time", time_s},
      {"actual_steps_completed", steps_here},
      {"performance",
       {{"training_time_seconds", time_s},
        {"steps_per_second", steps_per_s},
        {"tokens_per_second", static_cast<double>(tokens_here) / time_s}}}};
  for (const char* field : {"validation_metrics.training_time_seconds", "validation_metrics.steps_per_second",
                            "additional_metadata.training_summary"}) {
    (*metadata)["volatile"].push_back(field);
  }
}

}  // namespace trainwright

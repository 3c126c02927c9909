#include "lib/memory/batch_search.h"

#include <algorithm>
#include <chrono>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/base/signals.h"
#include "lib/device/accelerator.h"
#include "lib/device/device_sync.h"
#include "lib/device/memory_error.h"
#include "lib/machine/json_optional.h"
#include "lib/model/model_family.h"

namespace trainwright {
namespace {

constexpr double kNearFastest = 0.97;
constexpr double kShareOfMemory = 0.9;
constexpr int64_t kLargestBatch = 4096;
/// Initial weights that a core draws a second, on the slow side.
constexpr double kParametersAS = 3e7;

/// Random tokens, a span a sample.
ModelInput RandomSamples(const ModelConfig& model, int64_t samples, int64_t sequence_tokens) {
  ModelInput input = EqualSamples(samples, sequence_tokens);
  const int64_t count = input.tokens_n.numel();
  const Rng rng(0, "gpu-probe tokens");
  for (int64_t i = 0; i < count; ++i) {
    const auto token = [&](int64_t at) {
      return static_cast<int64_t>(rng.Bits(static_cast<uint64_t>(at)) %
                                  static_cast<uint64_t>(model.vocab_size));
    };
    input.tokens_n.data_ptr<int64_t>()[i] = token(i);
    input.labels_n.data_ptr<int64_t>()[i] = token(i + 1);
    input.positions_n.data_ptr<int64_t>()[i] = i % sequence_tokens;
  }
  return input;
}

/// What the passes of a batch take, attention's scratch and what products leave among it.
int64_t PassBytes(const ModelFamilies& families, const BatchRequest& request, int64_t batch) {
  const MemoryParts memory = TrainingMemory(families, request.training, request.passes(batch));
  return memory.activations + memory.logits + memory.attention + memory.products;
}

std::string StopName(BatchStop stop) {
  switch (stop) {
    case BatchStop::kLevelled:
      return "levelled";
    case BatchStop::kMemory:
      return "memory";
    case BatchStop::kTime:
      return "time";
  }
  return "";
}

double FastestOf(const std::vector<BatchPoint>& points) {
  double fastest = 0;
  for (const BatchPoint& point : points) fastest = std::max(fastest, point.tokens.median);
  return fastest;
}

/// Whether the last two doublings gained nothing to speak of.
bool HasLevelled(const std::vector<BatchPoint>& points) {
  if (points.size() < 3) return false;
  const std::vector<BatchPoint> before(points.begin(), points.end() - 2);
  return FastestOf(before) >= kNearFastest * FastestOf(points);
}

}  // namespace

MicroBatchPasses EqualSamplePasses(const ModelConfig& model, int64_t samples, int64_t sequence_tokens) {
  const ModelInput input = RandomSamples(model, samples, sequence_tokens);
  const auto run = [input](LanguageModel* trained) {
    ModelInput own = input;
    own.pin = IsAccelerator(trained->parameters().values().device());
    trained->LossAndGradients(own, 1.0 / static_cast<double>(own.tokens_n.numel()));
  };
  return {.run = run, .span_starts = input.span_starts};
}

std::optional<BatchPoint> SmallestFastBatch(const std::vector<BatchPoint>& points, BatchStop stop) {
  const double fastest = FastestOf(points);
  for (const BatchPoint& point : points) {
    if (point.tokens.median < kNearFastest * fastest) continue;
    const bool is_last = point.batch == points.back().batch;
    if (stop == BatchStop::kTime && is_last) return std::nullopt;
    return point;
  }
  return std::nullopt;
}

BatchSearch SearchBatch(const ModelFamilies& families, const BatchRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const auto left_s = [&] { return request.time_s - SecondsSince(start); };
  const MemoryRequest& training = request.training;
  BatchSearch search;
  search.state_bytes = StateMemory(families, training).of_model();
  const double memory_bytes = kShareOfMemory * static_cast<double>(request.memory_bytes);
  const auto fits = [&](int64_t activation_bytes) {
    return request.memory_bytes == 0 ||
           static_cast<double>(search.state_bytes + activation_bytes) <= memory_bytes;
  };
  if (!fits(0)) {
    search.stop = BatchStop::kMemory;
    return search;
  }
  const auto parameters = static_cast<double>(CountParameters(training.model));
  const double first_point_s =
      request.flops_per_s > 0 ? (kLeastSamples + 1) * 6 * parameters *
                                    static_cast<double>(request.passes(1).num_tokens()) / request.flops_per_s
                              : 0;
  if (parameters / kParametersAS + first_point_s > request.time_s) return search;
  try {
    const std::unique_ptr<LanguageModel> model =
        MakeModel(families, training.model, training.precision, training.device, /*seed=*/uint64_t{0},
                  training.kinds, training.tuning);
    model->set_activation_checkpointing(training.checkpointing);
    model->set_tbptt(training.tbptt);
    model->Offload(training.offload, request.offload_folder);
    for (int64_t batch = 1; batch <= kLargestBatch; batch *= 2) {
      ThrowIfStopped();
      const MicroBatchPasses passes = request.passes(batch);
      const auto begin = std::chrono::steady_clock::now();
      BatchPoint point{.batch = batch};
      point.tokens = MeasureRate({.amount = static_cast<double>(passes.num_tokens()),
                                  .run = [&] { passes.run(model.get()); },
                                  .finish = [&] { WaitFor(training.device); }},
                                 {.time_s = std::min(0.2, request.time_s / 30), .warmup_s = 0});
      const ModelMemory memory = model->memory();
      point.activation_bytes = memory.activation_bytes + memory.logits_bytes;
      search.points.push_back(point);
      if (HasLevelled(search.points)) {
        search.stop = BatchStop::kLevelled;
        break;
      }
      if (!fits(PassBytes(families, request, 2 * batch))) {
        search.stop = BatchStop::kMemory;
        break;
      }
      // The next takes about twice as long.
      if (2 * SecondsSince(begin) > left_s()) break;
    }
  } catch (const std::exception& exception) {
    if (!AsMemoryError(exception, {})) throw;
    search.stop = BatchStop::kMemory;
  }
  search.chosen = SmallestFastBatch(search.points, search.stop);
  return search;
}

nlohmann::ordered_json EncodeBatchSearch(const BatchSearch& search) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const BatchPoint& point : search.points) {
    points.push_back({{"batch", point.batch},
                      {"tokens_per_s", point.tokens.median},
                      {"best_tokens_per_s", point.tokens.best},
                      {"spread", OrNull(point.tokens.spread)},
                      {"samples", point.tokens.samples},
                      {"activation_bytes", point.activation_bytes}});
  }
  return {{"points", points},
          {"stopped_by", StopName(search.stop)},
          {"batch", search.chosen ? nlohmann::ordered_json(search.chosen->batch) : nlohmann::ordered_json()}};
}

}  // namespace trainwright

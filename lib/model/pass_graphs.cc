#include "lib/model/pass_graphs.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/gemm_operations.h"
#include "lib/base/host_timeline.h"
#include "lib/base/log.h"
#include "lib/base/profile_scope.h"
#include "lib/base/units.h"
#include "lib/device/device_sync.h"
#include "lib/device/torch_words.h"
#include "lib/device/upload.h"
#include "lib/model/staged_input.h"

namespace trainwright {
namespace {

constexpr int64_t kParts = 8;
/// Of a micro-batch's time: beyond it the queue runs empty now and then.
constexpr double kBoundShare = 0.8;

/// The least of 1/8, 2/8, ... of `whole` that is no smaller.
int64_t RoundUpToParts(int64_t count, int64_t whole) {
  const int64_t part = (whole + kParts - 1) / kParts;
  if (count <= whole) return std::min(whole, (count + part - 1) / part * part);
  return whole + (count - whole + part - 1) / part * part;
}

int64_t RoundUpToPowerOfTwo(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

}  // namespace

/// One shape's.
struct PassGraphs::Entry {
  int64_t micro_batches = 0;
  std::unique_ptr<DeviceGraph> graph;
  std::vector<bool> unwritten_after;  ///< as the passes leave it
  at::Tensor losses;                  ///< fp64 [3], the graph's: LossSum::on_device
  int64_t gemm_operations = 0;        ///< floating-point operations of its GEMMs
};

PassGraphs::PassGraphs(Body* body, std::unique_ptr<GraphRecorder> recorder,
                       std::function<int64_t()> head_bytes, const PassGraphsOptions& options)
    : body_(body),
      recorder_(std::move(recorder)),
      head_bytes_(std::move(head_bytes)),
      options_(options),
      decided_(options.use == GraphUse::kRequired) {
  TRAINWRIGHT_CHECK(recorder_ != nullptr && options.most_tokens > 0);
}

PassGraphs::~PassGraphs() = default;

void PassGraphs::Clear() {
  for (const auto& [shape, entry] : entries_) {
    entry->graph.reset();
    entry->losses.reset();
  }
}

bool PassGraphs::HasRoom() const {
  const auto recorded = std::count_if(entries_.begin(), entries_.end(),
                                      [](const auto& entry) { return entry.second->graph != nullptr; });
  return static_cast<size_t>(recorded) < options_.most_graphs;
}

bool PassGraphs::Serves(const ModelInput& input) const {
  if (input.weights_n.defined() || input.continues || input.staged) return false;
  const LoraAdapters* adapters = body_->parameters().adapters();
  if (adapters != nullptr && adapters->options().dropout > 0) return false;
  return !input.before_last_backward || !body_->tells_gradients_done();
}

std::optional<PassGraphs::Shape> PassGraphs::ShapeOf(const ModelInput& input, int64_t num_labels) const {
  Shape shape{.tokens = RoundUpToParts(input.tokens_n.numel(), options_.most_tokens),
              .causal = input.mask == AttentionMask::kCausal,
              .unwritten = body_->parameters().gradient_buffer().Unwritten()};
  shape.head_rows = RoundUpToParts(num_labels, shape.tokens);
  shape.starts = input.span_starts;
  if (const auto filled = static_cast<int32_t>(shape.tokens); shape.starts.back() < filled) {
    shape.starts.push_back(filled);
  }
  const SpanDependence dependence = body_->DependenceOn(shape.starts, input.mask);
  // Tables of spans that differ are hardly seen twice.
  if (dependence == SpanDependence::kHost ||
      (dependence == SpanDependence::kTable && !SpanTable(input.span_starts).all_equal())) {
    return std::nullopt;
  }
  shape.spans = std::ssize(shape.starts) - 1;
  shape.longest = SpanTable(shape.starts).longest();
  if (dependence == SpanDependence::kTable) return shape;
  shape.starts.clear();
  shape.spans = RoundUpToPowerOfTwo(shape.spans);
  shape.longest = std::min(shape.tokens, RoundUpToPowerOfTwo(shape.longest));
  return shape;
}

ModelInput PassGraphs::Fill(const ModelInput& input, const Shape& shape) const {
  ModelInput filled = input;
  filled.dropout.reset();
  filled.before_last_backward = {};
  const auto tokens = static_cast<int32_t>(shape.tokens);
  if (const int64_t more = shape.tokens - input.tokens_n.numel(); more > 0) {
    const auto longs = at::TensorOptions().dtype(at::kLong);
    filled.tokens_n = at::cat({input.tokens_n, at::zeros({more}, longs)});
    filled.positions_n = at::cat({input.positions_n, at::zeros({more}, longs)});
    filled.labels_n = at::cat({input.labels_n, at::full({more}, -1, longs)});
    filled.span_starts.push_back(tokens);
  }
  filled.span_starts.resize(static_cast<size_t>(shape.spans) + 1, tokens);
  return filled;
}

int64_t PassGraphs::CountNumbers(const Shape& shape) {
  return 3 * shape.tokens + shape.spans + 1;
}

at::Tensor PassGraphs::Numbers(const Shape& shape) const {
  return numbers_.Get({CountNumbers(shape)}, at::kInt, body_->parameters().values().device());
}

void PassGraphs::Stage(const ModelInput& filled, const Shape& shape, const GradientScale& scale) {
  const ProfileScope scope("stage", ProfilePart::kUpload);
  at::Tensor numbers = at::empty({CountNumbers(shape)}, at::TensorOptions().dtype(at::kInt));
  auto* next = numbers.mutable_data_ptr<int32_t>();
  const auto put = [&](const int64_t* values) {
    next = std::transform(values, values + shape.tokens, next,
                          [](int64_t value) { return static_cast<int32_t>(value); });
  };
  put(filled.tokens_n.const_data_ptr<int64_t>());
  put(filled.positions_n.const_data_ptr<int64_t>());
  put(filled.labels_n.const_data_ptr<int64_t>());
  std::copy(filled.span_starts.begin(), filled.span_starts.end(), next);
  const at::Device device = body_->parameters().values().device();
  Numbers(shape).copy_(Upload(numbers, device, filled.pin));

  // The product that a kernel would make of the two, see GradientScale.
  const auto factor = static_cast<double>(static_cast<float>(scale.factor));
  const at::Tensor on_host = at::full({1}, factor, at::TensorOptions().dtype(at::kDouble));
  if (!scale_.defined()) scale_ = at::empty({1}, on_host.options().device(device));
  scale_.copy_(Upload(on_host, device, filled.pin));
  if (scale.on_device.defined()) scale_.mul_(scale.on_device);
}

LossSum PassGraphs::Queue(const ModelInput& filled, const Shape& shape, const Passes& passes) const {
  const at::Tensor numbers = Numbers(shape);
  int64_t begin = 0;
  const auto next = [&](int64_t size) { return numbers.narrow(0, std::exchange(begin, begin + size), size); };
  auto staged = std::make_shared<StagedInput>();
  staged->tokens_n = next(shape.tokens).to(at::kLong);
  staged->positions_n = next(shape.tokens).to(at::kLong);
  staged->labels = SelectHeadRows(next(shape.tokens), shape.head_rows, CountLabels(filled.labels_n));
  staged->spans = SpanTable(filled.span_starts);
  staged->spans.starts_on_device = next(std::ssize(filled.span_starts));
  if (shape.starts.empty()) staged->spans.bound = shape.longest;
  ModelInput input = filled;
  input.staged = staged;
  return passes(input, staged->labels, {1.0, scale_});
}

LossSum PassGraphs::QueueTimed(const ModelInput& filled, const Shape& shape, const Passes& passes) {
  const at::Device device = body_->parameters().values().device();
  const auto begin = std::chrono::steady_clock::now();
  const auto now_s = [&] { return options_.clock_s ? options_.clock_s() : SecondsSince(begin); };
  WaitFor(device);
  const double start_s = now_s();
  LossSum sum = Queue(filled, shape, passes);
  const double queue_s = now_s() - start_s;
  WaitFor(device);
  const double whole_s = now_s() - start_s;
  decided_ = true;
  const std::string times = "the host takes " + FormatFixed(1e3 * queue_s, 2) +
                            " ms to queue a micro-batch that is done after " + FormatFixed(1e3 * whole_s, 2) +
                            " ms";
  if (queue_s < kBoundShare * whole_s) {
    counts_.off = times;
    LogInfo("compile off, because " + times);
  } else {
    LogInfo("compile graph: " + times);
  }
  return sum;
}

bool PassGraphs::Record(const ModelInput& filled, const Shape& shape, const Passes& passes, Entry* entry) {
  const ProfileScope scope("record_graph", ProfilePart::kOther);
  const auto start = std::chrono::steady_clock::now();
  GradientBuffer& gradients = body_->parameters().gradient_buffer();
  try {
    HostTimeline pieces(&SteadyNanoseconds, /*most_events=*/0);
    entry->graph = recorder_->Record([&] {
      const ProfiledThread of_the_graph(&pieces);
      entry->losses = Queue(filled, shape, passes).on_device;
    });
    entry->gemm_operations = GemmOperations(pieces);
    entry->unwritten_after = gradients.Unwritten();
    ++counts_.recorded;
  } catch (const std::exception& exception) {
    entry->graph.reset();
    entry->losses.reset();
    gradients.set_unwritten(shape.unwritten);
    if (options_.use == GraphUse::kRequired) {
      if (IsLackOfMemory(exception)) throw;  // for who makes micro-batches smaller
      RefuseUnrecorded("the passes of a micro-batch", exception);
    }
    Clear();
    counts_.off = WordsOf(exception);
    LogWarning("--compile auto: a micro-batch's passes cannot be recorded: " + counts_.off +
               "; going on kernel by kernel");
  }
  gradients.set_unwritten(shape.unwritten);
  counts_.record_s += SecondsSince(start);
  return entry->graph != nullptr;
}

std::optional<LossSum> PassGraphs::Run(const ModelInput& input, const GradientScale& scale,
                                       const Passes& passes) {
  const int64_t num_labels = CountLabels(input.labels_n);
  const std::optional<Shape> found =
      num_labels > 0 && Serves(input) ? ShapeOf(input, num_labels) : std::nullopt;
  if (!found) {
    ++counts_.queued;
    return std::nullopt;
  }
  const Shape& shape = *found;
  const ModelInput filled = Fill(input, shape);
  body_->Check(filled);
  std::unique_ptr<Entry>& entry = entries_[shape];
  if (!entry) entry = std::make_unique<Entry>();
  Stage(filled, shape, scale);
  if (recorded_memory_bytes_ != memory_bytes()) {
    Clear();
    recorded_memory_bytes_ = memory_bytes();
  }
  const bool again = entry->micro_batches++ > 0;
  const bool in_use = counts_.off.empty() && decided_;
  const bool repeats = in_use && (entry->graph != nullptr ||
                                  (again && HasRoom() && Record(filled, shape, passes, entry.get())));
  if (!repeats) {
    ++counts_.queued;
    return again && !decided_ ? QueueTimed(filled, shape, passes) : Queue(filled, shape, passes);
  }
  const ProfileScope scope("launch_graph", ProfilePart::kOther);
  entry->graph->Launch();
  // Its GEMMs are done by the device alone: what they do counts, in no time of the host.
  { const ProfileScope gemms("matmul of graphs", ProfilePart::kGemm, entry->gemm_operations); }
  ++counts_.launched;
  body_->parameters().gradient_buffer().set_unwritten(entry->unwritten_after);
  LossSum sum;
  sum.num_labels = num_labels;
  sum.on_device = entry->losses;
  return sum;
}

}  // namespace trainwright

/// Forward and backward passes of a model that are repeated as graphs of the device
/// (lib/device/device_graph.h).
///
/// A micro-batch is brought to one of few shapes, and the second of a shape is recorded: from then on its
/// kernels are one launch. What fills it up changes nothing: tokens of a span of its own and without a label,
/// empty spans, and rows of the head without a label. Tokens are filled up to eighths of the largest
/// micro-batch, the head's rows to eighths of the tokens, and the number and the greatest length of spans to
/// powers of two. A shape's first micro-batch runs with the same filling, so that results do not depend on
/// what is recorded when: they are those of the same kernels kernel by kernel, bit for bit.
///
/// Where the passes' memory has grown since, all is recorded again. Not thread-safe.
/// Unverified: no GPU has run it yet.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/device/device_graph.h"
#include "lib/model/labelled_input.h"
#include "lib/nn/buffer.h"
#include "lib/nn/loss/linear_cross_entropy.h"

namespace trainwright {

enum class GraphUse {
  kRequired,  ///< a pass that cannot be recorded ends the run
  /// The second micro-batch of a shape is timed, waiting for the device: where the host takes less than
  /// kBoundShare of its time to queue the kernels, or they cannot be recorded, nothing ever is.
  kWhereLaunchesBound,
};

struct PassGraphsOptions {
  int64_t most_tokens = 1;  ///< of a micro-batch; larger ones are rounded up by the same amount
  size_t most_graphs = 64;  ///< shapes beyond it run kernel by kernel
  GraphUse use = GraphUse::kRequired;
  std::function<double()> clock_s = {};  ///< by which a micro-batch is timed; null: the process's
};

/// Since the beginning.
struct PassGraphCounts {
  int64_t recorded = 0;  ///< graphs
  int64_t launched = 0;  ///< micro-batches as one launch
  int64_t queued = 0;    ///< others, kernel by kernel
  double record_s = 0;   ///< the host's time for recording
  std::string off;       ///< why nothing is recorded any more; empty: it is
};

class PassGraphs {
 public:
  /// The passes, of an input that is on the device already (BodyInput::staged).
  using Passes =
      std::function<LossSum(const ModelInput& input, const HeadLabels& labels, const GradientScale& scale)>;

  /// \param body outlives it; its gradients are whole (GradientBuffer::is_whole)
  /// \param head_bytes what the head's loss holds now: as of Body::pass_memory_bytes
  PassGraphs(Body* body, std::unique_ptr<GraphRecorder> recorder, std::function<int64_t()> head_bytes,
             const PassGraphsOptions& options);
  ~PassGraphs();

  /// Takes the passes of a micro-batch, repeated or not.
  /// \returns nothing, and does nothing, where no shape serves the micro-batch: weights of labels, dropout, a
  ///     state that is carried on, spans that the host reads, gradients that are exchanged as they are done
  /// \throws Error{kBadInput} as Body::Forward; Error{kDevice} where recording fails and is required
  std::optional<LossSum> Run(const ModelInput& input, const GradientScale& scale, const Passes& passes);
  /// Forgets what is recorded: something that passes depend on has changed.
  void Clear();
  const PassGraphCounts& counts() const { return counts_; }

 private:
  /// What the kernels of a pass depend on.
  struct Shape {
    int64_t tokens = 0, head_rows = 0, spans = 0, longest = 0;
    std::vector<int32_t> starts;  ///< where they depend on each
    bool causal = true;
    std::vector<bool> unwritten;  ///< see GradientBuffer::Unwritten
    auto operator<=>(const Shape&) const = default;
  };
  struct Entry;

  bool Serves(const ModelInput& input) const;
  /// Nothing where spans that fill up make the passes depend on the host.
  std::optional<Shape> ShapeOf(const ModelInput& input, int64_t num_labels) const;
  /// The micro-batch filled up to the shape.
  ModelInput Fill(const ModelInput& input, const Shape& shape) const;
  /// Puts a filled micro-batch where the shape's passes read it.
  void Stage(const ModelInput& filled, const Shape& shape, const GradientScale& scale);
  LossSum Queue(const ModelInput& filled, const Shape& shape, const Passes& passes) const;
  /// Takes the passes of a shape's second micro-batch, and decides whether launches bound them.
  LossSum QueueTimed(const ModelInput& filled, const Shape& shape, const Passes& passes);
  /// \returns false where it cannot be
  bool Record(const ModelInput& filled, const Shape& shape, const Passes& passes, Entry* entry);
  /// int32: tokens, positions, labels and starts of spans.
  static int64_t CountNumbers(const Shape& shape);
  at::Tensor Numbers(const Shape& shape) const;
  bool HasRoom() const;
  int64_t memory_bytes() const { return body_->pass_memory_bytes() + head_bytes_() + numbers_.bytes(); }

  Body* body_;
  std::unique_ptr<GraphRecorder> recorder_;
  std::function<int64_t()> head_bytes_;
  PassGraphsOptions options_;
  std::map<Shape, std::unique_ptr<Entry>> entries_;
  int64_t recorded_memory_bytes_ = 0;  ///< of the passes when the first of them was recorded
  mutable Buffer numbers_;             ///< of the micro-batch under way, whatever its shape
  at::Tensor scale_;                   ///< fp64 [1]
  bool decided_;                       ///< whether graphs are used
  PassGraphCounts counts_;
};

}  // namespace trainwright

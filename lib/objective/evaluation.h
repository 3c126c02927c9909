/// How well a model does what it is trained for, on data that it does not train on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/world.h"
#include "lib/loading/document_split.h"

namespace trainwright {

struct EvaluationOptions {
  int64_t sequence_tokens = 512;  ///< as in training
  int64_t batch_tokens = 512;     ///< of a micro-batch, about
  uint64_t max_tokens = 0;        ///< about as many are read, of joined sets by VisitShares; 0: the whole set
  std::optional<DocumentSplit> split;  ///< only what it holds out of the set
  bool skip_bad = false;               ///< leave out frames that cannot be read
  /// All ranks of which evaluate together, the same model on the same set, and get the same results. An
  /// objective may divide the work over them (PerplexityMeter does), or have each do all of it.
  World* world = Solo();
};

/// A number besides the loss.
struct EvaluationMeasure {
  std::string name;  ///< of records and, as NAME/eval, in TensorBoard
  /// Nothing where it is not known: null in records, and reported nowhere else.
  std::optional<double> value;
  std::string text;  ///< for people: "perplexity 12.34"
};

struct Evaluation {
  double loss_nats = 0;  ///< what runs are compared and stopped by
  std::vector<EvaluationMeasure> measures;
  uint64_t tokens = 0, documents = 0;  ///< that were read
  uint64_t frames_skipped = 0;
};

}  // namespace trainwright

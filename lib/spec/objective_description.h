/// What can be said of an objective without making one: which records it takes and in which words, which
/// options of a plan it takes and which only it has. Torch-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/formats/record_kind.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/memory_lever.h"
#include "lib/spec/own_options.h"

namespace trainwright {

class FamilyDescription;

/// Records that an objective takes.
struct TakenRecords {
  RecordKind kind = RecordKind::kLm;
  std::string why = {};      ///< it was chosen for data that holds them; empty: by their name alone
  std::string warning = {};  ///< of data that holds them; empty: none
  bool chosen = true;        ///< whether --objective auto may choose it for data that holds them
};

/// Records that it does not take, where there is more to say than that.
struct RefusedRecords {
  RecordKind kind = RecordKind::kLm;
  std::string problem, hint;
};

/// How long the samples are of an objective that does not go by --seq.
struct SampleTokens {
  int64_t longest_span = 1;  ///< at most
  int64_t sample = 1;        ///< of all spans of a sample, about
};

/// What of a plan says how a step is divided.
struct StepSizes {
  int64_t batch = 1;         ///< samples of a micro-batch
  int64_t step_samples = 1;  ///< of all ranks
  int64_t ranks = 1;
  int64_t exact_world = 0;  ///< leaves of a step, or 0
  bool auto_oom = false;    ///< whether micro-batches may be halved
};

struct ObjectiveDescription {
  std::string name;  ///< of plans, flags and files
  std::vector<TakenRecords> records;
  std::vector<RefusedRecords> refused = {};
  /// Which options of a plan that not all objectives take, by their names in a state; asking for others is
  /// refused.
  std::set<std::string> takes = {};
  /// What it does as if such an option said so: asking for that is no error.
  std::map<std::string, std::string> settled = {};
  /// The options that only it has; one that comes later has the default that means what was done before it
  /// was there.
  std::vector<OwnOption> own = {};
  /// What of them data of such kinds of records decides where nobody says it; empty: nothing.
  std::function<OwnOptions(const std::set<RecordKind>&)> own_of_data = {};
  /// What of them the model decides where nobody says it; empty: nothing.
  std::function<OwnOptions(const FamilyDescription&)> own_of_model = {};
  /// What is wrong with them for models of a family and of this hidden size; empty: nothing.
  std::function<std::string(const OwnOptions&, const FamilyDescription&, int64_t)> problem_of_model = {};
  /// What of them follows from the others and the step that a run begins with; empty: nothing.
  std::function<OwnOptions(const OwnOptions&, const StepSizes&)> own_of_step = {};
  /// How long samples are follows from these, and not from --seq; empty: from that.
  std::function<SampleTokens(const OwnOptions&)> sample_tokens = {};
  std::string sample_flags = {};  ///< that say it instead of --seq: "--a and --b"
  /// What is wrong with them together, or with them in a step of these sizes; empty: nothing.
  std::function<std::string(const OwnOptions&, const StepSizes&)> problem = {};
  /// What the model has beside its layers, where it is trained to embed texts; empty: nothing.
  std::function<EmbeddingTuning(const OwnOptions&)> embedding = {};
  /// What of them makes a run take less memory and is not taken; empty: nothing. Where kTextLengths is among
  /// them, --seq has no say.
  std::function<std::vector<MemoryLever>(const OwnOptions&)> memory_levers = {};
  /// Whether sets of the kinds that it takes can be mixed in a run.
  bool mixes = false;
  /// Whether no step of it holds samples of two epochs, as under --drop-last.
  bool drops_last = false;
  /// Whether `evaluate` reports how well the tokens of its records are predicted; else what its Evaluate
  /// measures.
  bool measures_tokens = false;

  /// Whether samples are as long as --seq says.
  bool goes_by_seq() const { return !sample_tokens; }
  /// Null: it does not take them.
  const TakenRecords* FindRecords(RecordKind kind) const {
    for (const TakenRecords& taken : records) {
      if (taken.kind == kind) return &taken;
    }
    return nullptr;
  }
  /// Whether --objective auto may choose it for data that holds all of these kinds, all of which it takes.
  bool IsChosenFor(const std::set<RecordKind>& kinds) const {
    return std::any_of(kinds.begin(), kinds.end(), [this](RecordKind kind) {
      const TakenRecords* taken = FindRecords(kind);
      return taken != nullptr && taken->chosen;
    });
  }
  /// Whether it trains on data that holds all of these kinds.
  bool TakesAll(const std::set<RecordKind>& kinds) const {
    if (kinds.size() > 1 && !mixes) return false;
    return std::all_of(kinds.begin(), kinds.end(),
                       [this](RecordKind kind) { return FindRecords(kind) != nullptr; });
  }
};

}  // namespace trainwright

/// What can be said of an objective without making one: which records it takes and in which words, which
/// options of a plan it takes and which only it has. Torch-free.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/formats/record_kind.h"
#include "lib/spec/own_options.h"

namespace trainwright {

/// Records that an objective takes.
struct TakenRecords {
  RecordKind kind = RecordKind::kLm;
  std::string why = {};      ///< it was chosen for data that holds them; empty: by their name alone
  std::string warning = {};  ///< of data that holds them; empty: none
};

/// Records that it does not take, where there is more to say than that.
struct RefusedRecords {
  RecordKind kind = RecordKind::kLm;
  std::string problem, hint;
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
  /// The defaults of the options that only it has; an option that comes later has the default that means what
  /// was done before it was there.
  OwnOptions own = {};
  /// Whether `evaluate` tells how well the tokens of its records are predicted; else what its Evaluate
  /// measures.
  bool measures_tokens = false;

  /// Null: it does not take them.
  const TakenRecords* FindRecords(RecordKind kind) const {
    for (const TakenRecords& taken : records) {
      if (taken.kind == kind) return &taken;
    }
    return nullptr;
  }
};

}  // namespace trainwright

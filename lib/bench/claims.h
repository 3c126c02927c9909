/// What the guides of known training systems claim for their levers, beside what the same lever gives here.
///
/// Nothing is taken on trust: a claim is met only when the whole interval of its measurement is as good as
/// claimed, of the quantity that it is about: loading by the time that a step waits for data, a forward pass
/// by its own time, memory by its peak, the whole by the time of a run. An interval that holds what is
/// claimed decides nothing. A lever that the tools lack is reported as absent by its flag and counts as not
/// met; what needs a GPU that is not here is not testable, whatever the tools have; of a quantity that no run
/// reports, or that is 0, nothing can be said.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/bench/claims_workplace.h"
#include "lib/report/progress.h"

namespace trainwright {

/// One claim. Both commands are `train` with these flags added.
struct Claim {
  /// The numbered line of tests/promises/systems.tsv that it is of, as "D13": the letter is the system's.
  const char* line;
  const char* text;  ///< as the guide puts it, shortened
  /// A field of train's records, as ReadMetric takes it or "share:NAME" (time_shares.h), "max_memory_bytes"
  /// of the run, or "run_tokens_per_s": by the time of the run.
  const char* metric;
  /// after / before that is claimed, at least; at most where less is better: times, memory. Of an absolute
  /// claim the value of `after` alone.
  double ratio;
  const char* before;
  const char* after;
  bool needs_gpu;
  ClaimData data = ClaimData::kText;
  bool absolute = false;  ///< there is no `before` ("")
  bool cost = false;      ///< it says what a lever costs at most: its ratio lies on the other side of 1
  /// Flags of the run that the guide describes, before those of `before` and `after`: its model ("{NAME}" of
  /// GuideModels or a shape of train's), batch and length. "": the guide names none.
  const char* guide = "";
};

/// Every claim of a system, in the order of its guide; empty for an unknown one.
std::vector<Claim> ClaimsOf(const std::string& system);

/// The flags (--name) in a claim's commands that a tool's help text does not list.
std::vector<std::string> AbsentFlags(const Claim& claim, const std::string& help);

/// Why a claim is not measured.
struct Unmeasured {
  std::string verdict;  ///< empty: it is measured
  std::string note;
};

/// As far as train's help text and the machine say.
Unmeasured WhyUnmeasured(const Claim& claim, const std::string& help, bool gpu);

struct ClaimsResult {
  std::string text;  ///< the tables: of the claims, of the runs that were measured, of contradictions
  nlohmann::ordered_json json;  ///< the same; "variants" has one row of four figures (RunFigures) for each
  int exit_status = 0;          ///< StatusOfClaims
  /// The Error of a signal that ended it before all was measured: text and JSON hold what was.
  std::exception_ptr stopped = nullptr;
};

/// "met" where the whole of an interval is as good as what is claimed, "not met" where none of it is, else
/// "undecided".
std::string VerdictOfClaim(bool higher_is_better, double low, double high, double claimed);

/// 0 when every claim is met, 1 when one is not, and 7 when that cannot be said of one.
int StatusOfClaims(const std::vector<std::string>& verdicts);

/// Whether a system's guide names the sizes of what it claims.
bool NamesSizes(const std::string& system);

/// The metric that decides a claim: peak memory is the device's where there is a GPU.
std::string DecisiveMetric(const Claim& claim, bool gpu);

/// What of a system's claims is measured, and how.
struct ClaimsRequest {
  std::string system;
  std::string
      only;  ///< what the text of a claim must hold to be measured; "": all, and what else the guide has
  ClaimScale scale = ClaimScale::kSmall;  ///< kGuide: the claims with sizes of their own at these
  double budget_s = 20;  ///< of measuring for each pair of commands, but three rounds are run
};

/// Measures with the `train`, `pretokenize` and `pack` that lie beside this program, or else in PATH; some
/// seconds to half a minute a claim, and minutes at the sizes of a guide without a GPU.
/// \throws Error{kBadInput} when these do not run; Error{kUsage} for kGuide of a system that names no sizes,
///     and for `only` that no claim holds
ClaimsResult CheckClaims(const ClaimsRequest& request, ProgressMode progress);

}  // namespace trainwright

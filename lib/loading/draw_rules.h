/// What a stream of samples does besides giving every one of them once an epoch: it leaves samples of large
/// sets out, and draws some again so that an epoch is as long as that of another stream. The definition:
/// man/trainwright-sample-order.5.
///
/// All of it follows from the seed, the sets, the epoch and numbers of samples, so nothing is carried from
/// one epoch to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/loading/sample_index.h"

namespace trainwright {

/// The same sets in the same order as in the index: SampleOrderOptions::sets.
struct DrawRules {
  /// How the rest of an epoch is drawn.
  enum class Extra : uint8_t {
    kUniform,  ///< each from all samples, whatever was drawn before
    kUnique    ///< none a second time before all have come once
  };
  std::shared_ptr<const SampleIndex> index = {};  ///< null: no rules
  std::vector<uint64_t> most_samples = {};        ///< of each set, 0: all; empty: all of all
  uint64_t epoch_samples = 0;                     ///< of an epoch, where that is more than there are
  Extra extra = Extra::kUniform;
  uint64_t window_draws = 4096;  ///< drawn samples of a window; part of the order's definition
  // Where several streams give a run's steps together.
  uint64_t step_samples = 0;       ///< of a step of all of them, where the order depends on it; else 0
  uint64_t run_epoch_samples = 0;  ///< of an epoch of all of them, for who counts; 0: this one's
  uint64_t run_epoch_tokens = 0;   ///< likewise, about
};

/// The rules applied. Immutable and thread-safe.
class SampleDraws {
 public:
  /// \param rules with an index
  /// \throws Error{kUsage} where windows hold no sample
  SampleDraws(const DrawRules& rules, uint64_t seed);
  const DrawRules& rules() const { return rules_; }
  /// What is kept of a set.
  uint64_t kept_of(size_t set) const { return kept_.at(set); }
  /// About how many tokens all that is kept has: of sets with a cap their share.
  double kept_tokens() const;
  /// Samples that an epoch gives once each: those that are kept.
  uint64_t own_samples() const { return own_samples_; }
  /// Samples that an epoch draws again, after them.
  uint64_t extra_samples() const { return extra_samples_; }
  /// Whether a sample is one of those that are kept.
  /// \param number among the samples of its chunk
  bool Keeps(uint64_t chunk, uint32_t number) const;

  struct Draw {
    size_t set = 0;  ///< in SampleOrderOptions::sets
    SampleIndex::Place place;
    bool operator==(const Draw&) const = default;
  };
  /// \param number < extra_samples()
  Draw ExtraAt(uint64_t epoch, uint64_t number) const;
  /// For the order's identity: lines, of what is in force.
  std::string Identity() const;

 private:
  uint64_t CapKeyOf(size_t set) const;
  bool caps(size_t set) const { return kept_[set] < rules_.index->samples_of(set); }
  Draw KeptAt(uint64_t number) const;

  DrawRules rules_;
  uint64_t seed_;
  std::vector<uint64_t> kept_;
  uint64_t own_samples_ = 0, extra_samples_ = 0;
};

/// A number below `bound` for random bits: bits * bound / 2^64, rounded down.
uint64_t NumberBelow(uint64_t bound, uint64_t bits);

}  // namespace trainwright

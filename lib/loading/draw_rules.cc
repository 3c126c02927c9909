#include "lib/loading/draw_rules.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/rng.h"

namespace trainwright {

uint64_t NumberBelow(uint64_t bound, uint64_t bits) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * bound >> 64);
}

SampleDraws::SampleDraws(const DrawRules& rules, uint64_t seed) : rules_(rules), seed_(seed) {
  TRAINWRIGHT_CHECK(rules_.index != nullptr);
  TRAINWRIGHT_CHECK(rules_.most_samples.empty() || rules_.most_samples.size() == rules_.index->sets());
  if (rules_.window_draws < 1) throw Error(ErrorCode::kUsage, "window", "must be at least 1 sample");
  for (size_t set = 0; set < rules_.index->sets(); ++set) {
    const uint64_t samples = rules_.index->samples_of(set);
    const uint64_t most = rules_.most_samples.empty() ? 0 : rules_.most_samples[set];
    kept_.push_back(most == 0 ? samples : std::min(most, samples));
    own_samples_ += kept_.back();
  }
  if (own_samples_ > 0 && rules_.epoch_samples > own_samples_) {
    extra_samples_ = rules_.epoch_samples - own_samples_;
  }
}

double SampleDraws::kept_tokens() const {
  double tokens = 0;
  for (size_t set = 0; set < kept_.size(); ++set) {
    if (kept_[set] == 0) continue;
    const double share = static_cast<double>(kept_[set]) / static_cast<double>(rules_.index->samples_of(set));
    tokens += share * static_cast<double>(rules_.index->tokens_of(set));
  }
  return tokens;
}

uint64_t SampleDraws::CapKeyOf(size_t set) const {
  return Rng(seed_, "sample cap").Bits(rules_.index->number_of(set));
}

bool SampleDraws::Keeps(uint64_t chunk, uint32_t number) const {
  const SampleIndex& index = *rules_.index;
  const size_t set = index.SetOf(chunk);
  if (!caps(set)) return true;
  const uint64_t sample = index.FirstOf(chunk) + number;
  // Of a chunk that could not be read when samples were counted, none has a number.
  if (sample >= index.samples_of(set)) return false;
  return KeyedPermutation(index.samples_of(set), CapKeyOf(set))(sample) < kept_[set];
}

SampleDraws::Draw SampleDraws::KeptAt(uint64_t number) const {
  Draw draw;
  while (number >= kept_[draw.set]) number -= kept_[draw.set++];
  const uint64_t sample =
      caps(draw.set)
          ? KeyedPermutation(rules_.index->samples_of(draw.set), CapKeyOf(draw.set)).InverseOf(number)
          : number;
  draw.place = rules_.index->At(draw.set, sample);
  return draw;
}

SampleDraws::Draw SampleDraws::ExtraAt(uint64_t epoch, uint64_t number) const {
  TRAINWRIGHT_CHECK(number < extra_samples_);
  if (rules_.extra == DrawRules::Extra::kUniform) {
    return KeptAt(NumberBelow(own_samples_, Rng(seed_, "extra draws", epoch).Bits(number)));
  }
  const uint64_t drawn = epoch * extra_samples_ + number;
  const KeyedPermutation pass(own_samples_, Rng(seed_, "extra passes", drawn / own_samples_).key());
  return KeptAt(pass(drawn % own_samples_));
}

std::string SampleDraws::Identity() const {
  std::string identity;
  // What is counted may be another number where a chunk cannot be read any more, or can be again.
  const bool numbers_matter = extra_samples_ > 0 || rules_.step_samples > 0;
  for (size_t set = 0; set < kept_.size(); ++set) {
    if (!numbers_matter && !caps(set)) continue;
    identity += "takes " + std::to_string(kept_[set]) + " of " +
                std::to_string(rules_.index->samples_of(set)) + " samples of set " +
                std::to_string(rules_.index->number_of(set)) + "\n";
  }
  if (extra_samples_ > 0) {
    identity += "epoch of " + std::to_string(rules_.epoch_samples) + ", extra " +
                (rules_.extra == DrawRules::Extra::kUniform ? "uniform" : "unique") + ", " +
                std::to_string(rules_.window_draws) + " a window\n";
  }
  if (rules_.step_samples > 0) identity += "step samples " + std::to_string(rules_.step_samples) + "\n";
  return identity;
}

}  // namespace trainwright

#include "lib/loading/sample_loaders.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

template <typename Named>
std::string NamesOf(const Named& all) {
  std::string names;
  for (const auto& [name, one] : all) names += (names.empty() ? "\"" : ", \"") + name + "\"";
  return names;
}

}  // namespace

SampleLoaders LoadersOf(const OpenedLoaders& opened) {
  SampleLoaders loaders;
  for (const auto& [name, loader] : opened) loaders[name] = loader.get();
  return loaders;
}

LoaderStates StatesOf(const SampleLoaders& loaders) {
  LoaderStates states;
  for (const auto& [name, loader] : loaders) states[name] = loader->state();
  return states;
}

std::string MismatchOf(const LoaderStates& states, const SampleLoaders& loaders) {
  const std::string stated = NamesOf(states), own = NamesOf(loaders);
  if (stated != own) return "states where the run's loaders " + stated + " are, and this one has " + own;
  for (const auto& [name, loader] : loaders) {
    if (states.at(name).order_fingerprint == loader->fingerprint()) continue;
    return "states where the loader \"" + name +
           "\" is in other data than this run's, or in another order of it";
  }
  return "";
}

void RequireStates(const LoaderStates& states, const std::string& origin, const SampleLoaders& loaders) {
  const std::string mismatch = MismatchOf(states, loaders);
  if (mismatch.empty()) return;
  throw Error(ErrorCode::kBadInput, origin, mismatch, "",
              "continue with the program that the run was begun with, or read the data from its beginning by "
              "--allow-data-change");
}

void RestoreLoaders(const LoaderStates& states, const std::string& origin, const SampleLoaders& loaders) {
  RequireStates(states, origin, loaders);
  for (const auto& [name, loader] : loaders) {
    try {
      loader->Restore(states.at(name));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
      throw Error(error.code(), origin, "loader \"" + name + "\": " + error.object() + ": " + error.problem(),
                  error.place(), error.hint());
    }
  }
}

double WaitOf(const SampleLoaders& loaders) {
  double wait_s = 0;
  for (const auto& [name, loader] : loaders) wait_s += loader->loader_counts().wait_s;
  return wait_s;
}

double EpochsOf(const SampleLoaders& loaders) {
  const SampleLoader& main = *loaders.at(kMainLoader);
  const uint64_t epoch_samples = main.rules() == nullptr ? 0 : main.rules()->rules().run_epoch_samples;
  if (epoch_samples == 0) return main.epochs();
  uint64_t taken = 0;
  for (const auto& [name, loader] : loaders) {
    const SampleDraws* rules = loader->rules();
    if (rules != nullptr && rules->rules().step_samples > 0) taken += loader->cursor().taken;
  }
  return static_cast<double>(taken) / static_cast<double>(epoch_samples);
}

bool EndedEpoch(const SampleLoaders& loaders, double epochs_before, int64_t step_samples, bool drop_last) {
  const double epochs = EpochsOf(loaders);
  SampleLoader& main = *loaders.at(kMainLoader);
  const bool is_whole = epochs == std::floor(epochs);
  const bool is_shared = main.rules() != nullptr && main.rules()->rules().run_epoch_samples > 0;
  // What is left of an epoch is skipped when the next step is taken, which belongs to the next epoch.
  if (drop_last && !is_whole && !is_shared) return !main.HoldsInEpoch(step_samples);
  return std::floor(epochs) > std::floor(epochs_before);
}

int64_t MostHeldBytes(const SampleLoaders& loaders) {
  int64_t bytes = 0;
  for (const auto& [name, loader] : loaders) bytes += loader->loader_counts().most_held_bytes;
  return bytes;
}

size_t SourcesOf(const SampleLoaders& loaders) {
  size_t sources = 1;
  for (const auto& [name, loader] : loaders) {
    for (const OrderedSet& set : loader->order().sets()) sources = std::max<size_t>(sources, set.number + 1);
  }
  return sources;
}

std::vector<Sample> ShareOf(std::vector<Sample> step, int64_t rank, int64_t ranks) {
  TRAINWRIGHT_CHECK(0 <= rank && rank < ranks);
  const auto samples = static_cast<int64_t>(step.size());
  const auto first = [&](int64_t of) { return std::make_move_iterator(step.begin() + of * samples / ranks); };
  return std::vector<Sample>(first(rank), first(rank + 1));
}

}  // namespace trainwright

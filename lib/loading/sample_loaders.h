/// The loaders that a run draws its steps from, together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/loading/loader_state.h"
#include "lib/loading/sample_loader.h"

namespace trainwright {

/// By name, kMainLoader among them; they are someone else's.
using SampleLoaders = std::map<std::string, SampleLoader*>;
/// The same, for whoever opened them.
using OpenedLoaders = std::map<std::string, std::unique_ptr<SampleLoader>>;

SampleLoaders LoadersOf(const OpenedLoaders& opened);
LoaderStates StatesOf(const SampleLoaders& loaders);
/// Why these loaders cannot read on where others stopped: those had other names, or read other data or in
/// another order; empty: they can.
std::string MismatchOf(const LoaderStates& states, const SampleLoaders& loaders);
/// \param origin of the states, for messages
/// \throws Error{kBadInput} where there is a mismatch
void RequireStates(const LoaderStates& states, const std::string& origin, const SampleLoaders& loaders);
/// Takes over where others stopped, before the first sample is read.
/// \throws as RequireStates and SampleLoader::Restore, naming the loader
void RestoreLoaders(const LoaderStates& states, const std::string& origin, const SampleLoaders& loaders);
/// The time that all of them have been waited for.
double WaitOf(const SampleLoaders& loaders);
/// How far a run is, in epochs: as far as kMainLoader, unless several streams give its epochs together
/// (DrawRules::run_epoch_samples).
double EpochsOf(const SampleLoaders& loaders);
/// Whether the step that was taken last ended an epoch of the run: with `drop_last`, whether there is no
/// other whole one of `step_samples` in it.
/// \param epochs_before EpochsOf before that step
bool EndedEpoch(const SampleLoaders& loaders, double epochs_before, int64_t step_samples, bool drop_last);
/// The sum of the most that each has held.
int64_t MostHeldBytes(const SampleLoaders& loaders);
/// How many sets the data is mixed of, as far as they read it: each Sample::set() lies below it.
size_t SourcesOf(const SampleLoaders& loaders);

/// The share of rank `rank` of `ranks` in a step: its samples from number rank * samples / ranks on, up to
/// the next rank's first.
/// \param step in its order
std::vector<Sample> ShareOf(std::vector<Sample> step, int64_t rank, int64_t ranks);

}  // namespace trainwright

#include "lib/run/run_traps.h"

#include <algorithm>
#include <cmath>

#include "lib/base/units.h"

namespace trainwright {
namespace {

/// Repeating data up to 4 times is about as good as new data, and after some 16 times gains little:
/// \source Muennighoff et al. 2023, arXiv:2305.16264
constexpr double kUsefulPasses = 16;
constexpr double kLostShare = 0.01;  // of the tokens, before it is worth a word

/// Only of a family without a limit: of others such a run is refused.
void AddLongSamples(const RunSetup& setup, std::vector<std::string>* traps) {
  if (setup.stated_positions == 0 || setup.sequence_tokens <= setup.stated_positions) return;
  const std::string stated = std::to_string(setup.stated_positions);
  traps->push_back("samples of " + std::to_string(setup.sequence_tokens) + " tokens are longer than the " +
                   stated + " of max_position_embeddings: checkpoints go on saying that the model is for " +
                   stated + "; say more in a --model config.json");
}

/// Of chunks that are not read, and of those that are.
void AddUntrainedTokens(const RunSetup& setup, std::vector<std::string>* traps) {
  if (setup.unreadable_chunks > 0) {
    traps->push_back(std::to_string(setup.unreadable_chunks) + " of the data's " +
                     FormatNumberOf(setup.data_chunks, "chunk") +
                     " cannot be read: others take their places (--skip-bad-chunks)");
  }
  const uint64_t wanted = setup.data_tokens - std::min(setup.data_tokens, setup.held_out_tokens);
  if (setup.epoch_tokens > 0 && wanted > setup.epoch_tokens) {
    const double lost = 1 - static_cast<double>(setup.epoch_tokens) / static_cast<double>(wanted);
    if (lost >= kLostShare) {
      traps->push_back(FormatFixed(100 * lost, 1) +
                       " % of the data's tokens are in no sample: pieces of at most --seq " +
                       std::to_string(setup.sequence_tokens) + " tokens that hold no label are left out");
    }
  }
}

std::string Steps(int64_t count) {
  return std::to_string(count) + (count == 1 ? " step" : " steps");
}

}  // namespace

std::vector<std::string> FindTraps(const RunSetup& setup) {
  std::vector<std::string> traps;
  const std::string run = "the run's " + Steps(setup.total_steps);

  if (setup.warmup_is_wanted && setup.warmup_steps > 0 &&
      setup.warmup_steps >= static_cast<double>(setup.total_steps)) {
    const double share = static_cast<double>(setup.total_steps) / setup.warmup_steps;
    traps.push_back("the warm-up of " + FormatFixed(setup.warmup_steps, 0) + " steps does not end before " +
                    run + ": the learning rate rises all the time, to " + FormatFixed(100 * share, 0) +
                    " % of its peak, and never falls; lower --warmup, or say it as --warmup-ratio");
  }
  if (setup.log_every > setup.total_steps) {
    traps.push_back("--log-every " + std::to_string(setup.log_every) + " is more than " + run +
                    ": only the last step gets a record");
  }
  if (setup.eval_every && !setup.has_eval_data) {
    traps.push_back("an evaluation every " + Steps(*setup.eval_every) +
                    " is asked for, but there is no --eval-data: nothing is evaluated");
  } else if (setup.eval_every && *setup.eval_every > setup.total_steps) {
    traps.push_back("--eval-every " + std::to_string(*setup.eval_every) + " is more than " + run +
                    ": evaluated at its start and end only");
  }
  if (setup.save_every.steps > setup.total_steps) {
    traps.push_back("--save-every " + std::to_string(setup.save_every.steps) + " is more than " + run +
                    ": saved at its end only, and a process that is killed before loses everything");
  }
  if (setup.save_every.epochs && setup.passes > 0 && setup.passes < 1) {
    traps.push_back("--save-every epoch: " + run +
                    " end before one pass over the data: saved at the end only");
  }
  if (setup.save_model_only) {
    traps.push_back(
        "--save-model-only: no run resumes from these checkpoints, also after a signal or a crash" +
        std::string(setup.resume ? "; the one that this process resumed from is the last" : ""));
  }
  if (setup.preset_batch > 0 && setup.preset_accum > 0) {
    const int64_t wanted = setup.preset_batch * setup.preset_accum;
    const int64_t at_once = setup.batch * setup.ranks, samples = at_once * setup.accum;
    if (samples != wanted) {
      traps.push_back(
          "preset " + setup.preset + " has " + std::to_string(wanted) + " samples a step (" +
          std::to_string(setup.preset_batch) + " x " + std::to_string(setup.preset_accum) + "), this run " +
          std::to_string(samples) + " (" + std::to_string(setup.batch) + " x " + std::to_string(setup.accum) +
          (setup.ranks > 1 ? " on " + std::to_string(setup.ranks) + " ranks" : "") +
          "): its learning rate was chosen for the former" +
          (wanted % at_once == 0 ? "; --accum " + std::to_string(wanted / at_once) + " keeps it" : ""));
    }
  }
  AddUntrainedTokens(setup, &traps);
  AddLongSamples(setup, &traps);
  if (setup.fp16_on_cpu) {
    traps.push_back(
        "fp16 on a CPU is there for parity and slower than fp32: --mixed-precision auto takes what this "
        "device is fast at");
  }
  if (setup.emulates_bf16) {
    traps.push_back(
        "bf16 on a device that computes it in fp32: GEMMs run in fp32 on rounded values, no faster "
        "and in no less memory; --mixed-precision auto takes what this device is fast at");
  }
  if (setup.passes > kUsefulPasses) {
    traps.push_back(
        "the run goes over its data " + FormatFixed(setup.passes, 1) + " times" +
        (setup.epoch_samples > 0 ? " (" + std::to_string(setup.epoch_samples) + " samples)" : "") +
        ": after some " + FormatFixed(kUsefulPasses, 0) +
        " it learns them by heart (arXiv:2305.16264); watch an evaluation, or add data");
  }
  return traps;
}

}  // namespace trainwright

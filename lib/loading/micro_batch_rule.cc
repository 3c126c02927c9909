#include "lib/loading/micro_batch_rule.h"

#include <algorithm>
#include <string>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// How many of the samples, from the first on, are the next micro-batch.
size_t SamplesOfNext(std::span<const Sample> samples, const MicroBatchRule& rule) {
  if (rule.max_tokens == 0) return std::min(static_cast<size_t>(rule.samples), samples.size());
  size_t taken = 0;
  for (int64_t tokens = 0; taken < samples.size(); ++taken) {
    tokens += samples[taken].tokens();
    if (tokens > rule.max_tokens) break;
  }
  if (taken == 0) RequireRoom(rule, samples.front().tokens());
  return taken;
}

}  // namespace

void RequireRoom(const MicroBatchRule& rule, int64_t sample_tokens) {
  if (rule.max_tokens == 0 || sample_tokens <= rule.max_tokens) return;
  throw Error(ErrorCode::kBadInput, "--max-tokens-per-batch " + std::to_string(rule.max_tokens),
              "has no room for a sample of " + std::to_string(sample_tokens) + " tokens", "",
              "raise it to " + std::to_string(sample_tokens) + ", or shorten samples with --seq " +
                  std::to_string(rule.max_tokens));
}

std::vector<std::span<const Sample>> DivideSamples(std::span<const Sample> samples,
                                                   const MicroBatchRule& rule) {
  std::vector<std::span<const Sample>> micro_batches;
  while (!samples.empty()) {
    const size_t taken = SamplesOfNext(samples, rule);
    micro_batches.push_back(samples.first(taken));
    samples = samples.subspan(taken);
  }
  return micro_batches;
}

}  // namespace trainwright

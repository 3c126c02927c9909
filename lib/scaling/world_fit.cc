#include "lib/scaling/world_fit.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/units.h"

namespace trainwright {
namespace {

/// More ranks than any run has.
constexpr int64_t kMostRanks = int64_t{1} << 20;

std::string Bytes(int64_t size_bytes) {
  return FormatBytes(static_cast<uint64_t>(size_bytes));
}

/// A plan with its passes.
struct Candidate {
  RankPlan plan;
  PassesChoice passes;
};

class Search {
 public:
  explicit Search(const FitRequest& request) : request_(request) {}

  int64_t Needs(const Candidate& candidate) {
    const RankMemory memory =
        MemoryOfRank(Alone(candidate.passes), candidate.plan, candidate.passes, request_.vectors_of);
    return request_.counts_host ? memory.total() : memory.of_model();
  }
  bool Fits(const Candidate& candidate) { return Needs(candidate) <= request_.memory_bytes; }
  /// What the run takes in one process, told once for each choice.
  const MemoryParts& Alone(const PassesChoice& passes) {
    const auto key = std::tuple(passes.batch, passes.sequence_tokens, passes.checkpointing, passes.adapters);
    const auto found = told_.find(key);
    return found != told_.end() ? found->second
                                : told_.emplace(key, request_.memory_of(passes)).first->second;
  }

  /// From the least change to the greatest.
  std::vector<Candidate> OnAsManyRanks() const {
    std::vector<Candidate> candidates;
    const auto add_each_sharding = [&](const PassesChoice& passes) {
      for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kGradients}) {
        if (sharding < request_.plan.sharding) continue;
        Candidate candidate = {request_.plan, passes};
        candidate.plan.sharding = sharding;
        if (sharding == Sharding::kGradients) candidate.plan.accumulation = ZeroAccumulation::kReduce;
        candidates.push_back(std::move(candidate));
      }
    };
    PassesChoice passes = request_.passes;
    add_each_sharding(passes);
    passes.checkpointing = ActivationCheckpointing::kFull;
    add_each_sharding(passes);
    passes.batch = 1;
    add_each_sharding(passes);
    return candidates;
  }

  /// What takes least on so many ranks.
  Candidate Smallest(int64_t ranks, int64_t sequence_tokens) const {
    Candidate smallest = OnAsManyRanks().back();
    smallest.plan.ranks = ranks;
    smallest.passes.sequence_tokens = sequence_tokens;
    return smallest;
  }

  /// The smallest power of two of ranks, at least those asked for, on which samples of that length fit; 0:
  /// none.
  int64_t RanksThatFit(int64_t sequence_tokens) {
    if (Fits(Smallest(request_.plan.ranks, sequence_tokens))) return request_.plan.ranks;
    // More ranks have less of what is divided, but more to exchange with: none of them may be enough.
    for (int64_t ranks = 1; ranks <= kMostRanks; ranks *= 2) {
      if (ranks > request_.plan.ranks && Fits(Smallest(ranks, sequence_tokens))) return ranks;
    }
    return 0;
  }

  /// The longest samples, a power of two below those asked for, that fit on any number of ranks; 0: none.
  int64_t TokensThatFit() {
    int64_t tokens = 1;
    while (tokens * 2 < request_.passes.sequence_tokens) tokens *= 2;
    while (tokens > 0 && RanksThatFit(tokens) == 0) tokens /= 2;
    return tokens;
  }

  /// By what a candidate differs from what was asked for.
  std::string ChangesOf(const Candidate& candidate) const {
    std::string changes;
    const auto add = [&](const std::string& change) { changes += (changes.empty() ? "" : " ") + change; };
    if (candidate.plan.ranks != request_.plan.ranks) add("--world " + std::to_string(candidate.plan.ranks));
    if (candidate.plan.sharding != request_.plan.sharding) {
      add("--zero " + std::to_string(static_cast<int>(candidate.plan.sharding)));
    }
    if (candidate.passes.checkpointing != request_.passes.checkpointing) add("--checkpoint-activations full");
    if (candidate.passes.batch != request_.passes.batch) {
      add("--batch " + std::to_string(candidate.passes.batch) + " --accum " +
          std::to_string(request_.plan.accum * request_.passes.batch));
    }
    if (candidate.passes.sequence_tokens != request_.passes.sequence_tokens) {
      const std::string tokens = std::to_string(candidate.passes.sequence_tokens);
      add(request_.length_flags.empty()
              ? "--seq " + tokens
              : "texts of at most " + tokens + " tokens (" + request_.length_flags + ")");
    }
    return changes.empty() ? "gradients that leave after each micro-batch" : changes;
  }

 private:
  const FitRequest& request_;
  std::map<std::tuple<int64_t, int64_t, ActivationCheckpointing, bool>, MemoryParts> told_;
};

/// Where nothing fits on as many ranks.
void LookFurther(const FitRequest& request, Search* search, Fit* fit) {
  const int64_t ranks = request.plan.ranks, tokens = request.passes.sequence_tokens;
  if (const int64_t more = search->RanksThatFit(tokens)) {
    fit->verdict = FitVerdict::kNeedsMoreRanks;
    fit->reason = "What is divided among " + std::to_string(ranks) + " ranks is still too much for each";
    fit->nearest = search->ChangesOf(search->Smallest(more, tokens));
    return;
  }
  if (const int64_t fewer = search->TokensThatFit()) {
    fit->verdict = FitVerdict::kNeedsContextParallel;
    fit->reason =
        "The passes of one sample of " + std::string(request.length_flags.empty() ? "" : "texts of up to ") +
        std::to_string(tokens) +
        " tokens do not fit beside the weights, though layers are computed again: a sample that long "
        "needs context parallelism, which train does not have (see PARALLELISM)";
    fit->nearest = search->ChangesOf(search->Smallest(search->RanksThatFit(fewer), fewer));
    return;
  }
  Candidate smallest = search->Smallest(ranks, tokens);
  const MemoryParts& alone = search->Alone(smallest.passes);
  const int64_t whole_bytes = alone.frozen + (alone.compute_copy > 0 ? alone.compute_copy : alone.parameters);
  fit->verdict = FitVerdict::kNeedsModelParallel;
  fit->reason =
      "Each rank keeps " + Bytes(whole_bytes) +
      " of weights whole, however many ranks there are; with what else it cannot do without that is "
      "more than its " +
      Bytes(request.memory_bytes) +
      ": such a size needs tensor or pipeline parallelism, which train does not have (see "
      "PARALLELISM)";
  fit->nearest = "ranks with " + Bytes(search->Needs(smallest)) + " each and " + search->ChangesOf(smallest);
  smallest.passes.adapters = true;
  smallest.plan.fp32_copies.clear();
  smallest.plan.segment_elements = {search->Alone(smallest.passes).gradients / int64_t{sizeof(float)}};
  if (request.knows_adapters && search->Fits(smallest)) {
    fit->nearest += ", or --lora 16 --quant nf4, which takes " + Bytes(search->Needs(smallest));
  }
}

}  // namespace

const char* FitVerdictName(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::kUnknown:
      return "not known";
    case FitVerdict::kFits:
      return "fits";
    case FitVerdict::kFitsOtherwise:
      return "fits otherwise";
    case FitVerdict::kNeedsMoreRanks:
      return "needs more ranks";
    case FitVerdict::kNeedsContextParallel:
      return "needs context parallelism";
    case FitVerdict::kNeedsModelParallel:
      return "needs tensor or pipeline parallelism";
  }
  return "";
}

RankMemory MemoryOfRank(const MemoryParts& alone, const RankPlan& plan, const PassesChoice& passes,
                        const VectorsOfRank& vectors_of) {
  RankMemory memory = MemoryOfRank(alone, plan);
  if (vectors_of) memory.parts.representations = vectors_of(plan.ranks, passes);
  return memory;
}

Fit FindFit(const FitRequest& request) {
  Search search(request);
  Fit fit = {.needed_bytes = search.Needs({request.plan, request.passes})};
  if (request.memory_bytes == 0) return fit;
  if (fit.needed_bytes <= request.memory_bytes) {
    fit.verdict = FitVerdict::kFits;
    return fit;
  }
  for (const Candidate& candidate : search.OnAsManyRanks()) {
    if (!search.Fits(candidate)) continue;
    fit.verdict = FitVerdict::kFitsOtherwise;
    fit.reason = "A rank of it takes " + Bytes(fit.needed_bytes) + " and has " + Bytes(request.memory_bytes);
    fit.nearest = search.ChangesOf(candidate);
    return fit;
  }
  LookFurther(request, &search, &fit);
  return fit;
}

}  // namespace trainwright

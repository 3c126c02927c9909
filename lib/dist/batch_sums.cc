#include "lib/dist/batch_sums.h"

#include <bit>
#include <string>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// Of each rank between two meetings: enough that ranks seldom wait for each other, few enough that a failure
/// is soon known to all.
constexpr int64_t kBatchesOfRound = 16;
constexpr size_t kHeadWords = 2;  // number and tokens of the batches, before what they come to

}  // namespace

BatchSums::BatchSums(World* world)
    : world_(world), rounds_(world, kHeadWords + static_cast<size_t>(kBatchesOfRound)) {}

void BatchSums::Run(const std::function<void()>& work) {
  rounds_.Run([&] {
    work();
    Meet();
  });
}

void BatchSums::Next(int64_t tokens, const std::function<double()>& compute) {
  tokens_ += tokens;
  if (batches_ % world_->size() == world_->rank()) own_.push_back(compute());
  ++batches_;
  if (batches_ - added_ == kBatchesOfRound * world_->size()) Meet();
}

void BatchSums::Meet() {
  std::vector<int64_t> words = {batches_, tokens_};
  for (const double value : std::exchange(own_, {})) words.push_back(std::bit_cast<int64_t>(value));
  words.resize(kHeadWords + static_cast<size_t>(kBatchesOfRound));
  const std::vector<std::vector<int64_t>> all = rounds_.Meet(words);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank][0] == all[0][0] && all[rank][1] == all[0][1]) continue;
    throw Error(ErrorCode::kBadInput, "the data",
                "differs between the ranks: rank " + std::to_string(rank) + " has read " +
                    std::to_string(all[rank][1]) + " tokens in " + std::to_string(all[rank][0]) +
                    " batches, rank 0 " + std::to_string(all[0][1]) + " in " + std::to_string(all[0][0]),
                "", "give all ranks the same files");
  }
  for (; added_ < batches_; ++added_) {
    const int64_t rank = added_ % world_->size();
    const int64_t place = added_ / world_->size() % kBatchesOfRound;
    sum_ += std::bit_cast<double>(all[static_cast<size_t>(rank)][kHeadWords + static_cast<size_t>(place)]);
  }
}

}  // namespace trainwright

#include "lib/dist/shared_rounds.h"

#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/dist/gather.h"
#include "lib/dist/shared_work.h"

namespace trainwright {

void SharedRounds::Run(const std::function<void()>& work) {
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    if (all_know_) throw;
    failure = std::current_exception();
  }
  if (failure) Meet(failure, std::vector<int64_t>(words_));
}

std::vector<std::vector<int64_t>> SharedRounds::Meet(const std::exception_ptr& failure,
                                                     const std::vector<int64_t>& own) {
  TRAINWRIGHT_CHECK(own.size() == words_);
  const WorkEnd own_end = EndOf(failure);
  std::vector<int64_t> words = {static_cast<int64_t>(own_end)};
  words.insert(words.end(), own.begin(), own.end());
  all_know_ = true;  // what fails from here on fails on all ranks
  std::vector<std::vector<int64_t>> all = GatherWords(world_, words);
  WorkEnd end = WorkEnd::kDone;
  size_t who = 0;  // the first rank with that end
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank][0] > static_cast<int64_t>(end)) {
      end = static_cast<WorkEnd>(all[rank][0]);
      who = rank;
    }
    all[rank].erase(all[rank].begin());
  }
  if (end != WorkEnd::kDone) {
    const std::vector<std::string> causes = GatherBytes(world_, CauseOf(failure));
    if (end > own_end) ThrowForAnother(end, "rank " + std::to_string(who), causes[who]);
    Rethrow(*world_, failure, causes[0]);
  }
  all_know_ = false;
  return all;
}

}  // namespace trainwright

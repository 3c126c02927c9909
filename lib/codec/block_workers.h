/// OrderedWorkers for blocks: with one thread the work is done where it is pushed, so that a single thread
/// does everything. With more, four blocks a thread are under way, or fewer where they are large: together
/// they have no more than kMostBytesUnderWay a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "lib/io/ordered_workers.h"

namespace trainwright::codec {

inline constexpr uint64_t kMostBytesUnderWay = uint64_t{4} << 20;

template <typename Input, typename Output>
class BlockWorkers {
 public:
  using Function = std::function<Output(Input)>;

  /// \param threads >= 1
  /// \param take called in the order of Push, by the thread that pushes
  BlockWorkers(int threads, Function work, std::function<void(Output)> take)
      : work_(std::move(work)),
        take_(std::move(take)),
        most_bytes_(static_cast<uint64_t>(threads) * kMostBytesUnderWay) {
    if (threads > 1)
      workers_.emplace(threads, 4 * static_cast<size_t>(threads),
                       [this](int, Input input) { return work_(std::move(input)); });
  }

  /// \param size_bytes of the block as it is decoded
  void Push(Input input, uint64_t size_bytes) {
    if (!workers_) {
      take_(work_(std::move(input)));
      return;
    }
    while (!workers_->empty() && (workers_->full() || bytes_ + size_bytes > most_bytes_)) TakeOldest();
    sizes_.push_back(size_bytes);
    bytes_ += size_bytes;
    workers_->Push(std::move(input));
  }
  /// Waits for all that was pushed.
  void Finish() {
    while (workers_ && !workers_->empty()) TakeOldest();
  }

 private:
  void TakeOldest() {
    bytes_ -= sizes_.front();
    sizes_.pop_front();
    take_(workers_->Pop());
  }

  Function work_;
  std::function<void(Output)> take_;
  uint64_t most_bytes_, bytes_ = 0;
  std::deque<uint64_t> sizes_;                            // of the blocks under way
  std::optional<OrderedWorkers<Input, Output>> workers_;  // last: ends before what its threads use
};

}  // namespace trainwright::codec

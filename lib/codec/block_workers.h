/// OrderedWorkers for blocks: with one thread the work is done where it is pushed, so that a single thread
/// does everything.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "lib/io/ordered_workers.h"

namespace trainwright::codec {

template <typename Input, typename Output>
class BlockWorkers {
 public:
  using Function = std::function<Output(Input)>;

  /// \param threads >= 1
  /// \param take called in the order of Push, by the thread that pushes
  BlockWorkers(int threads, Function work, std::function<void(Output)> take)
      : work_(std::move(work)), take_(std::move(take)) {
    if (threads > 1)
      workers_.emplace(threads, 4 * static_cast<size_t>(threads),
                       [this](int, Input input) { return work_(std::move(input)); });
  }

  void Push(Input input) {
    if (!workers_) {
      take_(work_(std::move(input)));
      return;
    }
    if (workers_->full()) take_(workers_->Pop());
    workers_->Push(std::move(input));
  }
  /// Waits for all that was pushed.
  void Finish() {
    while (workers_ && !workers_->empty()) take_(workers_->Pop());
  }

 private:
  Function work_;
  std::function<void(Output)> take_;
  std::optional<OrderedWorkers<Input, Output>> workers_;  // last: ends before what its threads use
};

}  // namespace trainwright::codec

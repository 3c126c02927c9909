/// Says when nothing has come for a while: a source that hangs is otherwise as silent as one that works.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace trainwright {

/// Watches from a thread of its own as long as it lives. Progress() is called by one thread.
class StallWatch {
 public:
  /// \param stall_s without progress until the first warning; each doubling of it brings another
  /// \param describe what is waited for, as the end of a sentence; called from the watching thread
  StallWatch(double stall_s, std::function<std::string()> describe);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  void Progress();

 private:
  void Watch();

  const double stall_s_;
  const std::function<std::string()> describe_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t progress_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace trainwright

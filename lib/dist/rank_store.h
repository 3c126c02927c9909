/// The keys and values through which ranks find each other and say how they are: c10d's store over TCP,
/// which rank 0 serves unless the launcher does.
///
/// Any call can block for as long as the process that serves is stopped, and throws c10d's exceptions where
/// it is gone: calls are for threads that may be left behind. One connection; calls of several threads wait
/// for each other.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "lib/launch/rank_place.h"

namespace c10d {
class Store;
}

namespace trainwright {

class RankStore {
 public:
  enum class Role { kServe, kUse };

  /// \param timeout_s for the connection; rounded up to whole seconds
  /// \throws c10d's exceptions where nobody serves the store within the time, or it cannot be served
  RankStore(const RankPlace& place, Role role, double timeout_s);
  ~RankStore();

  void Set(const std::string& key, const std::string& value);
  /// Sets the key where its value is `expected`, or it has none and that is empty.
  /// \returns what it has then
  std::string Exchange(const std::string& key, const std::string& expected, const std::string& value);
  /// \returns the sum so far
  int64_t Add(const std::string& key, int64_t count);
  bool HasAll(const std::vector<std::string>& keys);
  /// Waits for the keys that are not there yet.
  std::vector<std::string> Get(const std::vector<std::string>& keys);

  /// What a group of c10d's connects through, whose waits are nearly endless.
  c10::intrusive_ptr<c10d::Store> ForGroup(const std::string& name) const;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

/// What an exception says, on one line and without the places in torch's code.
std::string ProblemOf(const std::exception& problem);

}  // namespace trainwright

#include "lib/dist/rank_store.h"

#include <chrono>
#include <cmath>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "lib/device/torch_words.h"
#include "lib/dist/fault_watch.h"

namespace trainwright {

RankStore::RankStore(const RankPlace& place, Role role, double timeout_s) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.store_port);
  options.isServer = role == Role::kServe;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(static_cast<int64_t>(std::ceil(timeout_s)));
  if (options.isServer && place.store_listen_fd) options.masterListenFd = *place.store_listen_fd;
  // The rank that serves need not know its own machine by the name that the others call it.
  const bool served_here = place.rank == 0 && !place.store_is_served;
  const std::string host = served_here ? "127.0.0.1" : place.store_host;
  store_ = c10::make_intrusive<c10d::PrefixStore>(place.store_prefix + "/trainwright",
                                                  c10::make_intrusive<c10d::TCPStore>(host, options));
  // Who watches the store judges its silence; c10d's own clock goes on while this process is stopped.
  store_->setTimeout(kNearlyEndless);
}

RankStore::~RankStore() = default;

void RankStore::Set(const std::string& key, const std::string& value) {
  store_->set(key, value);
}

std::string RankStore::Exchange(const std::string& key, const std::string& expected,
                                const std::string& value) {
  return store_->compareSet(key, expected, value);
}

int64_t RankStore::Add(const std::string& key, int64_t count) {
  return store_->add(key, count);
}

bool RankStore::HasAll(const std::vector<std::string>& keys) {
  return store_->check(keys);
}

std::vector<std::string> RankStore::Get(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::vector<uint8_t>& value : store_->multiGet(keys)) {
    values.emplace_back(value.begin(), value.end());
  }
  return values;
}

c10::intrusive_ptr<c10d::Store> RankStore::ForGroup(const std::string& name) const {
  return c10::make_intrusive<c10d::PrefixStore>(name, store_);
}

std::string ProblemOf(const std::exception& problem) {
  std::string text = WordsOf(problem);
  // Gloo begins with "[/path/file.cc:12] ".
  const size_t place_end = text.find("] ");
  if (text.starts_with("[/") && place_end != std::string::npos) text = text.substr(place_end + 2);
  return text;
}

}  // namespace trainwright

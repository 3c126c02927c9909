// Ranks that live and whose connections do not come about.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "lib/base/error.h"
#include "lib/dist/fault_watch.h"
#include "lib/dist/gloo_group.h"
#include "lib/dist/rank_store.h"
#include "tests/dist/rank_processes.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Of ranks that live, whatever happens.
class LivingRanks final : public FaultWatch {
 public:
  void Check() override {}
  Error Explain(const std::string& problem) override { return Error(ErrorCode::kIo, "rank 0", problem); }
};

/// Ends the process with the status of the error.
void ConnectToNobody() {
  const auto [listen_fd, port] = test::ListenOnLoopback();
  RankPlace place;
  place.ranks = 2;
  place.store_host = "127.0.0.1";
  place.store_port = port;
  place.store_listen_fd = listen_fd;
  const RankStore server(place, RankStore::Role::kServe, 5);
  place.store_listen_fd.reset();
  LivingRanks watch;
  const auto code = test::CodeOf([&] { const GlooGroup group(place, 1, &watch); });
  _exit(static_cast<int>(code.value_or(ErrorCode::kNo)));
}

TEST(GlooConnectDeathTest, AConnectionThatDoesNotComeAboutIsAnErrorThoughAllRanksLive) {
  EXPECT_EXIT(ConnectToNobody(), testing::ExitedWithCode(static_cast<int>(ErrorCode::kIo)), "");
}

}  // namespace
}  // namespace trainwright

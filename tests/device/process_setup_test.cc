#include "lib/device/process_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "lib/io/process_memory.h"
#include "tests/device/process_state.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// \returns the names of what changed, with its values before and after
std::vector<std::string> Changes(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& after) {
  std::vector<std::string> changed;
  for (const auto& [name, value] : after) {
    const auto found = before.find(name);
    if (found == before.end() || found->second != value) changed.push_back(name);
  }
  return changed;
}

const std::string kDataLimit = "limit " + std::to_string(RLIMIT_DATA);

// Each in a process of its own: what is set holds for the life of the process.

TEST(SetUpProcessTest, ChangesTheThreadsAndNothingElseThatWasNotAskedFor) {
  const auto before = test::DescribeProcess();
  const ProcessSetup setup = SetUpProcess({.threads = at::get_num_threads() + 1});
  EXPECT_EQ(setup.threads, at::get_num_threads());
  EXPECT_EQ(setup.device, at::Device(at::kCPU));
  EXPECT_EQ(setup.memory_cap_bytes, std::nullopt);
  EXPECT_THAT(Changes(before, test::DescribeProcess()), testing::ElementsAre("threads"));
}

TEST(SetUpProcessTest, TheShareOfMemoryIsALimitFromWhatIsTakenOn) {
  const ProcessSetup without = SetUpProcess({.threads = 2});
  const auto before = test::DescribeProcess();
  const ProcessSetup setup = SetUpProcess({.threads = without.threads, .mem_fraction = 0.5});
  EXPECT_THAT(Changes(before, test::DescribeProcess()), testing::ElementsAre(kDataLimit));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
  ASSERT_TRUE(setup.memory_cap_bytes.has_value());
  const auto cap = static_cast<double>(*setup.memory_cap_bytes);
  EXPECT_NEAR(cap, 0.5 * static_cast<double>(AvailableMemoryBytes()), 0.1 * cap);
  EXPECT_NEAR(static_cast<double>(limit.rlim_cur), cap + static_cast<double>(PrivateWritableBytes()),
              0.05 * cap);
}

TEST(SetUpProcessTest, UnderALimitTensorsLeaveRoomWhereThatIsAskedFor) {
  const ProcessSetup without = SetUpProcess({.threads = 2, .mem_fraction = 0.5});
  const auto before = test::DescribeProcess();
  SetUpProcess({.threads = without.threads, .keep_room_for_libraries = true});
  EXPECT_THAT(Changes(before, test::DescribeProcess()), testing::ElementsAre("allocator of tensors"));
}

TEST(SetUpProcessTest, RefusesAShareThatIsNone) {
  for (const double fraction : {0.0, -1.0, 1.5}) {
    EXPECT_EQ(test::CodeOf([&] { SetUpProcess({.mem_fraction = fraction}); }), ErrorCode::kUsage) << fraction;
  }
}

TEST(SetUpProcessTest, RefusesADeviceThatIsNone) {
  EXPECT_EQ(test::CodeOf([] { SetUpProcess({.device = "tpu"}); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright

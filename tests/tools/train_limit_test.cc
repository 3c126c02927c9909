// The tool `train` under limits on its memory: every run ends well or with a message, none in a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/support.h"

namespace trainwright::test {
namespace {

class TrainLimitTest : public ::testing::Test {
 protected:
  /// Runs a script in an own folder with shards/. `share BYTES` prints what a cap is of the available memory.
  ProcessResult Shell(const std::string& script) {
    return RunShell("set -u; cd '" + folder_.path() + "'; DATA='" + Fixture("../examples/data") + R"('
      available() {
        awk '/^MemAvailable/ { print $2 * 1024 }' /proc/meminfo
        limit=$(cat /sys/fs/cgroup/memory.max 2> /dev/null) && [ "$limit" != max ] &&
          awk -v limit="$limit" '/^anon / { print limit - $2 }' /sys/fs/cgroup/memory.stat
      }
      share() { available | awk -v bytes="$1" 'NR == 1 || $1 < least { least = $1 } END { print bytes / least }'; }
      head -n 600 "$DATA/tinyshakespeare.txt" | pretokenize -q - | pack -q --chunk 256 -o shards/
      )" + script);
  }

  TemporaryFolder folder_;
};

TEST_F(TrainLimitTest, ARunThatLibrariesWouldMeetTheLimitOfEndsWithTheMessageOrWell) {
  // From below what weights, gradients and moments take to a little above: the first product finds next to nothing.
  const ProcessResult result = Shell(R"(
    for cap in 240e6 285e6 300e6 330e6; do
      train -q --model llama-15m --steps 1 --batch 16 --seq 128 --auto-oom --threads 2 --async-save off \
        --mem-fraction $(share $cap) --out run-$cap 2> log
      status=$?
      echo $cap $status
      [ $status = 0 ] || { [ $status = 5 ] && grep -q 'under --mem-fraction 0\.' log &&
        grep -q 'raise --mem-fraction' log; } || cat log
    done)");
  EXPECT_THAT(result.standard_output,
              testing::MatchesRegex("240e6 [05]\n285e6 [05]\n300e6 [05]\n330e6 [05]\n"))
      << result.standard_error;
}

TEST_F(TrainLimitTest, ALimitOfTheShellIsAnErrorThatSaysSo) {
  const ProcessResult result = Shell(
      "ulimit -d 350000; train -q --model llama-15m --steps 1 --batch 64 --seq 128 --async-save off --out run");
  EXPECT_EQ(result.exit_status, 4) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("error: memory: "));
}

}  // namespace
}  // namespace trainwright::test

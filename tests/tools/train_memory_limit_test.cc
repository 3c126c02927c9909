// The tools that compute, with less memory than they need: every limit ends in success or in status 4.
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainMemoryLimitTest : public TrainProcessTest {
 protected:
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards();
    const ProcessResult made = Shell(
        "train -q --model tiny.json --steps 2 --batch 2 --out base && "
        "train -q --init base --lora 2 --steps 2 --batch 2 --out adapter");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }

  /// Runs a command under `ulimit -<kind>`: with each limit on the way to the least that is enough, and with
  /// those around it, where memory ends anywhere in the command's work.
  /// \returns a line for each that ended neither in success nor in status 4 with its message
  std::string Misfits(const std::string& kind, const std::string& command) {
    const ProcessResult result = Shell("kind=" + kind + "; command='" + command + R"sh('
      under() {
        rm -rf out
        ( ulimit -c 0; ulimit -$kind $1; timeout 60 $command ) > log 2>&1
        status=$?
        [ $status = 0 ] && return 0
        [ $status = 4 ] && grep -q '^[a-z]*: error: ' log && return 1
        echo "ulimit -$kind $1: status $status, $(head -c 300 log)"
        return 1
      }
      low=16000; high=3000000
      under $high || echo "3 GB are not enough"
      while [ $((high - low)) -gt 8000 ]; do
        middle=$(((low + high) / 2)); if under $middle; then high=$middle; else low=$middle; fi
      done
      for offset in -30000 -15000 -8000 -4000 4000; do under $((high + offset)); done
      true)sh");
    return result.standard_output + result.standard_error;
  }
};

TEST_F(TrainMemoryLimitTest, ATrainingRunIsStatus4) {
  const std::string train =
      "train -q --init base --threads 2 --steps 2 --batch 2 --out out --mixed-precision ";
  EXPECT_EQ(Misfits("v", train + "no"), "");
  EXPECT_EQ(Misfits("d", train + "no"), "");
}

TEST_F(TrainMemoryLimitTest, MergingAndEvaluatingAreStatus4) {
  EXPECT_EQ(Misfits("v", "train -q --merge adapter --out out"), "");
  EXPECT_EQ(Misfits("d", "train -q --threads 8 --merge adapter --out out"), "");
  EXPECT_EQ(Misfits("d", "evaluate -q --threads 2 --checkpoint base --data shards"), "");
}

}  // namespace
}  // namespace trainwright::test

// Adapters and the base they were trained on, as processes: another base is refused wherever an adapter is
// used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainAdapterBaseTest : public TrainProcessTest {
 protected:
  TrainAdapterBaseTest() : TrainProcessTest("TRAINWRIGHT_BATCH=2") {}
  /// Two bases of one shape.
  void SetUp() override {
    WriteModel("tiny.json");
    WriteShards(300, 50);
    const ProcessResult made = Shell(R"(
      train -q --model tiny.json --steps 2 --save-model-only --out base &&
      train -q --model tiny.json --steps 2 --seed 2 --save-model-only --out stranger)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
};

TEST_F(TrainAdapterBaseTest, AnotherBaseIsRefusedUnlessItIsAllowed) {
  const ProcessResult made = Shell(R"(
    set -e
    mkdir plain; for name in config.json model.safetensors; do cp base/latest/$name plain; done
    train -q --init plain --lora 2 --steps 2 --out run
    mkdir foreign; for name in adapter_config.json adapter_model.safetensors; do cp run/latest/$name foreign; done
    evaluate -q --checkpoint plain --adapter run/latest --data other > /dev/null)");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  const std::string uses[] = {
      "evaluate -q --checkpoint stranger --adapter run/latest --data other",
      "generate -q --checkpoint stranger --adapter run/latest --prompt O --max-tokens 2",
      "train -q --adapter run/latest --init stranger --steps 1 --out again",
      "train -q --merge run/latest --init stranger --out merged",
  };
  for (const std::string& use : uses) {
    const ProcessResult refused = Shell(use);
    EXPECT_EQ(refused.exit_status, 3) << use;
    EXPECT_THAT(refused.standard_error, testing::AllOf(testing::HasSubstr("is not the base that"),
                                                       testing::HasSubstr("--allow-other-base")));
    EXPECT_FALSE(std::filesystem::exists(folder_.path("again")) ||
                 std::filesystem::exists(folder_.path("merged")));
  }
  for (const std::string& use : uses) EXPECT_EQ(Shell(use + " --allow-other-base").exit_status, 0) << use;
  // peft records no hash: any base of the shapes is taken.
  EXPECT_EQ(Shell("evaluate -q --checkpoint stranger --adapter foreign --data other").exit_status, 0);
  // The base that the adapter names, changed in place: the weights' last bit.
  const ProcessResult changed = Shell(R"(
    python3 -c 'bytes = open("plain/model.safetensors", "rb").read()
open("plain/model.safetensors", "wb").write(bytes[:-1] + bytes([bytes[-1] ^ 1]))'
    evaluate -q --checkpoint run --data other)");
  EXPECT_EQ(changed.exit_status, 3);
  EXPECT_THAT(changed.standard_error, testing::HasSubstr("the sha256 of model.safetensors"));
}

}  // namespace
}  // namespace trainwright::test

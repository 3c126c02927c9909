/// `train` on several sets, on sets that are damaged, and on pipes that fail.
#include <gmock/gmock.h>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainMixtureTest : public TrainProcessTest {
 protected:
  TrainMixtureTest() {
    WriteFile(folder_.path("tiny.json"), TinyLlamaConfig({}));
    std::string first, second;
    for (int i = 0; i < 300; ++i) first += "some words of line " + std::to_string(i * i) + "\n";
    for (int i = 0; i < 90; ++i) second += "other " + std::to_string(i) + " things altogether\n";
    WriteFile(folder_.path("a.txt"), first);
    WriteFile(folder_.path("b.txt"), second);
    const ProcessResult made = Shell(
        "for n in a b; do pretokenize $n.txt | pack --chunk 64 -o $n/; done && pretokenize a.txt | pack "
        "--chunk 32 -o c/");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
  }
  static constexpr char kRun[] = "train --model tiny.json --batch 4 --seq 32 --steps 9 --progress never ";
};

TEST_F(TrainMixtureTest, ResumesAMixtureExactlyAndTellsItsShares) {
  const std::string mixture = "--data a --data b --data-weights 0.7,0.3 ";
  const ProcessResult whole = Shell(std::string(kRun) + mixture + "--out whole");
  ASSERT_EQ(whole.exit_status, 0) << whole.standard_error;
  const ProcessResult cut =
      Shell(std::string(kRun) + mixture + "--out cut --max-minutes 0.00001 && train --resume " +
            "--progress never --out cut --data a --data b");
  ASSERT_EQ(cut.exit_status, 0) << cut.standard_error;
  EXPECT_THAT(cut.standard_error, testing::HasSubstr("continuing at step 1 of 9"));
  EXPECT_EQ(WeightsOf("cut"), WeightsOf("whole"));

  std::vector<int64_t> of_steps(2);
  for (const nlohmann::json& record : Metrics("whole")) {
    if (record["type"] == "run_begin") {
      ASSERT_EQ(record["data_sources"].size(), 2u);
      EXPECT_NEAR(record["data_sources"][1]["share"].get<double>(), 0.3, 1e-9);
      EXPECT_EQ(record["data_sources"][1]["path"], "b");
    }
    if (record["type"] == "step") {
      EXPECT_EQ(record["source_tokens"][0].get<int64_t>() + record["source_tokens"][1].get<int64_t>(),
                record["tokens"]);
      for (size_t set = 0; set < 2; ++set) of_steps[set] += record["source_tokens"][set].get<int64_t>();
    }
    if (record["type"] == "run_end") {
      EXPECT_EQ(record["source_tokens"].get<std::vector<int64_t>>(), of_steps);
    }
  }
  EXPECT_GT(of_steps[1], 0);
}

TEST_F(TrainMixtureTest, RefusesSetsThatDoNotFitByName) {
  const auto refused = [&](const std::string& options) {
    const ProcessResult result =
        Shell(std::string(kRun) + options + " --out never; status=$?; test ! -e never && exit $status");
    return std::to_string(result.exit_status) + " " + result.standard_error;
  };
  EXPECT_THAT(
      refused("--data a --data c"),
      testing::AllOf(testing::StartsWith("3 "), testing::HasSubstr("c: has chunks of 32 tokens, a of 64")));
  EXPECT_THAT(refused("--data a --data b --data-weights 1"),
              testing::AllOf(testing::StartsWith("2 "), testing::HasSubstr("--data-weights")));
  EXPECT_THAT(refused("--data a --data b --data-weights 1,0"), testing::StartsWith("2 "));
}

TEST_F(TrainMixtureTest, SeveralSetsAreEvaluatedTogetherAlsoWhereARunGoesOn) {
  const std::string run = std::string(kRun) + "--data a --eval-every 3 ";
  const ProcessResult result =
      Shell(run + "--eval-data a --out of-a && " + run + "--eval-data b --out of-b && " + run +
            "--eval-data a --eval-data b --out both --max-minutes 0.00001 && train -q --resume --out both");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto tokens_of = [&](const std::string& name) {
    std::vector<int64_t> tokens;
    for (const nlohmann::json& record : Metrics(name)) {
      if (record["type"] == "eval") tokens.push_back(record["tokens"].get<int64_t>());
    }
    return tokens;
  };
  const std::vector<int64_t> of_a = tokens_of("of-a"), of_b = tokens_of("of-b"), both = tokens_of("both");
  ASSERT_GE(both.size(), 3u);
  for (const int64_t tokens : both) EXPECT_EQ(tokens, of_a.at(0) + of_b.at(0));
}

TEST_F(TrainMixtureTest, SharesThatAreSaidOtherwiseAreTheSameRun) {
  const std::string run = kRun;
  const ProcessResult result = Shell(
      run + "--data a --out one --max-minutes 0.00001 && train -q --resume --out one --data-weights 1 && " +
      run +
      "--data a --data b --data-weights 0.5,0.5 --out two --max-minutes 0.00001 && "
      "train -q --resume --out two --data-weights 7,7");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_EQ(Shell("train -q --resume --out two --data-weights 7,3").exit_status, 2);
  EXPECT_EQ(Shell(run + "--data a --data-weights 1 --out weighted").exit_status, 0);
}

TEST_F(TrainMixtureTest, ResumesExactlyWithoutTheChunksThatCannotBeRead) {
  ASSERT_EQ(Shell("head -n 2500 $DATA/tinyshakespeare.txt | pretokenize - | pack --chunk 64 -o bad/ && "
                  "python3 - bad/*.tws <<'EOS'\n"
                  "import sys\n"
                  "data = bytearray(open(sys.argv[1], 'rb').read())\n"
                  "data[len(data) // 2] ^= 1\n"
                  "open(sys.argv[1], 'wb').write(data)\n"
                  "EOS")
                .exit_status,
            0);
  const std::string run = std::string(kRun) + "--data bad ";
  const ProcessResult refused = Shell(run + "--out refused");
  EXPECT_EQ(refused.exit_status, 3);
  EXPECT_THAT(refused.standard_error, testing::HasSubstr("(shard 0, frame 1, byte "));
  EXPECT_THAT(refused.standard_error, testing::HasSubstr("--skip-bad-chunks"));

  const ProcessResult whole = Shell(run + "--skip-bad-chunks 1000 --out whole");
  ASSERT_EQ(whole.exit_status, 0) << whole.standard_error;
  EXPECT_THAT(whole.standard_error, testing::HasSubstr("another chunk takes the place of chunk "));
  const ProcessResult cut =
      Shell(run + "--skip-bad-chunks 1000 --out cut --max-minutes 0.00001 && train --resume " +
            "--progress never --out cut --data bad --skip-bad-chunks 1000");
  ASSERT_EQ(cut.exit_status, 0) << cut.standard_error;
  EXPECT_EQ(WeightsOf("cut"), WeightsOf("whole"));
  EXPECT_EQ(Shell(run + "--skip-bad-chunks 2 --out few").exit_status, 3);
}

TEST_F(TrainMixtureTest, ACutPipeIsNoShortDataSet) {
  const ProcessResult killed = Shell(
      "pretokenize a.txt | pack --chunk 64 > a.tws; size=$(stat -c %s a.tws)\n"
      "(head -c $((size / 2)) a.tws; kill -9 $BASHPID) | " +
      std::string(kRun) + "--data - --out piped; status=$?; test ! -e piped && exit $status");
  EXPECT_EQ(killed.exit_status, 3);
  EXPECT_THAT(killed.standard_error, testing::HasSubstr("its producer died"));
}

}  // namespace
}  // namespace trainwright::test

// The tool `train`: limits on its memory, moments in bf16, activations that are put away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/support.h"

namespace trainwright::test {
namespace {

class TrainLeversTest : public ::testing::Test {
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

TEST_F(TrainLeversTest, ARunThatLibrariesWouldMeetTheLimitOfEndsWithTheMessageOrWell) {
  // From below what weights, gradients and moments take to a little above: the first product finds next to
  // nothing.
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

TEST_F(TrainLeversTest, ALimitOfTheShellIsAnErrorThatSaysSo) {
  const ProcessResult result = Shell(
      "ulimit -d 350000; train -q --model llama-15m --steps 1 --batch 64 --seq 128 --async-save off --out "
      "run");
  EXPECT_EQ(result.exit_status, 4) << result.standard_error;
  EXPECT_THAT(result.standard_error, testing::HasSubstr("error: memory: "));
}

TEST_F(TrainLeversTest, MomentsInBf16ResumeAfterKillNineToTheSameBytesAndTheOtherKindIsRefused) {
  SCOPED_TRACE("seed " + std::to_string(TestSeed()));
  const ProcessResult result = Shell("RANDOM=" + std::to_string(TestSeed()) + R"(
    train='train -q --model llama-1m --steps 30 --seq 32 --batch 2 --threads 1 --save-every 3 --keep 2
           --optimizer-states bf16'
    $train --out whole || exit 1
    kills=0
    for turn in 1 2 3; do
      $train --out killed --resume & pid=$!
      sleep 0.$((RANDOM % 300 + 300)); kill -9 $pid 2> /dev/null; wait $pid; [ $? = 137 ] && kills=$((kills + 1))
    done
    [ $kills -ge 1 ] || echo "nothing was killed"
    $train --out killed --resume
    for file in model trainwright_state; do
      cmp killed/latest/$file.safetensors whole/latest/$file.safetensors && echo same
    done
    train -q --out whole --resume --optimizer-states fp32 2> log; echo $?; grep -c 'leave out --optimizer-states' log)");
  EXPECT_EQ(result.standard_output, "same\nsame\n2\n1\n") << result.standard_error;
}

TEST_F(TrainLeversTest, OffloadLowersThePeakAndEndsInTheSameWeights) {
  const ProcessResult result = Shell(R"(
    run() { train --model llama-1m --steps 2 --seq 256 --batch 32 --threads 1 --async-save off --offload-dir . "$@"; }
    run --out stays 2> /dev/null && run --out away --offload activations 2> log
    cmp stays/latest/model.safetensors away/latest/model.safetensors && echo same
    grep -c '^train: offload: ' log
    run --offload activations --dry-run --summary plan.json > /dev/null 2>&1
    python3 - <<'CHECK'
import json
last = [json.loads(open(f"{run}/metrics.jsonl").readlines()[-1]) for run in ("stays", "away")]
stays, away = (record["memory_bytes"] for record in last)
saved, moved = stays["activations"] - away["activations"], last[1]["offload"]
assert "offload" not in last[0] and saved > 20e6, last
# Buffers are those of the largest step; others may have fewer tokens.
assert moved["out_bytes"] == moved["in_bytes"] and 1.8 * saved < moved["out_bytes"] <= 2 * saved, (moved, saved)
assert moved["time_s"] > 0, moved
assert stays["peak"] - away["peak"] > 0.7 * saved, (stays, away)
plan = json.load(open("plan.json"))["memory_bytes"]
assert plan["activations"] + plan["logits"] == away["activations"], (plan, away)
for memory in (stays, away):
    assert abs(memory["total"] / memory["peak"] - 1) < 0.1, memory
print("told")
CHECK)");
  EXPECT_EQ(result.standard_output, "same\n1\ntold\n") << result.standard_error;
}

// With accumulation, and through a resume; of a model whose layers are large beside its embeddings.
TEST_F(TrainLeversTest, OffloadedGradientsLowerThePeakAndEndInTheSameWeights) {
  const ProcessResult result = Shell(R"(
    python3 - > wide.json <<'CONFIG'
import json
print(json.dumps({"model_type": "llama", "vocab_size": 258, "hidden_size": 256, "intermediate_size": 768,
                  "num_hidden_layers": 12, "num_attention_heads": 4, "num_key_value_heads": 4,
                  "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}))
CONFIG
    run() { train --model wide.json --steps 3 --seq 64 --batch 1 --accum 2 --threads 1 --async-save off \
                  --offload-dir . "$@"; }
    run --out stays 2> /dev/null && run --out away --offload gradients 2> log
    cmp stays/latest/model.safetensors away/latest/model.safetensors && echo same
    cmp stays/latest/trainwright_state.safetensors away/latest/trainwright_state.safetensors && echo same
    run --offload gradients --dry-run --summary plan.json > /dev/null 2>&1
    python3 - <<'CHECK'
import json
last = [json.loads(open(f"{run}/metrics.jsonl").readlines()[-1]) for run in ("stays", "away")]
stays, away = (record["memory_bytes"] for record in last)
saved = stays["grads"] - away["grads"]
assert away["grads"] < stays["grads"] / 8 and saved > 30e6, (stays, away)
assert stays["peak"] - away["peak"] > 0.6 * saved, (stays, away)
moved = last[1]["offload"]
assert moved["out_bytes"] > 5 * saved and moved["in_bytes"] > 5 * saved and moved["time_s"] > 0, moved
plan = json.load(open("plan.json"))["memory_bytes"]
assert plan["gradients"] == away["grads"], (plan, away)
for memory in (stays, away):
    assert abs(memory["total"] / memory["peak"] - 1) < 0.1, memory
print("told")
CHECK
    train --init stays/latest --steps 1 --seq 64 --batch 1 --lora 4 --offload gradients --offload-dir . \
      --out adapters 2>&1 | grep -c 'gains nothing here')");
  EXPECT_EQ(result.standard_output, "same\nsame\ntold\n1\n") << result.standard_error;
}

TEST_F(TrainLeversTest, AFolderThatOffloadCannotUseIsStatus4AndNamed) {
  for (const std::string what : {"activations", "gradients"}) {
    const ProcessResult result =
        Shell("train -q --model llama-1m --steps 1 --offload " + what + " --offload-dir none --out run");
    EXPECT_EQ(result.exit_status, 4);
    EXPECT_THAT(result.standard_error, testing::HasSubstr("error: none: "));
    EXPECT_THAT(result.standard_error, testing::HasSubstr("--offload-dir"));
  }
}

}  // namespace
}  // namespace trainwright::test

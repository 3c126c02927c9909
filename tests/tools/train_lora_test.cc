// Adapters as processes: from a base to a merged model, kill -9 and resume, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainLoraTest : public TrainProcessTest {
 protected:
  TrainLoraTest() : TrainProcessTest("TRAINWRIGHT_BATCH=2") {}
  /// A base that was trained a little, and another one.
  void SetUp() override {
    WriteModel("tiny.json", {.hidden_size = 64, .heads = 4, .kv_heads = 2});
    WriteShards(600, 100);
    const ProcessResult made = Shell(R"(
      train -q --model tiny.json --steps 6 --lr 0.01 --save-model-only --out base &&
      train -q --model tiny.json --steps 6 --lr 0.01 --seed 2 --save-model-only --out stranger)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
};

class TrainLoraKillTest : public TrainLoraTest,
                          public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(TrainLoraKillTest, ResumeAfterKillNineEqualsTheUninterruptedRun) {
  const auto [quant, precision] = GetParam();
  const std::string train =
      std::string(
          "train --init base --lora 4 --lora-dropout 0.1 --lr 0.01 --steps 60 --save-every 3 "
          "--keep 2 --quant ") +
      quant + " --mixed-precision " + precision;
  const ProcessResult whole = Shell(train + " --out whole");
  ASSERT_EQ(whole.exit_status, 0) << whole.standard_error;
  const ProcessResult killed = Shell("RANDOM=" + std::to_string(TestSeed()) + "; train=\"" + train + R"("
    kills=0; status=1
    while [ $status != 0 ]; do
      $train --out killed --resume 2> log & pid=$!
      # The first kill waits for a checkpoint, so that at least one process resumes.
      if [ $kills = 0 ]; then
        for _ in $(seq 1000); do [ -e killed/latest ] && break; sleep 0.01; done; kill -9 $pid 2> /dev/null
      elif [ $kills -lt 3 ]; then
        sleep 0.$((RANDOM % 400 + 200)); kill -9 $pid 2> /dev/null
      fi
      wait $pid; status=$?
      [ $status != 137 ] || kills=$((kills + 1))
      if [ $status != 0 ] && [ $status != 137 ]; then cat log; exit $status; fi
    done
    grep -q 'continuing at step' log && echo "$kills kills" && [ $kills -ge 1 ])");
  ASSERT_EQ(killed.exit_status, 0) << killed.standard_output << killed.standard_error;
  for (const char* file :
       {"adapter_model.safetensors", "adapter_config.json", "trainwright_state.safetensors"}) {
    EXPECT_EQ(ShaOf(std::string("killed/latest/") + file), ShaOf(std::string("whole/latest/") + file))
        << file << ", seed " << TestSeed() << ", " << killed.standard_output;
  }
  // The adapter has learned something: its B is no longer zero.
  EXPECT_NE(ShaOf("whole/latest/adapter_model.safetensors"),
            ShaOf("whole/checkpoints/step-00000057/adapter_model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrainLoraKillTest,
                         testing::Combine(testing::Values("none", "nf4"),
                                          testing::Values("no", "bf16", "fp16")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

TEST_F(TrainLoraTest, AnAdapterIsEvaluatedMergedAndContinued) {
  const ProcessResult result = Shell(R"(
    set -e
    train -q --init base --lora 4 --lr 0.01 --steps 30 --eval-data other --out run
    evaluate -q --checkpoint base --data other > base.json
    evaluate -q --checkpoint run --data other > run.json
    evaluate -q --checkpoint base --adapter run/latest --data other > beside.json
    train -q --merge run --out merged
    evaluate -q --checkpoint merged --data other > merged.json
    generate -q --checkpoint merged --prompt 'O Romeo' --max-tokens 20 > merged.jsonl
    generate -q --checkpoint run --prompt 'O Romeo' --max-tokens 20 > run.jsonl
    cmp merged.jsonl run.jsonl
    train -q --adapter run/latest --lr 1e-30 --weight-decay 0 --steps 1 --out again
    cmp again/latest/adapter_model.safetensors run/latest/adapter_model.safetensors
    cmp merged/tokenizer.json base/latest/tokenizer.json)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto loss = [&](const char* file) { return Json(file).at("loss_nats").get<double>(); };
  EXPECT_LT(loss("run.json"), loss("base.json") - 0.005);
  EXPECT_EQ(loss("beside.json"), loss("run.json"));
  EXPECT_NEAR(loss("merged.json"), loss("run.json"), 1e-5);
  EXPECT_EQ(Json("run/latest/adapter_config.json").at("r"), 4);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("run/latest/model.safetensors")));
}

TEST_F(TrainLoraTest, ABranchNeedsNoAdapterThatItsParentBeganWith) {
  const ProcessResult result = Shell(R"(
    set -e
    train -q --init base --lora 4 --steps 2 --out first
    cp -rL first/latest old
    train -q --init base --adapter old --steps 4 --save-every 2 --out run
    rm -r old
    train -q --branch-from run@2 --lr 1e-4 --out branch)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

class TrainAdapterKindTest : public TrainLoraTest,
                             public testing::WithParamInterface<std::tuple<const char*, const char*>> {
 protected:
  const std::string flags_ = std::string(std::get<1>(GetParam())) + " --lr 0.01 --lora 4 ";
};

TEST_P(TrainAdapterKindTest, IsEvaluatedMergedContinuedAndKeptInPeftsFiles) {
  const ProcessResult result = Shell("flags='" + flags_ + R"('
    set -e
    train -q --init base $flags --steps 30 --eval-data other --out run
    evaluate -q --checkpoint base --data other > base.json
    evaluate -q --checkpoint run --data other > run.json
    train -q --merge run --out merged
    evaluate -q --checkpoint merged --data other > merged.json
    generate -q --checkpoint merged --prompt 'O Romeo' --max-tokens 20 > merged.jsonl
    generate -q --checkpoint run --prompt 'O Romeo' --max-tokens 20 > run.jsonl
    cmp merged.jsonl run.jsonl
    train -q --adapter run/latest --lr 1e-30 --weight-decay 0 --steps 1 --out again
    cmp again/latest/adapter_model.safetensors run/latest/adapter_model.safetensors
    cmp again/latest/adapter_config.json run/latest/adapter_config.json)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const auto loss = [&](const char* file) { return Json(file).at("loss_nats").get<double>(); };
  EXPECT_LT(loss("run.json"), loss("base.json") - 0.005);
  EXPECT_NEAR(loss("merged.json"), loss("run.json"), 1e-5);
}

TEST_P(TrainAdapterKindTest, ResumesToTheBitsOfARunThatWasNotStopped) {
  for (const char* kind : {"--lora-dropout 0.1", "--quant nf4 --mixed-precision bf16"}) {
    const ProcessResult result = Shell("flags='" + flags_ + kind + R"('
      set -e
      rm -rf whole half
      train -q --init base $flags --steps 6 --save-every 3 --out whole
      cp -r whole half
      rm -r half/checkpoints/step-00000006 half/complete.json half/latest
      ln -s checkpoints/step-00000003 half/latest
      train -q --resume --out half
      for file in adapter_model.safetensors adapter_config.json trainwright_state.safetensors; do
        cmp whole/latest/$file half/latest/$file
      done
      ! cmp -s whole/checkpoints/step-00000003/adapter_model.safetensors half/latest/adapter_model.safetensors)");
    EXPECT_EQ(result.exit_status, 0) << kind << result.standard_output << result.standard_error;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrainAdapterKindTest,
                         testing::Values(std::tuple("rslora", "--rslora"), std::tuple("dora", "--dora"),
                                         std::tuple("modules", "--lora-save-modules embed_tokens,lm_head"),
                                         std::tuple("all",
                                                    "--rslora --dora --lora-save-modules embed_tokens,norm")),
                         [](const auto& info) { return std::string(std::get<0>(info.param)); });

TEST_F(TrainLoraTest, WeightsThatAreNotFiniteAreNotMerged) {
  WriteFile(folder_.path("poison.py"), R"py(import json, struct, sys
path, value = sys.argv[1], float(sys.argv[2])
data = bytearray(open(path, "rb").read())
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
tensor = next(t for name, t in sorted(header.items()) if name != "__metadata__" and t["dtype"] == "F32")
struct.pack_into("<f", data, 8 + size + tensor["data_offsets"][0], value)
open(path, "wb").write(data)
)py");
  const ProcessResult result = Shell(R"sh(
    train -q --init base --lora 4 --steps 4 --out run || exit 1
    refuse() {
      train -q --merge adapter --init model --out merged 2> log
      echo "$? $(grep -c "error: $1: .*not finite (tensor " log)"
      [ ! -e merged ] || echo "$1 left a folder"
    }
    fresh() {
      rm -rf adapter model; cp -rL run/latest adapter; cp -rL base/latest model
      rm adapter/metadata.json model/metadata.json
    }
    for value in nan inf -inf; do
      fresh; python3 poison.py adapter/adapter_model.safetensors $value; refuse adapter
      fresh; python3 poison.py model/model.safetensors $value; refuse model
    done
    # Finite parts whose sum is not.
    fresh; sed -i 's/"lora_alpha": 8/"lora_alpha": 1e300/' adapter/adapter_config.json; refuse adapter
    fresh; train -q --merge adapter --init model --out merged && echo merged)sh");
  EXPECT_EQ(result.standard_output, "6 1\n6 1\n6 1\n6 1\n6 1\n6 1\n6 1\nmerged\n") << result.standard_error;
}

TEST_F(TrainLoraTest, AResumedRunRefusesAnotherBaseAndOtherAdapters) {
  const ProcessResult first = Shell("train -q --init base --lora 4 --steps 4 --out run");
  ASSERT_EQ(first.exit_status, 0) << first.standard_error;
  const ProcessResult stranger = Shell("train --resume --out run --init stranger");
  EXPECT_EQ(stranger.exit_status, 3);
  EXPECT_THAT(stranger.standard_error, testing::HasSubstr("not the base"));
  for (const char* flag :
       {"--lora 8", "--lora-alpha 1", "--lora-dropout 0.5", "--lora-targets mlp", "--quant nf4"}) {
    const ProcessResult other = Shell(std::string("train --resume --out run ") + flag);
    EXPECT_EQ(other.exit_status, 2) << flag;
    EXPECT_THAT(other.standard_error,
                testing::HasSubstr(std::string(flag).substr(0, std::string(flag).find(' '))));
  }
}

TEST_F(TrainLoraTest, AResumedRunTakesItsModulesInOtherWords) {
  const ProcessResult result = Shell(R"(
    train -q --init base --lora 4 --steps 2 --out run &&
    train -q --resume --out run --lora-targets mlp,attention)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
}

TEST_F(TrainLoraTest, ABaseThatMovedTogetherWithItsRunIsFound) {
  const ProcessResult result = Shell(R"(
    set -e
    stop_at_two() { # as if the process had been killed before its last checkpoint
      rm -r $1/checkpoints/step-00000004 $1/complete.json $1/latest
      ln -s checkpoints/step-00000002 $1/latest
    }
    mkdir -p work/runs && cp -r base work/base
    train -q --init work/base --lora 4 --steps 4 --save-every 2 --out work/runs/beside
    train -q --model tiny.json --lora 4 --steps 4 --save-every 2 --out work/runs/inside
    for run in beside inside; do cp work/runs/$run/latest/adapter_model.safetensors $run.safetensors; done
    mv work moved
    for run in beside inside; do
      evaluate -q --checkpoint moved/runs/$run --data other > $run.json
      stop_at_two moved/runs/$run
      train -q --resume --out moved/runs/$run
      cmp moved/runs/$run/latest/adapter_model.safetensors $run.safetensors
    done
    mv moved/runs/inside alone
    stop_at_two alone
    train -q --resume --out alone
    cmp alone/latest/adapter_model.safetensors inside.safetensors)");
  EXPECT_EQ(result.exit_status, 0) << result.standard_output << result.standard_error;
}

TEST_F(TrainLoraTest, ABaseThatIsGoneIsNamedWithTheOptionThatNamesAnother) {
  const ProcessResult made = Shell(R"(
    cp -r base gone && train -q --init gone --lora 4 --steps 2 --out run && mv gone elsewhere)");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  const ProcessResult lost = Shell("train -q --resume --out run");
  EXPECT_EQ(lost.exit_status, 3);
  EXPECT_THAT(lost.standard_error, testing::HasSubstr("names a base model that is no folder here: /"));
  EXPECT_THAT(lost.standard_error, testing::HasSubstr("/gone/checkpoints/step-00000006"));
  EXPECT_THAT(lost.standard_error, testing::HasSubstr("name the run's base with --init"));
  EXPECT_EQ(Shell("train -q --resume --out run --init elsewhere").exit_status, 0);
  const ProcessResult mistyped = Shell("train -q --resume --out run --init nowhere");
  EXPECT_THAT(mistyped.standard_error, testing::HasSubstr("nowhere: does not exist"));
}

TEST_F(TrainLoraTest, WrongFlagsAreRefusedBeforeAnythingIsWritten) {
  const std::pair<const char*, const char*> cases[] = {
      {"--init base --lora 0", "--lora"},
      {"--init base --lora 4 --lora-dropout 1", "--lora-dropout"},
      {"--init base --lora 4 --lora-alpha -1", "--lora-alpha"},
      {"--init base --lora 4 --lora-targets q_proj,lm_head",
       "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"},
      {"--init base --lora-alpha 8", "--lora"},
      {"--init base --rslora", "--rslora"},
      {"--init base --dora", "--dora"},
      {"--init base --lora-save-modules lm_head", "--lora-save-modules"},
      {"--init base --lora 4 --lora-save-modules q_proj", "choose among embed_tokens, norm;"},
      {"--init base --quant nf4", "--quant"},
      {"--init base --early-stop 2", "--early-stop"}};
  for (const auto& [flags, expected] : cases) {
    const ProcessResult result = Shell(std::string("train --steps 1 --out run ") + flags);
    EXPECT_EQ(result.exit_status, 2) << flags << result.standard_error;
    EXPECT_THAT(result.standard_error, testing::HasSubstr(expected)) << flags;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("run/config.yaml"))) << flags;
  }
}

TEST_F(TrainLoraTest, ADryRunTellsWhatIsTrainedAndWhatIsFrozen) {
  const ProcessResult result = Shell(R"(
    set -e
    train -q --init base --steps 1 --dry-run --summary full.json > /dev/null
    train -q --init base --lora 4 --steps 1 --dry-run --summary lora.json > /dev/null
    train -q --init base --lora 4 --quant nf4 --steps 1 --dry-run --summary qlora.json > table
    train -q --init base --lora 4 --dora --lora-save-modules embed_tokens --steps 1 --dry-run --summary more.json \
      > /dev/null)");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  // r (in + out) over q, k, v, o, gate, up and down of two layers.
  const int64_t adapters = 2 * 4 * ((64 + 64) + 2 * (64 + 32) + (64 + 64) + 3 * (64 + 64));
  const nlohmann::json full = Json("full.json"), lora = Json("lora.json"), qlora = Json("qlora.json");
  EXPECT_EQ(full.at("trainable_parameters"), full.at("parameters"));
  EXPECT_EQ(lora.at("trainable_parameters"), adapters);
  EXPECT_EQ(lora.at("parameters").get<int64_t>(), full.at("parameters").get<int64_t>() + adapters);
  EXPECT_EQ(lora.at("memory_bytes").at("optimizer"), 8 * adapters);
  const int64_t matrices = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 64);
  const auto frozen = [](const nlohmann::json& report) {
    return report.at("memory_bytes").at("frozen").get<int64_t>();
  };
  EXPECT_EQ(frozen(lora), 4 * full.at("parameters").get<int64_t>());
  EXPECT_LT(frozen(qlora), frozen(lora) - 4 * matrices + matrices);
  // A magnitude for each output, and the table, which counts as a part of the model already.
  const nlohmann::json more = Json("more.json");
  const int64_t magnitudes = 2 * (64 + 2 * 32 + 64 + 3 * 64), table = frozen(lora) / 4 - frozen(more) / 4;
  EXPECT_EQ(table % 64, 0);
  EXPECT_GT(table, 0);
  EXPECT_EQ(more.at("trainable_parameters"), adapters + magnitudes + table);
  EXPECT_EQ(more.at("parameters").get<int64_t>(), lora.at("parameters").get<int64_t>() + magnitudes);
  EXPECT_THAT(ReadFile(folder_.path("table")), testing::HasSubstr(std::to_string(adapters)));
}

TEST_F(TrainLoraTest, ARunStopsEarlyOnceEvaluationsGetNoBetterAndStaysStopped) {
  // A learning rate that does nothing: no evaluation is better than the first.
  const std::string train =
      "train --init base --lora 2 --lr 1e-30 --weight-decay 0 --steps 50 --eval-data other --eval-every 2 "
      "--early-stop 3 --out run";
  const ProcessResult first = Shell(train);
  ASSERT_EQ(first.exit_status, 0) << first.standard_error;
  EXPECT_THAT(first.standard_error, testing::HasSubstr("stopped early"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("run/checkpoints/step-00000006")));
  const ProcessResult again = Shell(train + " --resume");
  ASSERT_EQ(again.exit_status, 0) << again.standard_error;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("run/checkpoints/step-00000007")));
}

}  // namespace
}  // namespace trainwright::test

// Results of evaluate and generate name what they were made from: model, adapter and data with their hashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/train_process.h"

namespace trainwright::test {
namespace {

class TrainIdentityTest : public TrainProcessTest {
 protected:
  TrainIdentityTest() : TrainProcessTest("TRAINWRIGHT_BATCH=2 TRAINWRIGHT_STEPS=2") {}
  void SetUp() override {
    WriteModel("tiny.json");
    const ProcessResult made = Shell(R"(
      head -n 100 $DATA/tinyshakespeare.txt > text
      pretokenize -q text | pack -q --chunk 256 -o shards/ &&
      train -q --model tiny.json --out base && train -q --init base --lora 2 --out tuned)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
  /// The result of evaluate with these arguments; null where it failed.
  nlohmann::json Evaluated(const std::string& arguments) {
    const ProcessResult result = Shell("evaluate -q --seq 32 " + arguments);
    EXPECT_EQ(result.exit_status, 0) << result.standard_error;
    return nlohmann::json::parse(result.standard_output, nullptr, /*allow_exceptions=*/false);
  }
  /// By sha256sum, without the name that it prints.
  std::string Sha256(const std::string& path) { return ShaOf(path).substr(0, 64); }
};

constexpr char kBase[] = "base/checkpoints/step-00000002", kTuned[] = "tuned/checkpoints/step-00000002";

TEST_F(TrainIdentityTest, AnAdaptersScoreStandsBesideItsHashHoweverItWasNamed) {
  const std::string base_sha256 = Sha256("base/latest/model.safetensors"),
                    adapter_sha256 = Sha256("tuned/latest/adapter_model.safetensors");
  const nlohmann::json base = Evaluated("--checkpoint base --data text");
  EXPECT_EQ(base["checkpoint"], kBase);
  EXPECT_EQ(base["model"]["path"], kBase);
  EXPECT_EQ(base["model"]["sha256"], base_sha256);
  EXPECT_EQ(base["model"]["files"]["config.json"], Sha256("base/latest/config.json"));
  EXPECT_TRUE(base.contains("adapter") && base["adapter"].is_null());
  for (const bool named_alone : {true, false}) {
    const nlohmann::json tuned = Evaluated(named_alone ? "--checkpoint tuned --data text"
                                                       : "--checkpoint base --adapter tuned --data text");
    EXPECT_EQ(tuned["checkpoint"], named_alone ? kTuned : kBase);
    EXPECT_EQ(tuned["model"]["sha256"], base_sha256) << named_alone;
    EXPECT_EQ(tuned["adapter"]["path"], kTuned) << named_alone;
    EXPECT_EQ(tuned["adapter"]["sha256"], adapter_sha256) << named_alone;
    EXPECT_EQ(tuned["adapter"]["files"]["adapter_config.json"], Sha256("tuned/latest/adapter_config.json"));
  }
}

TEST_F(TrainIdentityTest, AModelOfOtherToolsIsHashedToo) {
  const ProcessResult made = Shell(R"sh(
    cp -rL base/latest plain; rm plain/metadata.json plain/trainwright_state.safetensors
    python3 - <<'SPLIT'
import json, struct
data = open("plain/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size]); header.pop("__metadata__", None)
names, weight_map = sorted(header), {}
for part, chosen in enumerate((names[:3], names[3:]), 1):
    out, body = {}, b""
    for name in chosen:
        begin, end = header[name]["data_offsets"]
        out[name] = {**header[name], "data_offsets": [len(body), len(body) + end - begin]}
        body += data[8 + size + begin:8 + size + end]
        weight_map[name] = f"model-{part:05}-of-00002.safetensors"
    text = json.dumps(out).encode()
    text += b" " * (-len(text) % 8)
    open("split." + str(part), "wb").write(struct.pack("<Q", len(text)) + text + body)
json.dump({"metadata": {}, "weight_map": weight_map}, open("index", "w"))
SPLIT
    cp -r plain parts; rm parts/model.safetensors; mv index parts/model.safetensors.index.json
    mv split.1 parts/model-00001-of-00002.safetensors; mv split.2 parts/model-00002-of-00002.safetensors)sh");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  EXPECT_EQ(Evaluated("--checkpoint plain --data text")["model"]["sha256"],
            Sha256("base/latest/model.safetensors"));
  const ProcessResult sums = Shell("cd parts; sha256sum model-*.safetensors | sha256sum");
  EXPECT_EQ(Evaluated("--checkpoint parts --data text")["model"]["sha256"],
            sums.standard_output.substr(0, 64));
}

TEST_F(TrainIdentityTest, DataAreNamedByTheirContent) {
  const std::string content = Json("shards/MANIFEST.json").at("content_sha256");
  const nlohmann::json folder = Evaluated("--checkpoint base --data shards");
  EXPECT_EQ(folder["data"], nlohmann::json({{"path", "shards"}, {"sha256", content}}));
  const ProcessResult made = Shell(R"(
    pretokenize -q text | pack -q --chunk 256 --level 1 > other.tws; gzip -k text)");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  EXPECT_EQ(Evaluated("--checkpoint base --data other.tws")["data"]["sha256"], content);
  EXPECT_EQ(Evaluated("--checkpoint base --format shards --data - < other.tws")["data"]["sha256"], content);
  const nlohmann::json split = Evaluated("--checkpoint base --data shards --eval-split 0.5")["data"];
  EXPECT_EQ(split["sha256"], content);
  EXPECT_EQ(split["eval_split"], "0.5");
  for (const char* name : {"text", "text.gz"}) {
    EXPECT_EQ(Evaluated(std::string("--checkpoint base --data ") + name)["data"],
              nlohmann::json({{"path", name}, {"sha256", Sha256(name)}}));
  }
  EXPECT_EQ(Evaluated("--checkpoint base --data - < text")["data"],
            nlohmann::json({{"path", "-"}, {"sha256", Sha256("text")}}));
}

TEST_F(TrainIdentityTest, SamplesAndAnswersAreNamedLikewise) {
  const ProcessResult made = Shell(R"sh(
    printf '{"prompt": "1+1"}\n{"prompt": "2+2"}\n' > questions
    printf '{"prompt": "1+1", "gold": 2}\n{"prompt": "2+2", "gold": 4}\n' > gold
    generate -q --checkpoint tuned --input questions --max-tokens 4 --keep-if valid --gold gold --summary a > kept
    generate -q --checkpoint base --prompt O --max-tokens 4 --summary b > /dev/null
    printf '{"prompt": "1+1", "text": "<answer>2</answer>"}\n' > samples
    evaluate -q --metric answers --samples samples --gold gold --summary c > d; printf O > prompt)sh");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  const nlohmann::json tuned = Json("a"), base = Json("b");
  EXPECT_EQ(tuned["checkpoint"], kTuned);
  EXPECT_EQ(tuned["model"]["sha256"], Sha256("base/latest/model.safetensors"));
  EXPECT_EQ(tuned["adapter"]["sha256"], Sha256("tuned/latest/adapter_model.safetensors"));
  EXPECT_EQ(tuned["data"], nlohmann::json({{"path", "questions"}, {"sha256", Sha256("questions")}}));
  EXPECT_EQ(tuned["gold"], nlohmann::json({{"path", "gold"}, {"sha256", Sha256("gold")}}));
  EXPECT_EQ(base["data"], nlohmann::json({{"path", nullptr}, {"sha256", Sha256("prompt")}}));
  EXPECT_TRUE(base["adapter"].is_null());
  for (const char* name : {"c", "d"}) {
    EXPECT_EQ(Json(name)["data"]["sha256"], Sha256("samples")) << name;
    EXPECT_EQ(Json(name)["gold"]["sha256"], Sha256("gold")) << name;
  }
}

TEST_F(TrainIdentityTest, TheConsoleNamesThemToo) {
  const ProcessResult result =
      Shell("evaluate --checkpoint tuned --data text; generate --checkpoint tuned --prompt O");
  ASSERT_EQ(result.exit_status, 0) << result.standard_error;
  const std::string shown = "adapter " + std::string(kTuned) + " (sha256 " +
                            Sha256("tuned/latest/adapter_model.safetensors").substr(0, 12) + "), data ";
  const size_t first = result.standard_error.find(shown);
  EXPECT_NE(first, std::string::npos) << result.standard_error;
  EXPECT_NE(result.standard_error.find(shown, first + 1), std::string::npos) << "of generate";
}

}  // namespace
}  // namespace trainwright::test

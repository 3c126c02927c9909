/// What the tests of `train` as a process share: a folder of their own, a model so small that a step takes
/// milliseconds, and readers of what a run leaves.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/support.h"

namespace trainwright::test {

struct TinyLlama {
  int hidden_size = 32, intermediate_size = 64, layers = 2, heads = 2, kv_heads = 1, positions = 64;
};

inline std::string TinyLlamaConfig(const TinyLlama& model) {
  return nlohmann::json{{"architectures", {"LlamaForCausalLM"}},
                        {"model_type", "llama"},
                        {"vocab_size", 258},
                        {"hidden_size", model.hidden_size},
                        {"intermediate_size", model.intermediate_size},
                        {"num_hidden_layers", model.layers},
                        {"num_attention_heads", model.heads},
                        {"num_key_value_heads", model.kv_heads},
                        {"head_dim", model.hidden_size / model.heads},
                        {"max_position_embeddings", model.positions},
                        {"rms_norm_eps", 1e-5},
                        {"rope_theta", 10000.0},
                        {"tie_word_embeddings", true},
                        {"hidden_act", "silu"}}
      .dump(/*indent=*/1);
}

/// Four times as wide inside, without grouped heads.
inline TinyLlama TinyLlamaOf(int hidden_size, int layers) {
  return {.hidden_size = hidden_size,
          .intermediate_size = 4 * hidden_size,
          .layers = layers,
          .heads = 2,
          .kv_heads = 2,
          .positions = 128};
}

class TrainProcessTest : public ::testing::Test {
 protected:
  /// \param exports of every script besides DATA (the examples' data) and one thread, for tests may share
  /// their cores: "A=1 B=2"
  explicit TrainProcessTest(std::string exports = "") : exports_(std::move(exports)) {}

  /// Runs a script in the folder.
  ProcessResult Shell(const std::string& script) {
    return RunShell("set -u; export DATA='" + Fixture("../examples/data") + "' TRAINWRIGHT_THREADS=1 " +
                    exports_ + "; cd '" + folder_.path() + "'\n" + script);
  }
  void WriteModel(const std::string& name, const TinyLlama& model = {}) {
    WriteFile(folder_.path(name), TinyLlamaConfig(model));
  }
  /// shards/ of the first lines of a text and, where it is to have any, other/ of the last ones.
  void WriteShards(int lines = 600, int other_lines = 0) {
    const ProcessResult made =
        Shell("first=" + std::to_string(lines) + " last=" + std::to_string(other_lines) + R"(
      shards() { pretokenize -q - | pack -q --chunk 256 -o $1; }
      head -n $first $DATA/tinyshakespeare.txt | shards shards/ || exit
      [ $last = 0 ] || tail -n $last $DATA/tinyshakespeare.txt | shards other/)");
    ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  }
  nlohmann::json Json(const std::string& name) { return nlohmann::json::parse(ReadFile(folder_.path(name))); }
  std::vector<nlohmann::json> Metrics(const std::string& run) {
    std::vector<nlohmann::json> records;
    std::istringstream content(ReadFile(folder_.path(run + "/metrics.jsonl")));
    for (std::string line; std::getline(content, line);) records.push_back(nlohmann::json::parse(line));
    return records;
  }
  /// As sha256sum prints it: by another program.
  std::string ShaOf(const std::string& path) { return Shell("sha256sum < " + path).standard_output; }
  /// Of the weights of a run's newest checkpoint.
  std::string WeightsOf(const std::string& run) { return ShaOf(run + "/latest/model.safetensors"); }
  bool Exists(const std::string& name) { return std::filesystem::exists(folder_.path(name)); }

  TemporaryFolder folder_;

 private:
  std::string exports_;
};

}  // namespace trainwright::test

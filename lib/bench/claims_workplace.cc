#include "lib/bench/claims_workplace.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/bench/guide_models.h"
#include "lib/io/byte_sink.h"
#include "lib/io/command.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Of contrastive records short ones, so that a run of few steps reads several of the loader's windows of 64
/// chunks; none is longer.
constexpr int kTextChunk = 1024, kRecordsChunk = 640;
/// Of the long document, and how much of it a run reads in a sample unless its flags say otherwise.
constexpr int kLongChunk = 32768;
constexpr char kLongFlags[] = " --seq 8192 --batch 1 --steps 4";

/// Made-up words.
class Words {
 public:
  explicit Words(const char* stream) : rng_(1, stream) {}
  /// \returns so many, with a space behind each
  std::string Take(uint64_t count) {
    std::string text;
    for (uint64_t word = 0; word < count; ++word) {
      const uint64_t letters = 2 + rng_.Bits(counter_++) % 7;
      for (uint64_t i = 0; i < letters; ++i) text += static_cast<char>('a' + rng_.Bits(counter_++) % 26);
      text += ' ';
    }
    return text;
  }
  /// From `least` on, the fewer the more often.
  uint64_t Length(uint64_t least, uint64_t most) {
    const double share = rng_.Uniform(counter_++);
    return least + static_cast<uint64_t>(share * share * static_cast<double>(most - least));
  }

 private:
  Rng rng_;
  uint64_t counter_ = 0;
};

/// A document a line.
void WriteText(std::ostream* file) {
  Words words("claims text");
  for (int line = 0; line < 400; ++line) *file << words.Take(120) << '\n';
}

void WriteLong(std::ostream* file) {
  Words words("claims long");
  // With a mark at either end ten chunks, and no chunk of a mark alone.
  constexpr size_t kBytes = 10 * kLongChunk - 2;
  std::string text;
  while (text.size() < kBytes) text += words.Take(1000);
  *file << text.substr(0, kBytes) << '\n';
}

/// Queries with one text each that they shall be close to and far from, of unlike lengths.
void WriteContrastive(std::ostream* file) {
  Words words("claims records");
  const auto text = [&](uint64_t least, uint64_t most) { return words.Take(words.Length(least, most)); };
  for (int line = 0; line < 1000; ++line) {
    nlohmann::ordered_json record;
    record["query"] = text(2, 12);
    record["pos"].push_back(text(4, 30));
    record["neg"].push_back(text(4, 30));
    *file << record.dump() << '\n';
  }
}

[[noreturn]] void RefuseTool(const std::string& what, const CommandRun& run) {
  throw Error(ErrorCode::kBadInput, what, "does not run here: " + run.error_tail, "",
              "build and install all tools of the suite; bench looks beside itself and in PATH");
}

}  // namespace

ClaimsWorkplace::ClaimsWorkplace(bool contrastive, bool long_document, ClaimScale scale) : scale_(scale) {
  std::error_code unknown;
  const fs::path self = fs::read_symlink("/proc/self/exe", unknown);
  tools_ = !unknown && fs::exists(self.parent_path() / "train") ? self.parent_path().string() + "/" : "";
  MakeShards("text", kTextChunk, &WriteText, "");
  if (contrastive) {
    MakeShards("contrastive", kRecordsChunk, &WriteContrastive, "--records contrastive --template grit ");
  }
  if (long_document) {
    MakeShards("long", kLongChunk, &WriteLong, "");
    MakeLongModel("lru");
  }
  if (scale == ClaimScale::kGuide) MakeGuideData();
  const CommandRun helped = RunCommand(tools_ + "train --help", {.timeout_s = 60, .keep_output = true});
  if (helped.exit_status != 0) RefuseTool("train --help", helped);
  help_ = helped.output;
}

bool ClaimsWorkplace::Takes(const std::string& flags, ClaimData data) const {
  const std::string model = data == ClaimData::kLong ? "--model " + Path("lru.json") + " " : "";
  return RunCommand(tools_ + "train " + model + flags + " --print-config", {.timeout_s = 60}).exit_status ==
         0;
}

std::string ClaimsWorkplace::Train(const std::string& flags, ClaimData data, const std::string& guide) const {
  const auto of_data = [&]() -> std::string {
    if (scale_ == ClaimScale::kGuide && !guide.empty()) {
      return Path(data == ClaimData::kExamples ? "examples.shards" : "ids.shards") + " --steps " +
             std::to_string(kGuideSteps) + " " + WithGuideModels(guide, folder_.path());
    }
    switch (data) {
      case ClaimData::kText:
      case ClaimData::kExamples:
        return Path("text.shards") + " --model llama-1m --seq 256 --batch 2 --steps 12";
      case ClaimData::kContrastive:
        return Path("contrastive.shards") + " --model llama-1m --batch 16 --steps 12";
      case ClaimData::kLong:
        return Path("long.shards") + " --model " + Path("lru.json") + kLongFlags;
    }
    return "";
  };
  return tools_ + "train --quiet --data " + of_data() +
         " --lr 1e-4 --save-every 0 --log-every 1 --out {dir}/run " + flags;
}

std::string ClaimsWorkplace::MakeLongModel(const std::string& init) const {
  const nlohmann::ordered_json config = {{"architectures", nlohmann::ordered_json::array({"TenForCausalLM"})},
                                         {"model_type", "ten"},
                                         {"vocab_size", 258},
                                         {"hidden_size", 128},
                                         {"intermediate_size", 512},
                                         {"num_hidden_layers", 4},
                                         {"num_eigenstates", 32},
                                         {"num_heads", 4},
                                         {"init", init},
                                         {"min_modulus", 0.9},
                                         {"max_modulus", 0.999},
                                         {"max_angle", 6.283185307179586},
                                         {"selective", false},
                                         {"conv_kernel", 4},
                                         {"depth_decay", true},
                                         {"layer_memory", true},
                                         {"windows", nlohmann::ordered_json::array()},
                                         {"scan_chunk", 256},
                                         {"dynamics_rate", 0.1},
                                         {"layer_norm_eps", 1e-5},
                                         {"max_position_embeddings", kLongChunk},
                                         {"tie_word_embeddings", true}};
  const std::string path = Path(init + ".json");
  std::ofstream file(path);
  file << config.dump(1) << '\n';
  if (!file.flush()) throw Error(ErrorCode::kIo, path, "cannot be written");
  return path;
}

std::string ClaimsWorkplace::Run(const std::string& command, double timeout_s) const {
  const CommandRun run = RunCommand(command, {.timeout_s = timeout_s, .keep_output = true});
  if (run.exit_status != 0) {
    throw Error(ErrorCode::kBadInput, command, "failed: " + run.error_tail, "",
                run.timed_out ? "it took too long" : "");
  }
  return run.output;
}

void ClaimsWorkplace::MakeShards(const std::string& name, int chunk_tokens,
                                 const std::function<void(std::ostream*)>& write,
                                 const std::string& flags) const {
  const std::string path = Path(name);
  std::ofstream file(path);
  write(&file);
  if (!file.flush()) throw Error(ErrorCode::kIo, path, "cannot be written");
  const CommandRun made =
      RunCommand(tools_ + "pretokenize --quiet " + flags + path + " | " + tools_ + "pack --quiet --chunk " +
                     std::to_string(chunk_tokens) + " -o " + path + ".shards/",
                 {.timeout_s = 60});
  if (made.exit_status != 0) RefuseTool("pretokenize | pack", made);
}

void ClaimsWorkplace::MakeGuideData() const {
  constexpr size_t kTokens = 1 << 19;
  for (const GuideModel& model : GuideModels()) {
    WriteFileAtomically(Path(model.name + ".json"), AsBytes(model.config));
  }
  MakeIdShards("ids", GuideIds(kTokens));
  MakeIdShards("examples", GuideExamples());
}

void ClaimsWorkplace::MakeIdShards(const std::string& name, const std::vector<uint16_t>& ids) const {
  const std::string path = Path(name + ".bin");
  WriteFileAtomically(path, {reinterpret_cast<const uint8_t*>(ids.data()), 2 * ids.size()});
  Run(tools_ + "pack --quiet --from nanogpt --vocab " + std::to_string(kGuideVocabulary) + " --eot " +
          std::to_string(kGuideVocabulary - 1) + " --chunk 1024 --shard-size 600KB -o " +
          Path(name + ".shards/") + " " + path,
      60);
}

bool HasGpu() {
  for (int i = 0; i < 16; ++i) {
    if (access(("/dev/nvidia" + std::to_string(i)).c_str(), F_OK) == 0) return true;
  }
  return false;
}

}  // namespace trainwright

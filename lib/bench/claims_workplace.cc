#include "lib/bench/claims_workplace.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/io/command.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Of contrastive records short ones, so that a run of few steps reads several of the loader's windows of 64
/// chunks; none is longer.
constexpr int kTextChunk = 1024, kRecordsChunk = 640;

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

ClaimsWorkplace::ClaimsWorkplace(bool contrastive) {
  std::error_code unknown;
  const fs::path self = fs::read_symlink("/proc/self/exe", unknown);
  tools_ = !unknown && fs::exists(self.parent_path() / "train") ? self.parent_path().string() + "/" : "";
  MakeShards("text", kTextChunk, &WriteText, "");
  if (contrastive) {
    MakeShards("contrastive", kRecordsChunk, &WriteContrastive, "--records contrastive --template grit ");
  }
  const CommandRun helped = RunCommand(tools_ + "train --help", {.timeout_s = 60, .keep_output = true});
  if (helped.exit_status != 0) RefuseTool("train --help", helped);
  help_ = helped.output;
}

bool ClaimsWorkplace::Takes(const std::string& flags) const {
  return RunCommand(tools_ + "train " + flags + " --print-config", {.timeout_s = 60}).exit_status == 0;
}

std::string ClaimsWorkplace::Train(const std::string& flags, ClaimData data) const {
  const bool text = data == ClaimData::kText;
  return tools_ + "train --quiet --data " + folder_.path() +
         (text ? "/text.shards --seq 256 --batch 2" : "/contrastive.shards --batch 16") +
         " --model llama-1m --steps 12 --lr 1e-4 --save-every 0 --log-every 1 --out {dir}/run " + flags;
}

void ClaimsWorkplace::MakeShards(const std::string& name, int chunk_tokens, void (*write)(std::ostream*),
                                 const std::string& flags) {
  const std::string path = folder_.path() + "/" + name;
  std::ofstream file(path);
  write(&file);
  if (!file.flush()) throw Error(ErrorCode::kIo, path, "cannot be written");
  const CommandRun made =
      RunCommand(tools_ + "pretokenize --quiet " + flags + path + " | " + tools_ + "pack --quiet --chunk " +
                     std::to_string(chunk_tokens) + " -o " + path + ".shards/",
                 {.timeout_s = 60});
  if (made.exit_status != 0) RefuseTool("pretokenize | pack", made);
}

bool HasGpu() {
  for (int i = 0; i < 16; ++i) {
    if (access(("/dev/nvidia" + std::to_string(i)).c_str(), F_OK) == 0) return true;
  }
  return false;
}

}  // namespace trainwright

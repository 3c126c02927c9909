#include "lib/run/deepspeed_config.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"
#include "lib/run/deepspeed_rules.h"
#include "lib/run/foreign_file.h"
#include "lib/run/world_settings.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = 1 << 20;

/// The line, from 1, of a key in a valid JSON text; 0 when it does not stand there letter by letter.
int LineOfKey(std::string_view text, const std::string& path) {
  std::vector<std::string> names;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) names.push_back(part);
  int line = 1;
  size_t depth = 0;    // of open objects and lists
  size_t matched = 0;  // of the names, the first that lead to the open object
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const size_t begin = i + 1;
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] == '\\') ++i;
    }
    const size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    if (next == std::string_view::npos || text[next] != ':' || depth == 0) continue;
    matched = std::min(matched, depth - 1);
    if (matched + 1 != depth || depth > names.size()) continue;
    if (text.substr(begin, i - begin) != names[matched]) continue;
    if (depth == names.size()) return line;
    matched = depth;
  }
  return 0;
}

json ParseObject(std::string_view text, const std::string& path) {
  constexpr char kWanted[] = "--deepspeed names a JSON file of DeepSpeed";
  json root;
  try {
    root = ParseJson(text, path);
  } catch (const Error& error) {  // a wrong configuration is a wrong use of the tool, not bad data
    throw Error(ErrorCode::kUsage, path, error.problem(), error.place(), kWanted);
  }
  if (!root.is_object()) throw Error(ErrorCode::kUsage, path, "is not a JSON object", "", kWanted);
  return root;
}

/// Before the keys that have a meaning with stage 3 alone are refused one by one.
void RefuseStageThree(const ForeignFile& file) {
  const auto stage = file.Find("zero_optimization.stage");
  if (!stage || *stage->value != 3) return;
  throw NoZeroThree(file.path() + ": key '" + stage->name + "': 3", file.PlaceOf(stage->name));
}

/// How the loss scale of fp16 moves, which no option changes: lib/optim/loss_scaler.h.
struct LossScaleRule {
  const char* name;
  double here;
};
constexpr LossScaleRule kLossScale[] = {{"fp16.initial_scale_power", 16},
                                        {"fp16.loss_scale_window", 2000},
                                        {"fp16.hysteresis", 1},
                                        {"fp16.min_loss_scale", 1}};

bool IsSwitchedOn(const std::optional<ForeignKey>& key) {
  return key && key->value->get<bool>();
}

/// Of a run that may be one of fp16.
void CheckLossScale(const ForeignFile& file) {
  const auto scale = file.Find("fp16.loss_scale");
  if (!scale || scale->value->get<double>() == 0) return;
  throw file.Refusal(*scale, "is a loss scale that stays, and here it always moves",
                     "write 0, which stands for one that moves");
}

void TellLossScale(const ForeignKey& fp16, ForeignFile* file) {
  for (const LossScaleRule& rule : kLossScale) {
    const auto key = file->Find(rule.name);
    if (!key || key->value->get<double>() == rule.here) continue;
    file->Tell(
        fp16,
        "the loss scale begins at 2^16, halves when it overflows and doubles after 2000 steps, whatever "
        "the file says about it");
    return;
  }
}

/// bf16.enabled and fp16.enabled are one option here.
void TakePrecision(ForeignFile* file) {
  const auto bf16 = file->Find("bf16.enabled"), fp16 = file->Find("fp16.enabled");
  if (IsSwitchedOn(bf16) && IsSwitchedOn(fp16)) throw file->Refusal(*fp16, "is true, and so is bf16.enabled");
  const bool is_open = file->IsLeftOpen("bf16.enabled") || file->IsLeftOpen("fp16.enabled");
  if (IsSwitchedOn(fp16) || file->IsLeftOpen("fp16.enabled")) CheckLossScale(*file);
  if (IsSwitchedOn(fp16)) {
    file->Give(*fp16, "mixed-precision", "fp16");
    TellLossScale(*fp16, file);
  } else if (IsSwitchedOn(bf16)) {
    file->Give(*bf16, "mixed-precision", "bf16");
  } else if (!is_open && (bf16 || fp16)) {
    file->Give(bf16 ? *bf16 : *fp16, "mixed-precision", "no");
  }
}

/// Elements of fp32 gradients as MiB.
std::string MebibytesOf(const ForeignKey& elements) {
  return nlohmann::json(elements.value->get<double>() * sizeof(float) / (1 << 20)).dump();
}

/// Both sizes of buckets are one option here.
void TakeBuckets(ForeignFile* file) {
  const auto reduced = file->Find("zero_optimization.reduce_bucket_size"),
             gathered = file->Find("zero_optimization.allgather_bucket_size");
  if (const auto& bucket = reduced ? reduced : gathered) {
    file->Give(*bucket, "ddp-bucket-mb", MebibytesOf(*bucket));
  }
  if (reduced && gathered && reduced->value->get<double>() != gathered->value->get<double>()) {
    file->Tell(*gathered, "weights are gathered in buckets of reduce_bucket_size, too");
  }
}

/// DeepSpeed's warm-up goes by the logarithm of the step unless the file says otherwise.
void CheckWarmup(const ForeignFile& file) {
  const auto steps = file.Find("scheduler.params.warmup_num_steps");
  if (!steps || steps->value->get<double>() <= 1 || file.Find("scheduler.params.warmup_type")) return;
  throw file.Refusal(*steps, "is a warm-up by the logarithm of the step, and here the rate rises evenly",
                     "add \"warmup_type\": \"linear\"; or write \"auto\" and give --warmup");
}

}  // namespace

OptionsOfFile ParseDeepSpeedConfig(std::string_view text, const std::string& path, const GivenValue& given) {
  ForeignFile file({.path = path,
                    .root = ParseObject(text, path),
                    .hint = "DEEPSPEED FILES in train(1) lists the keys that are read",
                    .open_word = "auto",
                    .line_of = [text](const std::string& name) { return LineOfKey(text, name); },
                    .given = given});
  RefuseStageThree(file);
  file.Take(DeepSpeedRules());
  TakePrecision(&file);
  TakeBuckets(&file);
  CheckWarmup(file);
  return file.Result();
}

OptionsOfFile ReadDeepSpeedConfig(const std::string& path, const GivenValue& given) {
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostBytes);
  return ParseDeepSpeedConfig(AsText(text), path, given);
}

}  // namespace trainwright

#include "lib/run/deepspeed_config.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_source.h"
#include "lib/run/deepspeed_file.h"

namespace trainwright {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;

/// How the loss scale of fp16 moves, which no option changes: lib/optim/loss_scaler.h.
struct LossScaleRule {
  const char* name;
  double here;
};
constexpr LossScaleRule kLossScale[] = {{"fp16.initial_scale_power", 16},
                                        {"fp16.loss_scale_window", 2000},
                                        {"fp16.hysteresis", 1},
                                        {"fp16.min_loss_scale", 1}};

bool IsTrue(const std::optional<DeepSpeedKey>& key) {
  return key && key->value->get<bool>();
}

/// Of a run that may be one of fp16.
void CheckLossScale(const DeepSpeedFile& file) {
  const auto scale = file.Find("fp16.loss_scale");
  if (!scale || scale->value->get<double>() == 0) return;
  throw file.Refusal(*scale, "is a loss scale that stays, and here it always moves",
                     "write 0, which stands for one that moves");
}

void TellLossScale(const DeepSpeedKey& fp16, DeepSpeedFile* file) {
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
void TakePrecision(DeepSpeedFile* file) {
  const auto bf16 = file->Find("bf16.enabled"), fp16 = file->Find("fp16.enabled");
  if (IsTrue(bf16) && IsTrue(fp16)) throw file->Refusal(*fp16, "is true, and so is bf16.enabled");
  const bool is_open = file->IsLeftOpen("bf16.enabled") || file->IsLeftOpen("fp16.enabled");
  if (IsTrue(fp16) || file->IsLeftOpen("fp16.enabled")) CheckLossScale(*file);
  if (IsTrue(fp16)) {
    file->Give(*fp16, "mixed-precision", "fp16");
    TellLossScale(*fp16, file);
  } else if (IsTrue(bf16)) {
    file->Give(*bf16, "mixed-precision", "bf16");
  } else if (!is_open && (bf16 || fp16)) {
    file->Give(bf16 ? *bf16 : *fp16, "mixed-precision", "no");
  }
}

/// Elements of fp32 gradients as MiB.
std::string MebibytesOf(const DeepSpeedKey& elements) {
  return nlohmann::json(elements.value->get<double>() * sizeof(float) / (1 << 20)).dump();
}

/// Both sizes of buckets are one option here.
void TakeBuckets(DeepSpeedFile* file) {
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
void CheckWarmup(const DeepSpeedFile& file) {
  const auto steps = file.Find("scheduler.params.warmup_num_steps");
  if (!steps || steps->value->get<double>() <= 1 || file.Find("scheduler.params.warmup_type")) return;
  throw file.Refusal(*steps, "is a warm-up by the logarithm of the step, and here the rate rises evenly",
                     "add \"warmup_type\": \"linear\"; or write \"auto\" and give --warmup");
}

}  // namespace

OptionsOfFile ParseDeepSpeedConfig(std::string_view text, const std::string& path) {
  DeepSpeedFile file(text, path);
  file.Take(DeepSpeedRules());
  TakePrecision(&file);
  TakeBuckets(&file);
  CheckWarmup(file);
  return file.result();
}

OptionsOfFile ReadDeepSpeedConfig(const std::string& path) {
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostBytes);
  return ParseDeepSpeedConfig(AsText(text), path);
}

}  // namespace trainwright

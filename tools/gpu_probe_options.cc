#include "tools/gpu_probe_options.h"

#include "tools/compute_options.h"
#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& GpuProbeInfo() {
  static const ToolInfo info = {
      .name = "gpu-probe",
      .summary = "report what a machine is, how fast it is, and which options train should get",
      .text = ParseToolText(kGpuProbeText),
      .see_also = {"train(1)", "nvidia-smi(1)", "trainwright-glossary(7)"},
      .variables = {{"samples", "gpu-probe-samples"}},
  };
  return info;
}

void DefineGpuProbeOptions(CLI::App& app, GpuProbeOptions* options) {
  app.add_flag("--json", options->json, "write JSON instead of tables or, with --recommend, of YAML");
  CLI::Option* const recommend =
      app.add_flag("--recommend", options->recommend, "write only the recommendation, for train --config");
  app.add_flag("--require-gpu", options->require_gpu, "end with status 5 unless a GPU can be trained on");

  const std::string measuring = "Measurements";
  CLI::Option* const quick =
      app.add_flag("--quick", options->quick, "measure for 2 seconds in all instead of 10")->group(measuring);
  CLI::Option* const sustained =
      app.add_flag("--sustained", options->sustained,
                   "measure each ceiling for --seconds, to see what lasts once a GPU is hot")
          ->group(measuring);
  app.add_option("--seconds", options->seconds, "of each measurement of --sustained")
      ->type_name("S")
      ->check(CLI::Range(1.0, 3600.0))
      ->group(measuring);
  quick->excludes(sustained);
  app.add_option(
         "--device", options->device,
         "what to measure; auto takes the GPU if one is usable, and cuda ends with status 5 if none is")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->group(measuring);
  app.add_option("--model", options->model,
                 "model to decide the batch for: a preset of train or a config.json (default: train's for "
                 "the device)")
      ->type_name("PRESET|FILE")
      ->group(measuring);
  app.add_option("--seq", options->seq,
                 "tokens of a sample; 0: train's default, the model's positions, at most 2048")
      ->check(CLI::NonNegativeNumber)
      ->group(measuring);
  app.add_option("--vocab", options->vocab, "vocabulary of a preset; 258 is that of the tokenizer bytes")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->group(measuring);
  app.add_option("--threads", options->threads,
                 "compute threads; 0: the physical cores this process may use, as far as its control group "
                 "gives time")
      ->check(CLI::NonNegativeNumber)
      ->group(measuring);
  AddKernelsOption(app, &options->kernels)->group(measuring);
  app.add_option("--out", options->folder, "folder that runs will be written to, whose disk is measured")
      ->type_name("DIR")
      ->group(measuring);
  app.add_option("--disk-size", options->disk_size,
                 "bytes to write there at most, from 256KiB; 0: leave the disk alone")
      ->type_name("SIZE")
      ->group(measuring);

  const std::string watching = "Watching";
  CLI::Option* const watch = app.add_flag("--watch", options->watch,
                                          "show what GPUs and host do until a signal, and measure nothing")
                                 ->group(watching);
  watch->excludes(recommend)->excludes(quick)->excludes(sustained);
  app.add_option("--interval", options->interval_s, "seconds between samples")
      ->check(CLI::Range(0.01, 86400.0))
      ->group(watching);
  app.add_option("--samples", options->samples, "end after this many samples; 0: go on")
      ->check(CLI::NonNegativeNumber)
      ->group(watching);
  app.add_option("--pid", options->pids,
                 "a process to watch as well; may be repeated, and --watch ends when all have")
      ->type_name("PID")
      ->group(watching);
}

}  // namespace trainwright

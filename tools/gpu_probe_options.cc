#include "tools/gpu_probe_options.h"

#include "tools/compute_options.h"

namespace trainwright {

const ToolInfo& GpuProbeInfo() {
  static const ToolInfo info = {
      .name = "gpu-probe",
      .summary = "tell what a machine is, how fast it is, and what to give train",
      .description =
          "Identifies the GPUs and the host, measures what they reach, tells which attention backends take "
          "which heads, and recommends options of train(1), each with its reason.\n\n"
          "A machine without a GPU is a normal answer: the CPU is measured, and the status is 0.",
      .sections =
          {{"GPU STATES",
            "usable; no_driver (libcuda.so.1 cannot be loaded); driver_too_old (for the CUDA runtime of "
            "torch); "
            "no_gpu (a driver that drives none); hidden (CUDA_VISIBLE_DEVICES leaves none); "
            "architecture_not_built (compute capability below 8.0); busy (exclusive to another process, "
            "prohibited, or less than 1 GiB of memory free); no_backend (the plugin or torch's CUDA "
            "libraries "
            "are missing). A hint says what would help."},
           {"MEASUREMENTS",
            "Everything is warmed up and sampled again and again: best is the fastest sample, median the one "
            "that lasts, spread the distance of the quartiles over the median. Products are those of square "
            "matrices that grow until one takes long enough; \"trainwright\" is the product that train "
            "computes "
            "with, \"torch\" LibTorch's own. Memory is counted as STREAM counts it: bytes read and written "
            "by "
            "the program. The disk is written, at most --disk-size, into a file without a name in --out, "
            "past "
            "the page cache where the file system lets it. The batch is measured by forward and backward "
            "passes "
            "of the model, doubled while memory and time last.\n\n"
            "--quick takes 2 seconds and the default 10; they tell a machine's order, not its endurance: a "
            "GPU "
            "that is to heat up needs --sustained. On a busy or virtual machine look at the spread first."},
           {"RECOMMENDATION",
            "YAML that train --config takes; reasons are comments. What the hardware can do decides, never "
            "its "
            "name. An option that hangs on a measurement with a spread of more than 20 % is left to train, "
            "and "
            "a comment says so."},
           {"OUTPUT",
            "Tables, or with --json one object of the schema trainwright.gpu-probe/1. What the system does "
            "not "
            "tell is null and named in warnings, never 0. --watch --json writes JSON Lines of the schema "
            "trainwright.gpu-probe.watch/1; rates are null in the first."}},
      .examples =
          {{"gpu-probe --quick --disk-size 1MiB", "What this machine is, within two seconds."},
           {"gpu-probe --quick --disk-size 0 --recommend > machine.yaml && pretokenize "
            "tinyshakespeare.txt | pack --chunk 1024 -o shards/ && train --config machine.yaml --steps 1 "
            "--out runs/tiny",
            "Train as the machine likes it."},
           {"gpu-probe --watch --samples 2 --interval 0.2 --json",
            "Two samples of what GPUs and host do, for a script."}},
      .see_also = {"train(1)", "nvidia-smi(1)"},
  };
  return info;
}

void DefineGpuProbeOptions(CLI::App& app, GpuProbeOptions* options) {
  CLI::Option* const json = app.add_flag("--json", options->json, "write JSON instead of tables");
  CLI::Option* const recommend =
      app.add_flag("--recommend", options->recommend, "write only the recommendation, for train --config");
  recommend->excludes(json);
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
  app.add_option("--device", options->device, "what to measure; auto takes the GPU if one is usable")
      ->check(CLI::IsMember({"auto", "cpu"}))
      ->group(measuring);
  app.add_option(
         "--model", options->model,
         "model to decide the batch for: a preset of train or a config.json (default: train's for the "
         "device)")
      ->type_name("PRESET|FILE")
      ->group(measuring);
  app.add_option("--seq", options->seq, "tokens of a sample; 0: the model's positions")
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
  app.add_option("--samples", options->samples, "end after so many samples; 0: go on")
      ->check(CLI::NonNegativeNumber)
      ->group(watching);
  app.add_option("--pid", options->pids,
                 "a process to watch besides; may be given again, and --watch ends when all have")
      ->type_name("PID")
      ->group(watching);
}

}  // namespace trainwright

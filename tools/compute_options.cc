#include "tools/compute_options.h"

namespace trainwright {

void AddAdapterOption(CLI::App& app, std::string* adapter, bool* allow_other_base) {
  app.add_option("--adapter", *adapter,
                 "LoRA adapter in peft's layout to put beside the model of --checkpoint. A --checkpoint that "
                 "is an adapter itself is put beside the base that its adapter_config.json names")
      ->type_name("DIR")
      ->group("Input and output");
  app.add_flag("--allow-other-base", *allow_other_base,
               "take an adapter although its metadata.json records the sha256 of another base")
      ->group("Input and output");
}

CLI::Option* AddCheckpointOption(CLI::App& app, std::string* checkpoint) {
  return app.add_option("--checkpoint", *checkpoint, "checkpoint folder, run directory, or model folder")
      ->type_name("DIR")
      ->required();
}

void AddPrecisionOption(CLI::App& app, std::string* mixed_precision) {
  app.add_option(
         "--mixed-precision", *mixed_precision,
         "precision of GEMMs; auto: bf16 where the device is faster at it, fp16 on a GPU without bf16")
      ->check(CLI::IsMember({"no", "bf16", "fp16", "auto"}));
}

CLI::Option* AddQuantOption(CLI::App& app, std::string* quant) {
  return app
      .add_option("--quant", *quant,
                  "keep the weights of the layers quantised and read them so: int8, or nf4 in 4 bits. See "
                  "QUANTISED WEIGHTS")
      ->check(CLI::IsMember({"none", "nf4", "int8"}));
}

CLI::Option* AddKernelsOption(CLI::App& app, std::string* kernels) {
  return app
      .add_option("--kernels", *kernels,
                  "which compute a CPU's GEMMs, for bits depend on them. auto: those that are fastest "
                  "here, measured once a machine; usual: those of its kind of processor; or a list of "
                  "fp32=blocks|library and bf16=instructions|widened|emulated")
      ->type_name("KERNELS");
}

void AddDeviceOptions(CLI::App& app, const std::string& group, std::string* device, std::string* attn_backend,
                      int* threads, std::string* kernels) {
  CLI::Option* const options[] = {
      app.add_option("--device", *device, "where to compute; auto takes the GPU if there is one")
          ->check(CLI::IsMember({"auto", "cpu", "cuda"})),
      app.add_option("--attn-backend", *attn_backend,
                     "attention: flash, cudnn, efficient (GPU only), math (plain GEMMs, anywhere) or "
                     "auto, the fastest that takes the model's heads")
          ->check(CLI::IsMember({"auto", "flash", "cudnn", "efficient", "math"})),
      app.add_option("--threads", *threads, "compute threads; 0: the physical cores this process may use")
          ->check(CLI::NonNegativeNumber),
      AddKernelsOption(app, kernels),
  };
  if (group.empty()) return;
  for (CLI::Option* option : options) option->group(group);
}

void AddRankOptions(CLI::App& app, const std::string& group, int64_t* nproc, double* dist_timeout_s) {
  CLI::Option* const options[] = {
      app.add_option("--nproc", *nproc,
                     "start this many ranks on this machine; torchrun, srun and mpirun start them themselves")
          ->check(CLI::Range(int64_t{1}, int64_t{4096})),
      app.add_option("--dist-timeout", *dist_timeout_s,
                     "seconds within which all ranks end once one was killed or cut off")
          ->check(CLI::Range(1.0, 86400.0)),
  };
  if (group.empty()) return;
  for (CLI::Option* option : options) option->group(group);
}

}  // namespace trainwright

/// Options that the tools share which compute with a model: one spelling, one text. Free of torch.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

namespace trainwright {

/// --checkpoint, required.
CLI::Option* AddCheckpointOption(CLI::App& app, std::string* checkpoint);
/// --adapter and --allow-other-base.
void AddAdapterOption(CLI::App& app, std::string* adapter, bool* allow_other_base);
/// --mixed-precision of a model that is only read.
void AddPrecisionOption(CLI::App& app, std::string* mixed_precision);
/// --quant of a model that is only read.
CLI::Option* AddQuantOption(CLI::App& app, std::string* quant);
/// --kernels.
CLI::Option* AddKernelsOption(CLI::App& app, std::string* kernels);
/// --device, --attn-backend, --threads and --kernels, in the group of that name.
/// \param group empty: the default one
void AddDeviceOptions(CLI::App& app, const std::string& group, std::string* device, std::string* attn_backend,
                      int* threads, std::string* kernels);
/// --nproc and --dist-timeout, in the group of that name.
/// \param group empty: the default one
void AddRankOptions(CLI::App& app, const std::string& group, int64_t* nproc, double* dist_timeout_s);

}  // namespace trainwright

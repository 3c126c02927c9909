/// What a user says about ranks that are not there, for a dry run on paper.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/run/train_settings.h"
#include "lib/scaling/link.h"

namespace trainwright {

struct WorldSettings {
  std::vector<int64_t> worlds = {};  ///< numbers of ranks, from 1 to 2^20
  Link link = {};
  int64_t bucket_bytes = 0;
  std::optional<double> device_tflops = {};  ///< 1e12 operations a second, above 0
  int64_t memory_bytes = 0;                  ///< of a rank's GPU; 0: a rank has what this machine has
};

/// Why there is no stage 3 of ZeRO, and what comes nearest.
/// \param object that asks for it, and where in it
Error NoZeroThree(const std::string& object, const std::string& place = "");

/// \returns nullopt without --world
/// \throws Error{kUsage} on what is out of range, is missing, or has a meaning only with --world
std::optional<WorldSettings> ParseWorldSettings(const TrainSettings& settings);

}  // namespace trainwright

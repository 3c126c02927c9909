/// DeepSpeed's JSON configuration as options of `train`: `train --deepspeed FILE`.
///
/// Keys that have a counterpart become options. One that asks for what is always otherwise here, and changes
/// no result, is reported by a notice; one that asks for another result, or that is not known, is refused by
/// its name, its path joined by dots, and its line. A key that is "auto", null or not there says nothing.
/// What each key means here is in train(1), DEEPSPEED FILES.
#pragma once

#include <string>
#include <string_view>

#include "lib/report/option_value.h"

namespace trainwright {

/// DeepSpeed's name of the samples that a step has on all ranks; among OptionsOfFile::others.
inline constexpr char kTrainBatchSize[] = "train_batch_size";

/// \param given of what takes precedence over the file: what it says for the sake of an optimizer or schedule
///     that this overrides does not count
/// \throws Error{kIo} when the file cannot be read; Error{kBadInput} when it is larger than 1 MiB; as
///     ParseDeepSpeedConfig
OptionsOfFile ReadDeepSpeedConfig(const std::string& path, const GivenValue& given = {});

/// The same of a text that was read from the file.
/// \throws Error{kUsage} when it is not a JSON object, or holds what this library does not do
OptionsOfFile ParseDeepSpeedConfig(std::string_view text, const std::string& path,
                                   const GivenValue& given = {});

}  // namespace trainwright

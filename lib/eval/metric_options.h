/// Which options of `evaluate` a metric has no use for. Free of torch.
#pragma once

#include <string>
#include <vector>

#include "lib/report/option_value.h"

namespace trainwright {

/// Whether a metric has an option.
/// \param key of the option
bool HasOption(const std::string& metric, const std::string& key);

/// "it is for --metric retrieval or sts"; empty for an option that all metrics have.
std::string HintOfMetrics(const std::string& key);

/// Of the options on the command line: what the environment or a file says may be meant for several metrics.
/// \param options of evaluate
/// \throws Error{kUsage} naming the first that means nothing to the metric, and those to which it does
void RefuseOptionsOfOtherMetrics(const std::string& metric, const std::vector<OptionValue>& options);

/// Likewise of what only a model has a use for, where vectors or a run are measured without one.
/// \throws Error{kUsage} naming the first
void RefuseOptionsOfModels(const std::vector<OptionValue>& options);

/// Whether an option is on the command line.
/// \param key of the option
bool IsTyped(const std::string& key, const std::vector<OptionValue>& options);

/// The first of the options on the command line that has a meaning for raw text alone, with its dashes;
/// empty: none is there.
std::string FlagOfText(const std::vector<OptionValue>& options);

}  // namespace trainwright

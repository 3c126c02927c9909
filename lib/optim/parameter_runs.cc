#include "lib/optim/parameter_runs.h"

#include <algorithm>
#include <iterator>

namespace trainwright {

ParameterRuns::ParameterRuns(const FlatParameters& parameters,
                             const std::function<bool(const Parameter&)>& takes) {
  const std::vector<ParameterRange>* previous = nullptr;
  std::vector<const Parameter*> trained;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.trainable) trained.push_back(&parameter);
  }
  int64_t left_out = 0;
  for (size_t i = 0; i < trained.size(); ++i) {
    const Parameter& parameter = *trained[i];
    const int64_t end = i + 1 < trained.size() ? trained[i + 1]->offset : parameters.elements();
    if (takes && !takes(parameter)) {
      previous = nullptr;
      left_out += end - parameter.offset;
      left_out_[end] = left_out;
      continue;
    }
    elements_ += end - parameter.offset;
    std::vector<ParameterRange>& runs = runs_[{parameter.decay, parameter.rate}];
    if (previous == &runs) {
      runs.back().size = parameter.offset + parameter.size - runs.back().begin;
    } else {
      runs.push_back({parameter.offset, parameter.size});
    }
    previous = &runs;
  }
}

int64_t ParameterRuns::PlaceOf(int64_t element) const {
  const auto after = left_out_.upper_bound(element);
  return after == left_out_.begin() ? element : element - std::prev(after)->second;
}

void ParameterRuns::ForEach(
    const ParameterRange& range,
    const std::function<void(const Treatment&, const std::vector<ParameterRange>&)>& visit) const {
  for (const auto& [treatment, runs] : runs_) {
    std::vector<ParameterRange> parts;
    for (const ParameterRange& run : runs) {
      const int64_t from = std::max(run.begin, range.begin),
                    size = std::min(run.begin + run.size, range.begin + range.size) - from;
      if (size > 0) parts.push_back({from, size});
    }
    if (!parts.empty()) visit(treatment, parts);
  }
}

}  // namespace trainwright

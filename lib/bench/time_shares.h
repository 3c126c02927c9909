/// Shares of a run's time, as metrics of what runs report: "share:NAME" is the sum of a field of seconds over
/// all records, divided by the wall time of the run.
#pragma once

#include <string>

#include "lib/bench/measurement.h"

namespace trainwright {

/// The metric that a run must report for another: "sum:NAME" for "share:NAME", every other for itself.
std::string ReportedFor(const std::string& metric);

/// Adds a share to every run that reports its sum. Nothing for a metric that is none.
void AddShare(const std::string& metric, Measurement* measurement);

}  // namespace trainwright

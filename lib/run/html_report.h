/// report.html of a run: one page without script, font or file from elsewhere, that opens from a mail.
///
/// It shows the curves of report.svg, the loss as its moving average beside evaluations, what the run is,
/// what it cost, and its warnings.
#pragma once

#include <string>

#include "lib/run/run_report.h"
#include "lib/run/training_metrics.h"

namespace trainwright {

/// \param report, metrics of the same metrics.jsonl
std::string RenderHtmlReport(const RunReport& report, const TrainingMetrics& metrics);

/// Makes report.svg, report.html and training_metrics.json of a run directory again from its metrics.jsonl;
/// needs no lock.
/// \returns the path of report.html
/// \throws Error{kIo, kBadInput}
std::string WriteRunReports(const std::string& run_path);

}  // namespace trainwright

// metrics.jsonl as train --report reads it: any records make a page, or are refused.
#include <sstream>

#include "lib/run/metrics_log.h"
#include "lib/run/run_report.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  std::istringstream file{std::string(AsText({data, size}))};
  RunReport report;
  fuzz::MayRefuse([&] {
    ForEachMetricsRecord(file, "input", [&](const nlohmann::ordered_json& record) { report.Add(record); });
  });
  TRAINWRIGHT_CHECK(report.Svg().ends_with("</svg>\n"));
  return 0;
}

#include "lib/bench/time_shares.h"

#include <cstring>
#include <vector>

namespace trainwright {
namespace {

constexpr char kShareMark[] = "share:";

}  // namespace

std::string ReportedFor(const std::string& metric) {
  return metric.starts_with(kShareMark) ? "sum:" + metric.substr(std::strlen(kShareMark)) : metric;
}

void AddShare(const std::string& metric, Measurement* measurement) {
  const std::string sum = ReportedFor(metric);
  if (sum == metric) return;
  for (Round& round : measurement->rounds) {
    for (std::vector<Sample>& runs : round.runs) {
      for (Sample& run : runs) {
        const auto found = run.find(sum);
        if (found != run.end()) run[metric] = found->second / run.at("wall_s");
      }
    }
  }
}

}  // namespace trainwright

#include "lib/eval/retrieval_report.h"

#include <span>

#include "lib/base/bootstrap.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/report/table.h"

namespace trainwright {

nlohmann::ordered_json DescribeScores(const RankingScores& scores, int draws, uint64_t seed) {
  nlohmann::ordered_json json;
  for (size_t measure = 0; measure < scores.measures.size(); ++measure) {
    const std::vector<double> values = scores.ValuesOf(measure);
    json[scores.measures[measure]] = scores.Mean(measure);
    if (draws == 0) continue;
    const Interval interval =
        BootstrapInterval(values.size(), draws, seed, [&](std::span<const size_t> sample) {
          double sum = 0;
          for (const size_t i : sample) sum += values[i];
          return sum / static_cast<double>(sample.size());
        });
    json[scores.measures[measure] + "_interval"] = {interval.low, interval.high};
  }
  return json;
}

void TellScores(const std::vector<DescribedSystem>& systems) {
  std::vector<std::string> shown;
  for (const char* name : {"ndcg_at_10", "mrr_at_10", "recall_at_10", "recall_at_100", "map"}) {
    if (systems.front().scores.contains(name)) shown.emplace_back(name);
  }
  std::vector<std::string> header = {"system"};
  for (const std::string& name : shown) header.push_back(name);
  const std::string interval_name = shown.front() + "_interval";
  header.push_back("95 % of " + shown.front());
  Table table(header);
  for (const auto& [name, values] : systems) {
    std::vector<std::string> row = {name};
    for (const std::string& measure : shown) row.push_back(FormatFixed(values.at(measure).get<double>(), 4));
    const auto interval = values.find(interval_name);
    row.push_back(interval == values.end() ? "-"
                                           : FormatFixed(interval->at(0).get<double>(), 4) + " to " +
                                                 FormatFixed(interval->at(1).get<double>(), 4));
    table.AddRow(row);
  }
  const std::string text = table.ToString();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    LogInfo(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace trainwright

#include "lib/scaling/world_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/report/table.h"

namespace trainwright {
namespace {

constexpr size_t kTextColumns = 100;

/// Of steps and links: with milliseconds and microseconds, too.
std::string Time(double time_s) {
  if (time_s >= 1) return FormatDuration(time_s);
  return time_s >= 1e-3 ? FormatFixed(1e3 * time_s, 1) + " ms" : FormatFixed(1e6 * time_s, 0) + " us";
}

std::string Share(double part, double whole) {
  return whole > 0 ? FormatFixed(100 * part / whole, 0) + " %" : "-";
}

std::string ShardingName(const RankPlan& plan) {
  std::string name =
      plan.sharding == Sharding::kNone ? "ddp" : "zero " + std::to_string(static_cast<int>(plan.sharding));
  if (plan.accumulation == ZeroAccumulation::kReduce) name += ", each micro-batch";
  return name;
}

/// Of what the link is busy with, the part that more bandwidth does not shorten.
double LatencyOf(const WorldRequest& request, const StepEstimate& step) {
  return static_cast<double>(step.sent().messages) * request.link.latency_s;
}

bool Fits(const WorldRequest& request, const WorldRow& row) {
  return row.memory_bytes <= request.memory_bytes;
}

Table StepTable(const WorldRequest& request, const WorldEstimates& estimates) {
  Table table({"ranks", "", "sent a rank", "messages", "latency", "on the link", "hidden", "step",
               "efficiency", "tokens/s", "memory a rank", "fits"});
  for (const WorldEstimate& world : estimates.worlds) {
    for (size_t i = 0; i < world.rows.size(); ++i) {
      const WorldRow& row = world.rows[i];
      const StepEstimate& step = row.step;
      const bool timed = step.step_s > 0;
      table.AddRow(
          {std::to_string(world.ranks), ShardingName(row.plan) + (i == world.asked ? " *" : ""),
           FormatBytes(static_cast<uint64_t>(step.sent().sent_bytes)),
           FormatGrouped(static_cast<uint64_t>(step.sent().messages)), Time(LatencyOf(request, step)),
           Time(step.link_s), timed ? Share(step.hidden_s, step.link_s) : "-",
           timed ? Time(step.step_s) : "-", timed ? Share(step.alone_s, step.step_s) : "-",
           timed ? FormatCount(row.tokens_per_s) : "-", FormatBytes(static_cast<uint64_t>(row.memory_bytes)),
           request.memory_bytes == 0 ? "?"
           : Fits(request, row)      ? "yes"
                                     : "no"});
    }
  }
  return table;
}

/// Of what was asked for, by part.
Table MemoryTable(const WorldRequest& request, const WorldEstimates& estimates) {
  std::vector<std::string> header = {"memory of a rank"};
  for (const WorldEstimate& world : estimates.worlds) header.push_back("of " + std::to_string(world.ranks));
  Table table(header);
  const auto add = [&](const std::string& label, const auto& size_of) {
    std::vector<std::string> cells = {label};
    int64_t largest = 0;
    for (const WorldEstimate& world : estimates.worlds) {
      const int64_t size_bytes = size_of(world.rows[world.asked]);
      largest = std::max(largest, size_bytes);
      cells.push_back(FormatBytes(static_cast<uint64_t>(size_bytes)));
    }
    if (largest > 0) table.AddRow(std::move(cells));
  };
  for (const MemoryPart& part : AllMemoryParts()) {
    if (part.of_host && !request.counts_host) continue;
    add(part.label, [&](const WorldRow& row) { return row.memory.parts.*part.size_bytes; });
  }
  add("buckets to and from other ranks", [](const WorldRow& row) { return row.memory.exchange; });
  add("sums of leaves", [](const WorldRow& row) { return row.memory.leaf_sums; });
  add("total", [](const WorldRow& row) { return row.memory_bytes; });
  add("there is", [&](const WorldRow&) { return request.memory_bytes; });
  return table;
}

/// Lines of words, the first behind "- ".
std::string Bullet(const std::string& text) {
  std::string lines = "-";
  size_t column = 1;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (column + 1 + (end - begin) > kTextColumns) {
      lines += "\n ";
      column = 1;
    }
    lines += " " + text.substr(begin, end - begin);
    column += 1 + (end - begin);
    begin = end + 1;
  }
  return lines + "\n";
}

nlohmann::ordered_json EncodeTraffic(const Traffic& traffic) {
  return {{"sent_bytes", traffic.sent_bytes}, {"messages", traffic.messages}};
}

nlohmann::ordered_json EncodeRow(const WorldRequest& request, const WorldRow& row) {
  const StepEstimate& step = row.step;
  const auto known = [&](double value) {
    return step.step_s > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json memory = EncodeMemoryParts(row.memory.parts);
  memory.update({{"exchange", row.memory.exchange},
                 {"leaf_sums", row.memory.leaf_sums},
                 {"counted", row.memory_bytes}});
  return {{"zero", static_cast<int>(row.plan.sharding)},
          {"reduces_each_micro_batch", row.plan.gives_gradients_away()},
          {"gradients", EncodeTraffic(step.gradients)},
          {"weights", EncodeTraffic(step.weights)},
          {"small", EncodeTraffic(step.small)},
          {"gathered", EncodeTraffic(step.gathered)},
          {"latency_time_s", LatencyOf(request, step)},
          {"link_time_s", step.link_s},
          {"hidden_time_s", known(step.hidden_s)},
          {"step_time_s", known(step.step_s)},
          {"efficiency", known(step.efficiency())},
          {"tokens_per_s", known(row.tokens_per_s)},
          {"memory_bytes", memory},
          {"fits", request.memory_bytes == 0 ? nlohmann::ordered_json()
                                             : nlohmann::ordered_json(Fits(request, row))}};
}

}  // namespace

std::string FormatWorlds(const WorldRequest& request, const WorldEstimates& estimates) {
  const auto samples = static_cast<uint64_t>(request.passes.batch * request.plan.accum);
  std::string text = "On paper, with " + FormatNumberOf(samples, "sample") +
                     " a rank in a step (* as asked for):\n\n" + StepTable(request, estimates).ToString() +
                     "\n" + MemoryTable(request, estimates).ToString();
  for (const WorldEstimate& world : estimates.worlds) {
    if (world.fit.reason.empty()) continue;
    text += "\n" + FormatNumberOf(static_cast<uint64_t>(world.ranks), "rank") + ": " + world.fit.reason +
            ". Nearest: " + world.fit.nearest + ".\n";
  }
  text += "\nAssumed:\n";
  for (const std::string& assumption : estimates.assumptions) text += Bullet(assumption);
  return text;
}

nlohmann::ordered_json EncodeWorlds(const WorldRequest& request, const WorldEstimates& estimates) {
  nlohmann::ordered_json worlds = nlohmann::ordered_json::array();
  for (const WorldEstimate& world : estimates.worlds) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const WorldRow& row : world.rows) rows.push_back(EncodeRow(request, row));
    worlds.push_back({{"ranks", world.ranks},
                      {"asked", world.asked},
                      {"verdict", FitVerdictName(world.fit.verdict)},
                      {"reason", world.fit.reason},
                      {"nearest", world.fit.nearest},
                      {"sharding", rows}});
  }
  return {{"bytes_per_s", request.link.bytes_per_s},
          {"latency_s", request.link.latency_s},
          {"bucket_bytes", request.plan.bucket_bytes},
          {"available_bytes", request.memory_bytes},
          {"fits", estimates.fits()},
          {"worlds", worlds},
          {"assumptions", estimates.assumptions}};
}

}  // namespace trainwright

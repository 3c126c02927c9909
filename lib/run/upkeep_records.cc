#include "lib/run/upkeep_records.h"

#include <algorithm>
#include <filesystem>

#include "lib/run/metrics_log.h"

namespace trainwright {
namespace {

using nlohmann::ordered_json;

/// A record's number; 0 where it is missing or null.
double NumberOrZero(const ordered_json& record, const char* name) {
  const auto field = record.find(name);
  return field != record.end() && field->is_number() ? field->get<double>() : 0;
}

std::string Text(const ordered_json& record, const char* name) {
  const auto field = record.find(name);
  return field != record.end() && field->is_string() ? field->get<std::string>() : "";
}

class Reader {
 public:
  void Add(const ordered_json& record) {
    const std::string type = Text(record, "type");
    const auto step = static_cast<int64_t>(NumberOrZero(record, "step"));
    if (type == "run_begin") BeginProcess(record);
    if (type == "step") AddStep(record);
    if (type == "checkpoint") {
      records_.checkpoints.insert(step);
      records_.save_stall_s += NumberOrZero(record, "stall_s");
      records_.save_wait_s += NumberOrZero(record, "wait_s");
      records_.writer_cpu_s += NumberOrZero(record, "writer_cpu_s");
    }
    if (type == "copy" && record.value("copied", ordered_json()) == true) {
      records_.copies.emplace(step, Text(record, "place"));
    }
    records_.begun = true;
    records_.end = type == "run_end" ? record : ordered_json();
    records_.wall_time_s = std::max(0.0, NumberOrZero(record, "time_unix_s") - begin_time_s_);
  }
  UpkeepRecords Take() { return std::move(records_); }

 private:
  void BeginProcess(const ordered_json& record) {
    begin_time_s_ = NumberOrZero(record, "time_unix_s");
    UpkeepRecords process;
    process.checkpoints = std::move(records_.checkpoints);
    process.copies = std::move(records_.copies);
    if (NumberOrZero(record, "cost_per_hour") > 0)
      process.cost_per_hour = NumberOrZero(record, "cost_per_hour");
    records_ = std::move(process);
  }
  void AddStep(const ordered_json& record) {
    records_.max_memory_bytes =
        std::max(records_.max_memory_bytes, static_cast<int64_t>(NumberOrZero(record, "max_memory_bytes")));
    const auto sources = record.find("source_tokens");
    if (sources == record.end() || !sources->is_array()) return;
    records_.source_tokens.resize(std::max(records_.source_tokens.size(), sources->size()));
    for (size_t i = 0; i < sources->size(); ++i) {
      if ((*sources)[i].is_number()) records_.source_tokens[i] += (*sources)[i].get<int64_t>();
    }
  }

  UpkeepRecords records_;
  double begin_time_s_ = 0;
};

}  // namespace

bool UpkeepRecords::EndedWell(const std::string& reason) const {
  return end.is_object() && NumberOrZero(end, "exit_status") == 0 && Text(end, "reason") == reason;
}

ordered_json UpkeepRecords::EndFields(int64_t step, int64_t tokens_seen, int exit_status,
                                      const std::string& reason) const {
  if (end.is_object()) {
    ordered_json changed = end;
    changed.erase("time_unix_s");
    changed["exit_status"] = exit_status;
    changed["reason"] = reason;
    return changed;
  }
  ordered_json fields = {{"step", step},
                         {"exit_status", exit_status},
                         {"reason", reason},
                         {"tokens_seen", tokens_seen},
                         {"wall_time_s", wall_time_s},
                         {"save_stall_s", save_stall_s},
                         {"save_wait_s", save_wait_s},
                         {"writer_cpu_s", writer_cpu_s},
                         {"cost", nullptr},
                         {"max_memory_bytes", max_memory_bytes}};
  if (cost_per_hour) fields["cost"] = *cost_per_hour * wall_time_s / 3600;
  if (!source_tokens.empty()) fields["source_tokens"] = source_tokens;
  return fields;
}

UpkeepRecords ReadUpkeepRecords(const std::string& metrics_path) {
  Reader reader;
  if (std::filesystem::exists(metrics_path)) {
    ForEachMetricsRecord(metrics_path, [&](const ordered_json& record) { reader.Add(record); });
  }
  return reader.Take();
}

}  // namespace trainwright

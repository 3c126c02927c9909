#include "lib/run/metrics_log.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"

namespace trainwright {
namespace {

using LineVisitor = std::function<void(const std::string& line, const nlohmann::ordered_json& record)>;

bool IsText(const nlohmann::ordered_json& record, const char* name, const std::string& text) {
  const auto field = record.find(name);
  return field != record.end() && field->is_string() && field->get_ref<const std::string&>() == text;
}

/// Visits the lines of a file of metrics that have their end; a crash may have torn the last one.
void ForEachLine(std::istream& file, const std::string& path, const LineVisitor& visit) {
  int64_t line_number = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    ++line_number;
    const auto record = OrderedJsonOf(line);
    if (!record.is_object() || !IsText(record, "schema", kMetricsSchema)) {
      throw Error(ErrorCode::kBadInput, path, "is not a metrics record of this tool",
                  "line " + std::to_string(line_number), "move the file away to go on without it");
    }
    visit(line + "\n", record);
  }
  if (file.bad()) throw SystemError(path, "read", errno);
}

std::ifstream OpenMetrics(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SystemError(path, "open", errno);
  return file;
}

}  // namespace

void CutMetrics(const std::string& path, int64_t step, bool evaluated) {
  if (!std::filesystem::exists(path)) return;
  AtomicFileSink kept(path);
  std::ifstream file = OpenMetrics(path);
  ForEachLine(file, path, [&](const std::string& line, const nlohmann::ordered_json& record) {
    const auto at = record.find("step");
    const bool has_step = at != record.end() && at->is_number();
    const bool later = has_step && at->get<double>() > static_cast<double>(step);
    const bool repeated = !evaluated && has_step && *at == step && IsText(record, "type", "eval");
    if (later || repeated || IsText(record, "type", "run_end")) return;
    kept.Write(AsBytes(line));
  });
  if (kept.size_bytes() != std::filesystem::file_size(path)) kept.Commit();
}

void ForEachMetricsRecord(const std::string& path,
                          const std::function<void(const nlohmann::ordered_json&)>& visit) {
  std::ifstream file = OpenMetrics(path);
  ForEachMetricsRecord(file, path, visit);
}

void ForEachMetricsRecord(std::istream& file, const std::string& path,
                          const std::function<void(const nlohmann::ordered_json&)>& visit) {
  ForEachLine(file, path, [&](const std::string&, const nlohmann::ordered_json& record) { visit(record); });
}

nlohmann::ordered_json MetricsLog::Write(const std::string& type, const nlohmann::ordered_json& fields) {
  using std::chrono::duration;
  const double now_s = duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  nlohmann::ordered_json record = {{"schema", kMetricsSchema}, {"type", type}, {"time_unix_s", now_s}};
  record.update(fields);
  lines_.Write(record);
  return record;
}

}  // namespace trainwright

#include "lib/train/metrics_log.h"

#include <chrono>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {

void CutMetrics(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return;
  const std::vector<uint8_t> content = ReadWholeFile(path);
  const std::string_view text = AsText(content);
  std::string kept;
  int64_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;  // torn by a crash
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const nlohmann::json record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || record.value("schema", "") != kMetricsSchema) {
      throw Error(ErrorCode::kBadInput, path, "is not a metrics record of this tool",
                  "line " + std::to_string(line_number), "move the file away to resume without it");
    }
    if (record.value("type", "") == "run_end" || record.value("step", int64_t{0}) > step) continue;
    kept.append(line).push_back('\n');
  }
  if (kept != text) WriteFileAtomically(path, AsBytes(kept));
}

void MetricsLog::Write(const std::string& type, const nlohmann::ordered_json& fields) {
  using std::chrono::duration;
  const double now_s = duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  nlohmann::ordered_json record = {{"schema", kMetricsSchema}, {"type", type}, {"time_unix_s", now_s}};
  record.update(fields);
  lines_.Write(record);
}

}  // namespace trainwright

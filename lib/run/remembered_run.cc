#include "lib/run/remembered_run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/run/run_directory.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kOptionsKey[] = "options";
constexpr size_t kMostOptionsBytes = size_t{1} << 22;

std::string RecordPath(const std::string& run) {
  return run + "/" + kRunRecordFile;
}
std::string OptionsPath(const std::string& run) {
  return run + "/" + kRunOptionsFile;
}

/// nullopt where there is no such file.
std::optional<std::string> TextOf(const std::string& path) {
  if (!fs::exists(path)) return std::nullopt;
  return std::string(AsText(ReadWholeFile(path, kMostOptionsBytes)));
}

}  // namespace

std::optional<OptionsOfRun> ReadOptionsOfRun(const std::string& run) {
  const std::string record_path = RecordPath(run), options_path = OptionsPath(run);
  if (const std::optional<std::string> text = TextOf(record_path)) {
    // Who reads the record itself refuses a damaged one.
    const auto record = JsonOf(*text);
    const auto options = record.is_object() ? record.value(kOptionsKey, nlohmann::json()) : nlohmann::json();
    if (options.is_string()) return OptionsOfRun{record_path, options.get<std::string>()};
  }
  const std::optional<std::string> text = TextOf(options_path);
  if (!text) return std::nullopt;
  return OptionsOfRun{options_path, *text};
}

bool IsRemembered(const std::string& run, const RunRecord& record, const std::string& options) {
  return TextOf(RecordPath(run)) == RunRecordText(EncodeRunRecord(record)) &&
         TextOf(OptionsPath(run)) == options;
}

void BeginRemembering(const std::string& run, const RunRecord& record, const std::string& options) {
  const std::string text = RunRecordText(EncodeRunRecord(record));
  fs::remove(RecordPath(run));
  WriteFileAtomically(OptionsPath(run), AsBytes(options));
  WriteFileAtomically(RecordPath(run), AsBytes(text));
}

void GoOnRemembering(const std::string& run, const RunRecord& record, const std::string& options) {
  const std::string record_path = RecordPath(run), options_path = OptionsPath(run);
  nlohmann::ordered_json encoded = EncodeRunRecord(record);
  const std::string text = RunRecordText(encoded);
  const bool other_record = TextOf(record_path) != text, other_options = TextOf(options_path) != options;
  if (other_record && other_options) {
    encoded[kOptionsKey] = options;
    WriteFileAtomically(record_path, AsBytes(RunRecordText(encoded)));
  }
  if (other_options) WriteFileAtomically(options_path, AsBytes(options));
  if (other_record) WriteFileAtomically(record_path, AsBytes(text));
}

}  // namespace trainwright

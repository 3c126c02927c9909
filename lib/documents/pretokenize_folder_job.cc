#include "lib/documents/pretokenize_folder_job.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/documents/chat_template.h"
#include "lib/documents/recorded_template.h"
#include "lib/documents/token_stream_folder_writer.h"
#include "lib/formats/json_text.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/token_stream.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/file_state.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, uint64_t TokenStreamTotals::*> kTotals[] = {
    {"documents", &TokenStreamTotals::documents},
    {"tokens", &TokenStreamTotals::tokens},
    {"source_bytes", &TokenStreamTotals::source_bytes}};

constexpr std::pair<const char*, uint64_t PretokenizeReport::*> kCounts[] = {
    {"empty_documents", &PretokenizeReport::empty_documents},
    {"replaced_bytes", &PretokenizeReport::replaced_bytes},
    {"over_max_chars", &PretokenizeReport::over_max_characters},
    {"over_max_record_tokens", &PretokenizeReport::over_max_tokens},
    {"tokenizer_calls", &PretokenizeReport::tokenizer_calls},
    {"documents_verified", &PretokenizeReport::documents_verified},
    {"loss_tokens", &PretokenizeReport::loss_tokens},
    {"texts", &PretokenizeReport::texts},
    {"texts_cut", &PretokenizeReport::texts_cut},
    {"input_bytes", &PretokenizeReport::input_bytes}};

nlohmann::json CountsOf(const PretokenizeReport& report) {
  nlohmann::json counts;
  for (const auto& [name, member] : kTotals) counts[name] = report.written.*member;
  for (const auto& [name, member] : kCounts) counts[name] = report.*member;
  counts["documents_tied"] = report.documents_tied;
  for (size_t i = 0; i < kSkipReasonCount; ++i) counts["skipped"][kSkipReasonNames[i]] = report.skipped[i];
  return counts;
}

/// \throws Error{kBadInput}
/// \param file that they are of
void AddCounts(const nlohmann::json& counts, const std::string& file, PretokenizeReport* report) {
  try {
    for (const auto& [name, member] : kTotals) report->written.*member += counts.at(name).get<uint64_t>();
    for (const auto& [name, member] : kCounts) report->*member += counts.at(name).get<uint64_t>();
    report->documents_tied += counts.value("documents_tied", uint64_t{0});  // earlier versions have none
    for (size_t i = 0; i < kSkipReasonCount; ++i) {
      report->skipped[i] += counts.at("skipped").at(kSkipReasonNames[i]).get<uint64_t>();
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kBadInput, file, "has no counts that make sense in " + std::string(kManifestName),
                "", "delete the file and run the same command again");
  }
}

Error NoFolder(const std::string& flag, const std::string& problem, const std::string& hint) {
  return Error(ErrorCode::kUsage, flag, problem + " when the output is a folder", "", hint);
}

void RefuseWhatAFolderCannotHold(const PretokenizeJobOptions& options) {
  const std::string hint = "write one stream to a file with -o FILE";
  if (options.to != OutputFormat::kTokens) throw NoFolder("--to jsonl", "has no meaning", hint);
  if (options.holdout > 0) throw NoFolder("--holdout", "has no meaning", hint);
  if (options.limit > 0) throw NoFolder("--limit", "has no meaning", hint);
}

/// A folder that is read and written has files of its own that are no documents.
std::vector<DocumentInput> WithoutOwnFiles(const std::vector<DocumentInput>& inputs,
                                           const std::string& folder) {
  std::vector<DocumentInput> kept;
  std::error_code ignored;
  for (const DocumentInput& input : inputs) {
    const fs::path path(input.path);
    const std::string name = path.filename();
    const bool own_name = name == kManifestName || IsStreamFileName(name);
    if (own_name && fs::equivalent(FolderOf(input.path), folder, ignored)) continue;
    kept.push_back(input);
  }
  if (kept.empty()) throw Error(ErrorCode::kUsage, folder, "is read and written, and holds no input");
  return kept;
}

FileState StateOfFile(const std::string& path) {
  const std::optional<FileState> state = path == "-" ? std::nullopt : StateOf(path);
  if (!state) {
    throw NoFolder(path == "-" ? "standard input" : path, "cannot be read, since it is no file",
                   "write one stream to a file with -o FILE");
  }
  return *state;
}

/// Whether a path leads to what it led to, as far as a stream's key tells: see KeyOf.
bool IsAsBefore(const FileState& before, const FileState& now) {
  return now.size_bytes == before.size_bytes && now.modified_ns == before.modified_ns;
}

/// All that decides what is in an input's stream.
/// \param settings of all streams
std::string KeyOf(const std::string& settings, const DocumentInput& input, const FileState& state) {
  const std::string text = settings + "\n" + NameOf(input.format) + "\n" + std::to_string(state.size_bytes) +
                           "\n" + std::to_string(state.modified_ns) + "\n" + input.path;
  return HexEncode(Sha256Of(AsBytes(text)));
}

/// The header of a stream says how it was made. A stream that was verified in another way is made again.
std::string SettingsOf(const TokenStreamHeader& header, const PretokenizeJobOptions& options) {
  MemorySink sink;
  const TokenStreamWriter writer(&sink, header);
  // Streams that earlier builds made of --key text, and without the lines of other keys, have this header; so
  // have those of conversations whose weights, calls and system prompts they read otherwise.
  const bool reads_other_keys = options.records == RecordKind::kLm && options.skip_bad_documents &&
                                options.formats.contains(InputFormat::kJsonl) &&
                                !options.keys_instead.empty();
  return HexEncode(Sha256Of(sink.bytes())) + " " + std::to_string(options.verify_every) +
         (reads_other_keys ? " other keys" : "") +
         (options.records == RecordKind::kSft ? " weights and calls" : "");
}

/// Of the options' inputs, in order.
std::vector<std::string> KeysOf(const Pretokenizer& pretokenizer, const PretokenizeJobOptions& options,
                                const std::vector<FileState>& states) {
  const std::string settings = SettingsOf(pretokenizer.header(), options);
  std::vector<std::string> keys;
  for (size_t i = 0; i < states.size(); ++i) keys.push_back(KeyOf(settings, options.inputs[i], states[i]));
  return keys;
}

std::optional<std::chrono::sys_seconds> TemplateTimeIn(const TokenStreamHeader& header) {
  return RecordedTemplateTime(OrderedJsonOf(header.provenance_json));
}

/// \returns nullopt also of what is no stream: it is made again
std::optional<std::chrono::sys_seconds> TemplateTimeOfStream(const std::string& path) {
  try {
    return TemplateTimeIn(TokenStreamReader(OpenSource(path)).header());
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// By the clock, a template that says the time would give each run other keys, and nothing could be taken
/// over. So it is the time of streams that are there, if that makes any of them one of this run's.
void TakeTimeOfStreams(const TokenStreamFolderWriter& folder, const PretokenizeJobOptions& options,
                       const std::vector<FileState>& states, Pretokenizer* pretokenizer) {
  const std::optional<std::chrono::sys_seconds> now = TemplateTimeIn(pretokenizer->header());
  if (!now || TemplateTimeIsChosen()) return;
  const std::vector<StreamEntry> former = folder.former();
  std::set<std::string> keys_there;
  for (const StreamEntry& entry : former) keys_there.insert(entry.key);
  std::set<std::chrono::sys_seconds> tried = {*now};
  for (auto entry = former.rbegin(); entry != former.rend(); ++entry) {
    const auto time = TemplateTimeOfStream(options.output + "/" + entry->file_name);
    if (!time || !tried.insert(*time).second) continue;
    pretokenizer->SetTemplateTime(*time);
    const std::vector<std::string> keys = KeysOf(*pretokenizer, options, states);
    const auto is_there = [&](const std::string& key) { return keys_there.contains(key); };
    if (std::none_of(keys.begin(), keys.end(), is_there)) continue;
    LogInfo(options.output + ": the template says the time of the streams that a former run left there, " +
            "SOURCE_DATE_EPOCH=" + std::to_string(time->time_since_epoch().count()) +
            ", not of this run; set SOURCE_DATE_EPOCH for another");
    return;
  }
  if (tried.size() > 1) pretokenizer->SetTemplateTime(*now);
}

}  // namespace

PretokenizeReport RunPretokenizeToFolder(const PretokenizeJobOptions& asked, ProgressMode progress_mode) {
  const auto start = std::chrono::steady_clock::now();
  RefuseWhatAFolderCannotHold(asked);
  PretokenizeJobOptions options = asked;
  options.inputs = WithoutOwnFiles(asked.inputs, asked.output);
  options.formats.clear();
  for (const DocumentInput& input : options.inputs) options.formats.insert(input.format);
  std::vector<FileState> states;
  for (const DocumentInput& input : options.inputs) states.push_back(StateOfFile(input.path));

  Pretokenizer pretokenizer(options);
  TokenStreamFolderWriter folder(options.output);
  TakeTimeOfStreams(folder, options, states, &pretokenizer);
  const std::vector<std::string> keys = KeysOf(pretokenizer, options, states);
  folder.Plan(keys);

  PretokenizeReport report = pretokenizer.EmptyReport();
  report.streams = keys.size();
  uint64_t stored_bytes = 0, stored_bytes_total = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!folder.entry(i)) {
      stored_bytes_total += states[i].size_bytes;
      continue;
    }
    PretokenizeReport alone;
    AddCounts(folder.entry(i)->counts, folder.PathOf(i), &alone);
    ++report.streams_taken_over;
    report.tokens_taken_over += folder.entry(i)->counts.at("tokens").get<uint64_t>();
  }
  Progress progress(progress_mode, "pretokenize", stored_bytes_total, "bytes");
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!folder.entry(i)) {
      const DocumentInput& input = options.inputs[i];
      DocumentReader reader({input}, options.max_document_bytes, options.keys);
      // What killed runs left is gone already: looking for it again would list the folder for each stream.
      const PretokenizeReport made = pretokenizer.Run(
          &reader, std::make_unique<AtomicFileSink>(folder.PathOf(i)), &progress, stored_bytes);
      if (!IsAsBefore(states[i], StateOfFile(input.path))) {
        throw Error(ErrorCode::kBadInput, input.path, "changed while this run read its inputs", "",
                    "run the same command again: it keeps the finished streams of the others");
      }
      folder.Add(i, ReplaceInvalidUtf8(input.path), CountsOf(made));
      stored_bytes += states[i].size_bytes;
    }
    AddCounts(folder.entry(i)->counts, folder.PathOf(i), &report);
  }
  folder.Seal();
  report.time_s = SecondsSince(start);
  return report;
}

}  // namespace trainwright

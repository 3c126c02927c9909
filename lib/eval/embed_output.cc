#include "lib/eval/embed_output.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/formats/json_fields.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"
#include "lib/io/output_link.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr char kJournalSchema[] = "trainwright.embed-journal/1";
constexpr double kSaveEveryS = 10;

/// Whether an output is written in place: standard output, a pipe, a device.
bool IsInPlace(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  return IsStandardOutput(path) ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status));
}

void CheckIdLine(const std::string& id) {
  if (id.find_first_of("\r\n") == std::string::npos && id.find_first_not_of(" \t") != std::string::npos)
    return;
  throw Error(ErrorCode::kBadInput, "id " + Quoted(id), "cannot be on a line of its own", "",
              "--format jsonl takes any id");
}

}  // namespace

EmbedOutput::EmbedOutput(EmbedOutputOptions options)
    : options_(std::move(options)), saved_(std::chrono::steady_clock::now()) {
  const bool is_jsonl = options_.info.format == VectorFormat::kJsonl;
  if (IsFolderPath(options_.path)) throw Error(ErrorCode::kUsage, options_.path, "is a folder, not a file");
  if (IsInPlace(options_.path)) {
    if (options_.resume) {
      throw Error(ErrorCode::kUsage, "--resume", "is for an output that is a file", "", "name one with -o");
    }
    sink_ = OpenSink(options_.path, /*binary=*/!is_jsonl, options_.force_terminal);
    if (HasIdsFile()) {
      LogWarning("the ids of the texts are not written: " + sink_->name() +
                 " is no file, beside which they are written");
      LogHint("name a file with -o, or pass --format jsonl", LogLevel::kWarning);
    }
    if (!is_jsonl) {  // its beginning is written last
      auto spooled = std::make_unique<SpooledSink>(std::move(sink_));
      beginning_ = spooled.get();
      sink_ = std::move(spooled);
    }
  } else {
    options_.path = FollowOutputLink(options_.path);  // a link stays one
    const std::optional<nlohmann::json> journal = ReadJournal();
    OpenFiles(journal ? &*journal : nullptr);
  }
  writer_ = std::make_unique<VectorWriter>(options_.info, sink_.get(), beginning_, start_.texts);
}

EmbedOutput::~EmbedOutput() {
  if (!resumable() || is_committed_ || has_journal_) return;
  std::error_code none;
  std::filesystem::remove(ResumableFileSink::PartialPathOf(options_.path), none);
  if (ids_ != nullptr) std::filesystem::remove(ResumableFileSink::PartialPathOf(ids_->name()), none);
}

std::string EmbedOutput::JournalPath() const {
  const std::filesystem::path path(options_.path);
  return (path.parent_path() / ("." + path.filename().string() + ".embed-journal")).string();
}

bool EmbedOutput::HasIdsFile() const {
  return options_.has_ids && options_.info.format != VectorFormat::kJsonl;
}

std::optional<nlohmann::json> EmbedOutput::ReadJournal() const {
  const std::string path = JournalPath();
  if (!options_.resume || !std::filesystem::exists(path)) return std::nullopt;
  // A run that is killed once its file is in place leaves a journal of what is no longer there.
  if (!std::filesystem::exists(ResumableFileSink::PartialPathOf(options_.path))) return std::nullopt;
  constexpr uint64_t kMostJournalBytes = 1 << 16;
  const std::vector<uint8_t> bytes = ReadWholeFile(path, kMostJournalBytes);
  nlohmann::json journal = ParseJson(AsText(bytes), path);
  try {
    if (journal.at("schema") != kJournalSchema) throw Error(ErrorCode::kBadInput, path, "has another schema");
    if (journal.at("making_sha256") != options_.making_sha256) {
      throw Error(ErrorCode::kUsage, options_.path,
                  "was begun with another model, or other options of the vectors, kernels or threads", "",
                  "repeat the options of then, or start over without --resume");
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kBadInput, path, "is no journal of embed", "", "start over without --resume");
  }
  return journal;
}

void EmbedOutput::TakeBackIds() const {
  namespace fs = std::filesystem;
  const std::string ids = IdsPathOf(options_.path), partial = ResumableFileSink::PartialPathOf(ids);
  if (fs::exists(partial) || fs::exists(options_.path) || !fs::exists(ids)) return;
  std::error_code error;
  fs::rename(ids, partial, error);
  if (error) throw SystemError(ids, "rename", error.value());
}

void EmbedOutput::OpenFiles(const nlohmann::json* journal) {
  uint64_t file_bytes = 0, ids_bytes = 0;
  if (journal != nullptr) {
    const std::string path = JournalPath();
    try {
      ReadField(*journal, "texts", path, &start_.texts);
      ReadField(*journal, "input_sha256", path, &start_.input_sha256);
      ReadField(*journal, "file_bytes", path, &file_bytes);
      ReadField(*journal, "ids_bytes", path, &ids_bytes);
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorCode::kBadInput, path, "is no journal of embed", "", "start over without --resume");
    }
  }
  has_journal_ = journal != nullptr;
  auto file = std::make_unique<ResumableFileSink>(options_.path, file_bytes);
  if (has_journal_ && HasIdsFile()) TakeBackIds();  // no other process is about to put its own in place
  if (!has_journal_) {  // what is left of a run that is not gone on with would be believed of this one
    std::error_code none;
    std::filesystem::remove(JournalPath(), none);
    std::filesystem::remove(ResumableFileSink::PartialPathOf(IdsPathOf(options_.path)), none);
  }
  file_ = file.get();
  sink_ = std::move(file);
  if (options_.info.format != VectorFormat::kJsonl) beginning_ = file_;
  if (HasIdsFile()) ids_ = std::make_unique<ResumableFileSink>(IdsPathOf(options_.path), ids_bytes);
}

void EmbedOutput::Add(std::span<const float> values, std::span<const std::string> ids) {
  if (ids_ != nullptr) {
    std::string lines;
    for (const std::string& id : ids) {
      CheckIdLine(id);
      lines += id + "\n";
    }
    ids_->Write(AsBytes(lines));
  }
  writer_->Add(values, ids);
}

void EmbedOutput::Save(const EmbedPosition& position, bool now) {
  if (!resumable() || (!now && SecondsSince(saved_) < kSaveEveryS)) return;
  if (ids_ != nullptr) ids_->Sync();
  file_->Sync();
  const nlohmann::json journal = {
      {"schema", kJournalSchema},          {"making_sha256", options_.making_sha256},
      {"texts", position.texts},           {"input_sha256", position.input_sha256},
      {"file_bytes", file_->size_bytes()}, {"ids_bytes", ids_ != nullptr ? ids_->size_bytes() : 0}};
  WriteFileAtomically(JournalPath(), AsBytes(CanonicalJson(journal) + "\n"));
  saved_ = std::chrono::steady_clock::now();
  has_journal_ = true;
}

void EmbedOutput::RemoveOtherPair() {
  const auto remove = [](const std::string& path) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) throw SystemError(path, "remove", error.value());
  };
  const std::string ids = IdsPathOf(options_.path);
  if (ids_ == nullptr && !std::filesystem::exists(ids)) return;
  file_->Sync();  // nothing but renames is left that could fail
  if (ids_ != nullptr) ids_->Sync();
  remove(options_.path);
  SyncFolder(FolderOf(options_.path));
  remove(ids);
}

void EmbedOutput::Commit(const EmbedPosition& end) {
  if (ids_ != nullptr) Save(end, /*now=*/true);
  writer_->Finish();
  if (beginning_ != nullptr && resumable()) RemoveOtherPair();
  if (ids_ != nullptr) ids_->Commit();
  sink_->Commit();
  is_committed_ = true;
  std::error_code none;
  if (resumable()) std::filesystem::remove(JournalPath(), none);
}

}  // namespace trainwright

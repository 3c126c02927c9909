#include "lib/checkpoint/checkpoint_copier.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint_metadata.h"
#include "lib/codec/checkpoint_decoder.h"
#include "lib/codec/checkpoint_encoder.h"
#include "lib/codec/checkpoint_folder.h"
#include "lib/codec/compress_job.h"
#include "lib/formats/json_text.h"
#include "lib/io/atomic_folder.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/command.h"
#include "lib/io/temporary_file.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr int kCopierNiceness = 10;
constexpr size_t kPieceBytes = size_t{1} << 18;
constexpr std::string_view kStepStem = "step-";
constexpr char kPathVariable[] = "TRAINWRIGHT_CHECKPOINT";

constexpr std::chrono::milliseconds kLookAgain{200};

/// Set where a copy is to end before it is made; null: it never is.
using Abandoned = const std::atomic<bool>*;

void ThrowIfAbandoned(Abandoned abandoned) {
  if (abandoned == nullptr || !*abandoned) return;
  throw Error(ErrorCode::kIo, "the copy", "was given up: the run ends before it");
}

/// What is written is hashed and gone.
class HashingSink final : public ByteSink {
 public:
  explicit HashingSink(Abandoned abandoned) : abandoned_(abandoned) {}
  void Write(ByteSpan bytes) override {
    ThrowIfAbandoned(abandoned_);
    hash_.Update(bytes);
    size_bytes_ += bytes.size();
  }
  void Commit() override {}
  const std::string& name() const override { return name_; }
  std::string Sha256Text() const { return HexEncode(hash_.Digest()); }

 private:
  const std::string name_ = "hash";
  const Abandoned abandoned_;
  Sha256 hash_;
  uint64_t size_bytes_ = 0;
};

/// Passes a file on in pieces. Unlike a ByteSource it does not stop at a signal: the copy is what is waited
/// for.
void ReadInPieces(const std::string& path, ByteSink* sink, Abandoned abandoned = nullptr) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SystemError(path, "open", errno);
  std::vector<char> piece(kPieceBytes);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    ThrowIfAbandoned(abandoned);
    sink->Write(AsBytes({piece.data(), static_cast<size_t>(file.gcount())}));
  }
  if (!file.eof()) throw SystemError(path, "read", errno);
}

/// Has the next read of a file come from where it was written to, as far as the system lets go of its cache.
void DropFromCache(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

/// The tensors of a mapped safetensors file.
class MappedTensors final : public TensorSource {
 public:
  MappedTensors(ByteSpan file, const SafetensorsHeader& header, Abandoned abandoned)
      : file_(file), header_(header), abandoned_(abandoned) {}
  TensorBytes Take(size_t entry) override {
    ThrowIfAbandoned(abandoned_);
    const SafetensorsEntry& tensor = header_.entries[entry];
    TensorBytes bytes;
    bytes.view = file_.subspan(header_.data_offset + tensor.begin, tensor.end - tensor.begin);
    return bytes;
  }

 private:
  ByteSpan file_;
  const SafetensorsHeader& header_;
  const Abandoned abandoned_;
};

void CompressInto(const std::string& from, const std::string& to, const std::string& writer,
                  Abandoned abandoned) {
  const MappedFile file(from);
  const SafetensorsHeader header = ParseSafetensors(file.bytes(), from);
  CompressedHead head = HeadOf(file.bytes().first(header.data_offset), from);
  head.writer = writer;
  MappedTensors tensors(file.bytes(), header, abandoned);
  AtomicFileSink sink(to);
  EncodeCheckpoint(head, &tensors, {.form = CompressedForm::kSafetensors}, &sink);
  sink.Commit();
}

/// SHA-256 of what a file of a copy restores to.
std::string RestoredSha256(const std::string& path, bool compressed, Abandoned abandoned) {
  DropFromCache(path);
  HashingSink hash(abandoned);
  if (compressed) {
    const MappedFile file(path);
    BufferedReader reader(MemorySource(file.bytes(), path));
    DecodeCheckpoint(&reader, &hash, {});
  } else {
    ReadInPieces(path, &hash);
  }
  return hash.Sha256Text();
}

nlohmann::json ReadMetadata(const std::string& folder) {
  const std::string path = folder + "/" + kCheckpointMetadataFile;
  const std::vector<uint8_t> text = ReadWholeFile(path, uint64_t{64} << 20);
  nlohmann::json metadata = JsonOf(AsText(text));
  if (!metadata.is_object() || !metadata.contains("files") || !metadata["files"].is_object()) {
    throw Error(ErrorCode::kBadInput, path, "lists no files");
  }
  return metadata;
}

/// The folder of a file that a checkpoint has in a folder of its own.
void MakeFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw SystemError(folder, "create the folder", error.value());
}

struct FileOfCopy {
  std::string source, name;  ///< in the checkpoint and in the copy
  bool compressed = false;
  std::string sha256;  ///< of the source
};

std::vector<FileOfCopy> FilesOf(const std::string& checkpoint, const nlohmann::json& metadata,
                                bool compress) {
  std::vector<FileOfCopy> files;
  for (const auto& [name, entry] : metadata["files"].items()) {
    FileOfCopy file{.source = checkpoint + "/" + name, .name = name};
    if (!IsCheckpointFileName(name) || !entry.is_object() || !entry.contains("sha256")) {
      throw Error(ErrorCode::kBadInput, checkpoint + "/" + kCheckpointMetadataFile,
                  "the entry of file '" + name + "' is malformed");
    }
    file.sha256 = entry["sha256"].get<std::string>();
    const std::string compressed = compress ? CompressedName(name, CompressedForm::kSafetensors) : "";
    if (!compressed.empty()) {
      file.name = compressed;
      file.compressed = true;
    }
    files.push_back(std::move(file));
  }
  // The metadata come last, as in a checkpoint; nothing lists their hash.
  const std::string path = checkpoint + "/" + kCheckpointMetadataFile;
  HashingSink hash(/*abandoned=*/nullptr);
  ReadInPieces(path, &hash);
  files.push_back({.source = path, .name = kCheckpointMetadataFile, .sha256 = hash.Sha256Text()});
  return files;
}

/// Whether a folder holds what the checkpoint does, whenever either was written.
bool HoldsTheSame(const std::string& copy, const nlohmann::json& metadata,
                  const std::vector<FileOfCopy>& files, Abandoned abandoned) {
  try {
    if (ReadMetadata(copy)["files"] != metadata["files"]) return false;
    for (const FileOfCopy& file : files) {
      if (file.name == kCheckpointMetadataFile) continue;
      if (RestoredSha256(copy + "/" + file.name, file.compressed, abandoned) != file.sha256) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A checkpoint gets its evaluation late where the process that saved it was stopped.
/// \param metadata of the checkpoint
void CopyNewerMetadata(const std::string& copy, const FileOfCopy& metadata, Abandoned abandoned) {
  TRAINWRIGHT_CHECK(metadata.name == kCheckpointMetadataFile);
  const std::string to = copy + "/" + metadata.name;
  if (RestoredSha256(to, /*compressed=*/false, abandoned) == metadata.sha256) return;
  AtomicFileSink sink(to);
  ReadInPieces(metadata.source, &sink, abandoned);
  sink.Commit();
}

void RefuseAnotherRuns(const std::string& copy, const nlohmann::json& metadata) {
  nlohmann::json there;
  try {
    there = ReadMetadata(copy);
  } catch (const Error&) {
    return;  // damaged: it is replaced
  }
  if (there.value("provenance", nlohmann::json()) == metadata.value("provenance", nlohmann::json())) return;
  throw Error(ErrorCode::kUsage, copy, "is another run's checkpoint of this step", "",
              "give each run a folder of its own by --copy-to");
}

uint64_t CopyIntoFolder(const std::string& checkpoint, const CopySettings& settings, Abandoned abandoned) {
  std::error_code error;
  fs::create_directories(settings.folder, error);
  if (error) throw SystemError(settings.folder, "create the folder", error.value());
  RemoveStaleTemporaries(settings.folder,
                         [](const std::string& name) { return name.starts_with(kStepStem); });
  const std::string name = fs::path(checkpoint).filename().string();
  const std::string copy = settings.folder + "/" + (settings.compress ? CompressedFolderName(name) : name);
  if (fs::equivalent(checkpoint, copy, error) && !error) {
    throw Error(ErrorCode::kUsage, copy, "is the checkpoint itself", "", "choose another place by --copy-to");
  }
  const nlohmann::json metadata = ReadMetadata(checkpoint);
  const std::vector<FileOfCopy> files = FilesOf(checkpoint, metadata, settings.compress);
  const auto size = [&](const std::string& folder) {
    uint64_t size_bytes = 0;
    for (const FileOfCopy& file : files) size_bytes += fs::file_size(folder + "/" + file.name);
    return size_bytes;
  };
  if (fs::exists(copy)) {
    if (HoldsTheSame(copy, metadata, files, abandoned)) {
      CopyNewerMetadata(copy, files.back(), abandoned);
      return size(copy);
    }
    ThrowIfAbandoned(abandoned);
    RefuseAnotherRuns(copy, metadata);
  }
  AtomicFolder target(copy, /*replace=*/true);
  for (const FileOfCopy& file : files) {
    const std::string to = target.temporary() + "/" + file.name;
    MakeFolderOf(to);
    if (file.compressed) {
      CompressInto(file.source, to, settings.writer, abandoned);
    } else {
      AtomicFileSink sink(to);
      ReadInPieces(file.source, &sink, abandoned);
      sink.Commit();
    }
  }
  for (const FileOfCopy& file : files) {
    if (RestoredSha256(target.temporary() + "/" + file.name, file.compressed, abandoned) != file.sha256) {
      throw Error(ErrorCode::kIo, copy + "/" + file.name, "does not read back as what was copied", "",
                  "check the disk of --copy-to, and the checkpoint by evaluate");
    }
  }
  const uint64_t size_bytes = size(target.temporary());
  target.Commit();
  return size_bytes;
}

void RunCopyCommand(const std::string& checkpoint, const CopySettings& settings, Abandoned abandoned) {
  const std::string path = fs::absolute(checkpoint).lexically_normal().string();
  const bool named = settings.command.find(kPathVariable) != std::string::npos;
  const CommandRun run = RunCommand(named ? settings.command : settings.command + " \"$1\"",
                                    {.timeout_s = settings.timeout_s,
                                     .ends_with_signals = false,
                                     .abandoned = abandoned,
                                     .arguments = {path},
                                     .environment = {std::string(kPathVariable) + "=" + path}});
  if (run.timed_out) {
    throw Error(ErrorCode::kIo, "--copy-command", "did not end in time and was stopped", path,
                "raise --copy-timeout");
  }
  if (run.exit_status == 0) return;
  ThrowIfAbandoned(abandoned);
  std::string said = run.error_tail;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  const size_t last_line = said.rfind('\n');
  if (last_line != std::string::npos) said.erase(0, last_line + 1);
  throw Error(ErrorCode::kIo, "--copy-command",
              "ended with status " + std::to_string(run.exit_status) + (said.empty() ? "" : ": " + said),
              path);
}

}  // namespace

uint64_t CopyCheckpoint(const std::string& checkpoint, const CopySettings& settings,
                        const std::atomic<bool>* abandoned) {
  try {
    if (!settings.folder.empty()) return CopyIntoFolder(checkpoint, settings, abandoned);
    RunCopyCommand(checkpoint, settings, abandoned);
    return 0;
  } catch (const fs::filesystem_error& error) {
    throw SystemError(error.path1().string(), "copy", error.code().value());
  }
}

std::vector<StoredCopy> CopiesIn(const std::string& folder) {
  std::vector<StoredCopy> copies;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file_name = entry.path().filename().string();
    const std::string restored = RestoredFolderName(file_name);
    const std::string name = restored.empty() ? file_name : restored;
    if (!name.starts_with(kStepStem)) continue;
    const char *begin = name.data() + kStepStem.size(), *end = name.data() + name.size();
    StoredCopy copy{.path = entry.path().string()};
    const auto number = std::from_chars(begin, end, copy.step);
    if (number.ec == std::errc() && number.ptr == end && copy.step >= 0) copies.push_back(std::move(copy));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw SystemError(folder, "read", error.value());
  std::sort(copies.begin(), copies.end(), [](const StoredCopy& a, const StoredCopy& b) {
    return a.step != b.step ? a.step > b.step : a.path < b.path;
  });
  return copies;
}

void RestoreCopy(const std::string& copy, const std::string& folder) {
  const nlohmann::json metadata = ReadMetadata(copy);
  const auto write = [&](const std::string& from, const std::string& to, bool compressed) {
    const std::string path = folder + "/" + to;
    MakeFolderOf(path);
    AtomicFileSink sink(path);
    if (compressed) {
      const MappedFile file(from);
      BufferedReader reader(MemorySource(file.bytes(), from));
      DecodeCheckpoint(&reader, &sink, {});
    } else {
      ReadInPieces(from, &sink);
    }
    sink.Commit();
  };
  for (const auto& [name, entry] : metadata["files"].items()) {
    if (!IsCheckpointFileName(name)) {
      throw Error(ErrorCode::kBadInput, copy + "/" + kCheckpointMetadataFile,
                  "the entry of file '" + name + "' is malformed");
    }
    const std::string plain = copy + "/" + name;
    const std::string compressed = CompressedName(name, CompressedForm::kSafetensors);
    const bool is_compressed =
        !fs::exists(plain) && !compressed.empty() && fs::exists(copy + "/" + compressed);
    if (!is_compressed && !fs::exists(plain)) {
      throw Error(ErrorCode::kBadInput, plain, "is missing, though metadata.json lists it");
    }
    write(is_compressed ? copy + "/" + compressed : plain, name, is_compressed);
  }
  write(copy + "/" + kCheckpointMetadataFile, kCheckpointMetadataFile, false);
}

CheckpointCopier::CheckpointCopier(CopySettings settings)
    : settings_(std::move(settings)), thread_([this] { Run(); }) {}

CheckpointCopier::~CheckpointCopier() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointCopier::Add(int64_t step, const std::string& path) {
  const std::lock_guard lock(mutex_);
  copied_.erase(step);
  missing_[step] = path;
  const auto is_same = [step](const Entry& entry) { return entry.step == step; };
  if (abandoned_ || std::any_of(waiting_.begin(), waiting_.end(), is_same)) return;
  if (waiting_.size() >= settings_.capacity) {
    const Entry oldest = waiting_.front();
    waiting_.pop_front();
    ++gave_way_;
    results_.push_back({.step = oldest.step,
                        .place = PlaceOf(oldest.path),
                        .problem = "gave way to newer checkpoints: the target is slower than --save-every"});
  }
  waiting_.push_back({step, path});
  changed_.notify_all();
}

void CheckpointCopier::AddCopied(int64_t step) {
  const std::lock_guard lock(mutex_);
  copied_.insert(step);
}

std::vector<CopyResult> CheckpointCopier::TakeResults() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void CheckpointCopier::MarkRecorded() {
  const std::lock_guard lock(mutex_);
  unrecorded_.clear();
  for (const CopyResult& result : results_) {  // ended since
    if (result.copied) unrecorded_.insert(result.step);
  }
}

void CheckpointCopier::Finish(const std::function<void()>& look) {
  std::unique_lock lock(mutex_);
  AwaitIdle(look, &lock);
  for (const auto& [step, path] : missing_) {
    std::error_code ignored;
    if (fs::exists(path, ignored)) waiting_.push_back({step, path});
  }
  changed_.notify_all();
  AwaitIdle(look, &lock);
}

void CheckpointCopier::AwaitIdle(const std::function<void()>& look, std::unique_lock<std::mutex>* lock) {
  while (!waiting_.empty() || !running_.empty()) {
    changed_.wait_for(*lock, kLookAgain);
    if (!look) continue;
    lock->unlock();
    try {
      look();
    } catch (...) {
      Abandon();
      throw;
    }
    lock->lock();
  }
}

void CheckpointCopier::Abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  waiting_.clear();
  changed_.notify_all();
}

std::set<int64_t> CheckpointCopier::pinned() const {
  const std::lock_guard lock(mutex_);
  std::set<int64_t> steps = running_;
  for (const Entry& entry : waiting_) steps.insert(entry.step);
  return steps;
}

std::set<int64_t> CheckpointCopier::unrecorded() const {
  const std::lock_guard lock(mutex_);
  return unrecorded_;
}

std::set<int64_t> CheckpointCopier::copied() const {
  const std::lock_guard lock(mutex_);
  return copied_;
}

std::set<int64_t> CheckpointCopier::missing() const {
  const std::lock_guard lock(mutex_);
  std::set<int64_t> steps;
  for (const auto& [step, path] : missing_) steps.insert(step);
  return steps;
}

int64_t CheckpointCopier::gave_way() const {
  const std::lock_guard lock(mutex_);
  return gave_way_;
}

std::string CheckpointCopier::PlaceOf(const std::string& checkpoint) const {
  if (settings_.folder.empty()) return settings_.command;
  const std::string copy = settings_.folder + "/" + fs::path(checkpoint).filename().string();
  return settings_.compress ? CompressedFolderName(copy) : copy;
}

CopyResult CheckpointCopier::Copy(const Entry& entry) {
  CopyResult result{.step = entry.step, .place = PlaceOf(entry.path)};
  const auto start = std::chrono::steady_clock::now();
  for (double wait_s = settings_.first_wait_s; !result.copied && result.attempts <= settings_.retries;) {
    if (result.attempts > 0) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::duration<double>(wait_s), [this] { return abandoned_.load(); });
      if (abandoned_) break;
      wait_s *= 2;
    }
    ++result.attempts;
    try {
      result.size_bytes = CopyCheckpoint(entry.path, settings_, &abandoned_);
      result.copied = true;
      result.problem.clear();
    } catch (const std::exception& error) {
      result.problem = error.what();
    }
  }
  result.copy_time_s = SecondsSince(start);
  return result;
}

void CheckpointCopier::Run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kCopierNiceness);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const Entry entry = waiting_.front();
    waiting_.pop_front();
    running_ = {entry.step};
    lock.unlock();
    CopyResult result = Copy(entry);
    lock.lock();
    running_.clear();
    if (result.copied) {
      missing_.erase(entry.step);
      copied_.insert(entry.step);
      unrecorded_.insert(entry.step);
    }
    results_.push_back(std::move(result));
    changed_.notify_all();
  }
}

}  // namespace trainwright

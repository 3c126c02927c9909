#include "lib/packing/shard_folder_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/io/atomic_folder.h"
#include "lib/io/byte_source.h"
#include "lib/io/temporary_file.h"

namespace trainwright {
namespace {

constexpr char kJournalName[] = ".pack-journal";
constexpr char kShardPrefix[] = "shard-";
constexpr char kShardSuffix[] = ".tws";

// A journal is only trusted with names of the one form that this class gives.
bool IsShardName(const std::string& name) {
  return name.starts_with(kShardPrefix) && name.ends_with(kShardSuffix) &&
         name.find('/') == std::string::npos;
}

/// Of what this class opens: "shard-<number>", which gets its final name when it is complete.
bool IsOwnOutput(const std::string& name) {
  if (name == kManifestName) return true;
  return name.starts_with(kShardPrefix) && name.size() > sizeof(kShardPrefix) - 1 &&
         name.find_first_not_of("0123456789", sizeof(kShardPrefix) - 1) == std::string::npos;
}

}  // namespace

// A file that is hashed as it is written.
class ShardFolderWriter::HashingFile final : public ByteSink {
 public:
  explicit HashingFile(std::string path) : file_(std::move(path)) {}
  void Write(ByteSpan bytes) override {
    hash_.Update(bytes);
    file_.Write(bytes);
  }
  void Commit() override { file_.Commit(); }
  const std::string& name() const override { return file_.name(); }
  AtomicFileSink& file() { return file_; }
  Sha256Digest hash() const { return hash_.Digest(); }

 private:
  AtomicFileSink file_;
  Sha256 hash_;
};

ShardFolderWriter::ShardFolderWriter(const std::string& folder) : folder_(WithoutLastSlash(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw SystemError(folder_, "create", error.value());
  lock_ = std::make_unique<FolderLock>(folder_);
  ReadManifest();
  const int temporaries =
      RemoveStaleTemporaries(folder_, IsOwnOutput) + RemoveOldTemporaries(folder_, IsOwnOutput);
  const int shards = ReplayJournal(sealed_);
  if (temporaries + shards > 0) {
    LogWarning(folder_ + ": removed the " + std::to_string(temporaries + shards) +
               " unsealed file(s) that a killed run left");
  }
}

ShardFolderWriter::~ShardFolderWriter() {
  open_.reset();
  try {
    ReadManifest();  // a seal whose last fsync failed has put the new one in place
    ReplayJournal(sealed_);
  } catch (const std::exception&) {  // the next writer will do it
  }
}

void ShardFolderWriter::ReadManifest() {
  const std::string path = PathOf(kManifestName);
  if (!std::filesystem::exists(path)) return;
  const std::vector<uint8_t> text = ReadWholeFile(path);
  try {
    sealed_ = DecodeManifest(std::string(AsText(text)), path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    throw Error(error.code(), error.object(), error.problem(), error.place(),
                "this folder holds something else: choose another with -o, or move that file away");
  }
}

ByteSink* ShardFolderWriter::OpenShard() {
  TRAINWRIGHT_CHECK(open_ == nullptr);
  open_ = std::make_unique<HashingFile>(PathOf(kShardPrefix + std::to_string(written_.size())));
  return open_.get();
}

void ShardFolderWriter::ContinueSealedSet(const std::string& provenance_json) {
  TRAINWRIGHT_CHECK(!sealed_.empty() && written_.empty() && open_ == nullptr);
  written_.assign(sealed_.begin(), sealed_.end() - 1);
  const std::string last = PathOf(sealed_.back().file_name);
  {
    const MappedFile file(last);
    CopyShardAsNotLast(file.bytes(), last, OpenShard());
  }
  CommitEntry(sealed_.back());
  provenance_json_ = provenance_json;
}

void ShardFolderWriter::CommitShard(const ShardWriter& finished) {
  ManifestEntry entry;
  entry.content_sha256 = finished.content_sha256();
  entry.totals = finished.totals();
  entry.provenance_json = provenance_json_;
  CommitEntry(std::move(entry));
}

void ShardFolderWriter::CommitEntry(ManifestEntry entry) {
  TRAINWRIGHT_CHECK(open_ != nullptr);
  entry.file_name = ShardFileName(static_cast<uint32_t>(written_.size()), open_->hash());
  entry.size_bytes = open_->file().size_bytes();
  AppendToJournal({entry.file_name});
  open_->file().SetFinalName(entry.file_name);
  open_->Commit();
  open_.reset();
  written_.push_back(std::move(entry));
}

void ShardFolderWriter::Seal(const ShardSetHeader& header) {
  TRAINWRIGHT_CHECK(open_ == nullptr);
  std::vector<std::string> former;
  for (const ManifestEntry& entry : sealed_) former.push_back(entry.file_name);
  AppendToJournal(former);
  WriteFileAtomically(PathOf(kManifestName), AsBytes(EncodeManifest(header, written_)));
  sealed_ = written_;
  try {
    ReplayJournal(sealed_);
  } catch (const Error& error) {
    LogWarning(folder_ + ": the new set is sealed, but a shard of the former one stays: " + error.what());
  }
}

void ShardFolderWriter::AppendToJournal(const std::vector<std::string>& file_names) {
  std::string lines;
  for (const std::string& name : file_names) lines += name + "\n";
  if (lines.empty()) return;
  AppendDurably(PathOf(kJournalName), lines);
}

int ShardFolderWriter::ReplayJournal(const std::vector<ManifestEntry>& keep) {
  const std::string path = PathOf(kJournalName);
  if (!std::filesystem::exists(path)) return 0;
  SyncFolder(folder_);  // else a power loss could bring back a manifest whose shards are gone
  std::set<std::string> kept;
  for (const ManifestEntry& entry : keep) kept.insert(entry.file_name);
  const std::vector<uint8_t> content = ReadWholeFile(path);
  std::istringstream lines{std::string(AsText(content))};
  int removed = 0;
  for (std::string name; std::getline(lines, name);) {
    // The shard of a line that was cut in the middle does not exist yet.
    if (lines.eof() || !IsShardName(name) || kept.contains(name)) continue;
    if (unlink(PathOf(name).c_str()) == 0) {
      ++removed;
    } else if (errno != ENOENT) {
      throw SystemError(PathOf(name), "delete", errno);
    }
  }
  SyncFolder(folder_);
  unlink(path.c_str());
  return removed;
}

}  // namespace trainwright

#include "lib/documents/token_stream_folder_writer.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/formats/json_text.h"
#include "lib/formats/shard_set.h"
#include "lib/io/atomic_folder.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/temporary_file.h"

namespace trainwright {

TokenStreamFolderWriter::TokenStreamFolderWriter(const std::string& folder)
    : folder_(WithoutLastSlash(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw SystemError(folder_, "create", error.value());
  lock_ = std::make_unique<FolderLock>(folder_);
  ReadManifest();
  ReadJournal();
  const auto is_own = [](const std::string& name) {
    return IsStreamFileName(name) || name == kManifestName || name == kStreamJournalName;
  };
  const int removed = RemoveStaleTemporaries(folder_, is_own) + RemoveOldTemporaries(folder_, is_own);
  if (removed > 0) {
    LogWarning(folder_ + ": removed the " + std::to_string(removed) +
               " unfinished file(s) that a killed run left");
  }
}

void TokenStreamFolderWriter::ReadManifest() {
  const std::string path = Inside(kManifestName);
  if (!std::filesystem::exists(path)) return;
  const std::vector<uint8_t> text = ReadWholeFile(path);
  try {
    sealed_ = DecodeStreamManifest(std::string(AsText(text)), path);
  } catch (const Error& error) {
    throw Error(error.code(), error.object(), error.problem(), error.place(),
                "this folder holds something else: choose another with -o, or move that file away");
  }
  for (const StreamEntry& entry : sealed_) files_.insert(entry.file_name);
}

void TokenStreamFolderWriter::ReadJournal() {
  const std::string path = Inside(kStreamJournalName);
  has_journal_ = std::filesystem::exists(path);
  if (!has_journal_) return;
  const std::vector<uint8_t> content = ReadWholeFile(path);
  std::istringstream lines{std::string(AsText(content))};
  for (std::string line; std::getline(lines, line);) {
    if (lines.eof()) break;  // cut in the middle: its stream is made again
    try {
      const nlohmann::json json = ParseJson(line, path);
      if (json.contains("files")) {
        for (const auto& name : json.at("files").get<std::vector<std::string>>()) {
          if (IsStreamFileName(name)) files_.insert(name);
        }
      } else {
        finished_.push_back(StreamEntryFrom(json));
        files_.insert(finished_.back().file_name);
      }
    } catch (const Error&) {  // a damaged line costs its stream alone
    } catch (const nlohmann::json::exception&) {
    } catch (const std::out_of_range&) {
    }
  }
}

void TokenStreamFolderWriter::WriteJournal(const std::vector<StreamEntry>& candidates) {
  std::string text = CanonicalJson({{"files", files_}}) + "\n";
  for (const StreamEntry& entry : candidates) text += CanonicalJson(ToJson(entry)) + "\n";
  WriteFileAtomically(Inside(kStreamJournalName), AsBytes(text));
  has_journal_ = true;
}

std::string TokenStreamFolderWriter::PathOf(size_t number) const {
  return Inside(StreamFileName(number, keys_[number]));
}

std::vector<StreamEntry> TokenStreamFolderWriter::former() const {
  std::vector<StreamEntry> all = sealed_;
  all.insert(all.end(), finished_.begin(), finished_.end());
  return all;
}

void TokenStreamFolderWriter::Plan(const std::vector<std::string>& keys) {
  TRAINWRIGHT_CHECK(keys_.empty() && !keys.empty());
  keys_ = keys;
  entries_.resize(keys.size());
  const std::vector<StreamEntry> candidates = former();
  std::multimap<std::string, const StreamEntry*> by_key;
  for (const StreamEntry& candidate : candidates) by_key.emplace(candidate.key, &candidate);
  // Before the first change, which a link is: from here on the folder counts as unfinished, unless it is just
  // what is wanted.
  bool as_sealed = !has_journal_ && sealed_.size() == keys.size();
  for (size_t i = 0; as_sealed && i < keys.size(); ++i) {
    as_sealed = sealed_[i].key == keys[i] && sealed_[i].file_name == StreamFileName(i, keys[i]) &&
                IsWhole(sealed_[i], PathOf(i));
    if (as_sealed) entries_[i] = sealed_[i];
  }
  if (as_sealed) return;
  for (size_t i = 0; i < keys.size(); ++i) files_.insert(StreamFileName(i, keys[i]));
  WriteJournal(candidates);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto [begin, end] = by_key.equal_range(keys[i]);
    for (const bool in_place : {true, false}) {
      for (auto candidate = begin; candidate != end && !entries_[i]; ++candidate) {
        const bool is_there = candidate->second->file_name == StreamFileName(i, keys[i]);
        if (is_there == in_place) TakeOver(i, *candidate->second);
      }
    }
  }
}

void TokenStreamFolderWriter::TakeOver(size_t number, const StreamEntry& candidate) {
  const std::string wanted = PathOf(number), there = Inside(candidate.file_name);
  if (!std::filesystem::exists(there) || !IsWhole(candidate, there)) return;
  if (wanted != there) {
    unlink(wanted.c_str());
    if (link(there.c_str(), wanted.c_str()) != 0) return;  // no such links here: it is made again
    SyncFolder(folder_);
  }
  StreamEntry entry = candidate;
  entry.file_name = StreamFileName(number, keys_[number]);
  if (wanted != there) {
    AppendDurably(Inside(kStreamJournalName), CanonicalJson(ToJson(entry)) + "\n");
  }
  entries_[number] = std::move(entry);
}

void TokenStreamFolderWriter::Add(size_t number, const std::string& source, const nlohmann::json& counts) {
  TRAINWRIGHT_CHECK(has_journal_ && !entries_[number]);
  const std::string path = PathOf(number);
  StreamEntry entry = {.file_name = StreamFileName(number, keys_[number]),
                       .size_bytes = std::filesystem::file_size(path),
                       .hash = 0,
                       .key = keys_[number],
                       .source = source,
                       .counts = counts};
  entry.hash = StreamHashOf(path, entry.size_bytes);
  AppendDurably(Inside(kStreamJournalName), CanonicalJson(ToJson(entry)) + "\n");
  entries_[number] = std::move(entry);
}

void TokenStreamFolderWriter::Seal() {
  if (!has_journal_) return;  // as it was
  std::vector<StreamEntry> set;
  for (const std::optional<StreamEntry>& entry : entries_) {
    TRAINWRIGHT_CHECK(entry.has_value());
    set.push_back(*entry);
    files_.erase(entry->file_name);
  }
  WriteFileAtomically(Inside(kManifestName), AsBytes(EncodeStreamManifest(set)));
  for (const std::string& name : files_) {
    if (unlink(Inside(name).c_str()) != 0 && errno != ENOENT)
      throw SystemError(Inside(name), "delete", errno);
  }
  const std::string journal = Inside(kStreamJournalName);
  if (unlink(journal.c_str()) != 0) throw SystemError(journal, "delete", errno);
  SyncFolder(folder_);
}

}  // namespace trainwright

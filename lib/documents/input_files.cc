#include "lib/documents/input_files.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/documents/document_reader.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kKnownNames[] =
    ".txt, .text, .md, .jsonl, .ndjson, .json (with .gz or .zst after it, too), .parquet";

bool HasKnownName(std::string_view name) {
  if (name.ends_with(".parquet")) return true;
  for (const std::string_view compressed : {".gz", ".zst"}) {
    if (name.ends_with(compressed)) name.remove_suffix(compressed.size());
  }
  for (const std::string_view known : {".txt", ".text", ".md", ".jsonl", ".ndjson", ".json"}) {
    if (name.ends_with(known)) return true;
  }
  return false;
}

/// Files beside the data of Hugging Face's datasets, which leaves them out of folders as well.
/// \source datasets, data_files.py, FILES_TO_IGNORE; Dataset.save_to_disk for state.json
bool IsNoteOfDataSet(std::string_view name) {
  constexpr std::string_view kNotes[] = {"README.md",          "config.json",       "dataset_info.json",
                                         "dataset_infos.json", "dataset_dict.json", "state.json"};
  return std::find(std::begin(kNotes), std::end(kNotes), name) != std::end(kNotes);
}

bool IsPattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

struct Entry {
  std::string name;
  bool is_folder = false, is_file = false;
};

/// What a folder holds, links followed, without names that begin with a dot; in no order.
std::vector<Entry> EntriesOf(const std::string& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? "." : folder, error);
  if (error) throw SystemError(folder, "open", error.value());
  std::vector<Entry> found;
  for (const fs::directory_entry& entry : entries) {
    ThrowIfStopped();
    const std::string name = entry.path().filename();
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    const fs::file_type type = entry.status(ignored).type();
    // A link to nothing counts as a file, which cannot be read: skipped, its documents would be missing.
    const bool is_lost = type == fs::file_type::not_found || type == fs::file_type::none;
    found.push_back({name, type == fs::file_type::directory, type == fs::file_type::regular || is_lost});
  }
  return found;
}

std::string Join(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

/// A folder by what it is, whatever its name.
using FolderId = std::pair<dev_t, ino_t>;

FolderId IdOf(const std::string& folder) {
  struct stat info;
  if (stat(folder.empty() ? "." : folder.c_str(), &info) != 0) throw SystemError(folder, "open", errno);
  return {info.st_dev, info.st_ino};
}

/// Every file below `folder`.
/// \param above the folders that lead to it: a link to one of them is a loop
template <typename Use>
void WalkFolder(const std::string& folder, std::vector<FolderId>* above, const Use& use) {
  const FolderId id = IdOf(folder);
  if (std::find(above->begin(), above->end(), id) != above->end()) return;
  above->push_back(id);
  for (const Entry& entry : EntriesOf(folder)) {
    const std::string path = Join(folder, entry.name);
    if (entry.is_folder) {
      WalkFolder(path, above, use);
    } else if (entry.is_file) {
      use(path, entry.name);
    }
  }
  above->pop_back();
}

void MatchPattern(const std::string& folder, const std::vector<std::string>& parts, size_t part,
                  std::vector<FolderId>* above, std::vector<std::string>* found) {
  const std::string& pattern = parts[part];
  const bool last = part + 1 == parts.size();
  if (pattern == "**") {
    const FolderId id = IdOf(folder);
    if (std::find(above->begin(), above->end(), id) != above->end()) return;
    above->push_back(id);
    for (const Entry& entry : EntriesOf(folder)) {
      if (entry.is_folder) MatchPattern(Join(folder, entry.name), parts, part, above, found);
      if (last && entry.is_file) found->push_back(Join(folder, entry.name));
    }
    above->pop_back();
    if (!last) MatchPattern(folder, parts, part + 1, above, found);
    return;
  }
  if (!IsPattern(pattern)) {
    const std::string path = Join(folder, pattern);
    std::error_code ignored;
    if (last && fs::is_regular_file(path, ignored)) found->push_back(path);
    if (!last && fs::is_directory(path, ignored)) MatchPattern(path, parts, part + 1, above, found);
    return;
  }
  std::error_code ignored;
  if (!fs::is_directory(folder.empty() ? "." : folder, ignored)) return;
  for (const Entry& entry : EntriesOf(folder)) {
    if (fnmatch(pattern.c_str(), entry.name.c_str(), FNM_PERIOD) != 0) continue;
    const std::string path = Join(folder, entry.name);
    if (last && entry.is_file) found->push_back(path);
    if (!last && entry.is_folder) MatchPattern(path, parts, part + 1, above, found);
  }
}

std::vector<std::string> FilesOfPattern(const std::string& pattern) {
  std::vector<std::string> parts;
  const std::string root = pattern.starts_with('/') ? "/" : "";
  for (size_t begin = 0; begin < pattern.size();) {
    const size_t end = std::min(pattern.find('/', begin), pattern.size());
    if (end > begin) parts.push_back(pattern.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<std::string> found;
  std::vector<FolderId> above;
  MatchPattern(root, parts, 0, &above, &found);
  if (found.empty()) {
    throw Error(
        ErrorCode::kUsage, pattern, "matches no file", "",
        "* and ? do not match a slash, ** matches any number of folders; names that begin with a dot are "
        "never matched");
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// What a folder stands for, and what is left out of it.
struct FolderFiles {
  std::vector<std::string> found;
  std::set<std::string> notes;  // names of files that only tell of a data set
  size_t note_files = 0, arrow_files = 0, others = 0;
};

FolderFiles FilesBelow(const std::string& folder, bool every_file) {
  FolderFiles files;
  std::vector<FolderId> above;
  WalkFolder(folder, &above, [&](const std::string& path, const std::string& name) {
    if (every_file || (HasKnownName(name) && !IsNoteOfDataSet(name))) {
      files.found.push_back(path);
    } else if (IsNoteOfDataSet(name)) {
      files.notes.insert(name);
      ++files.note_files;
    } else if (name.ends_with(".arrow")) {
      ++files.arrow_files;
    } else {
      ++files.others;
    }
  });
  return files;
}

std::string NamesOfNotes(const FolderFiles& files) {
  std::string names;
  for (const std::string& name : files.notes) names += (names.empty() ? "" : ", ") + name;
  return names;
}

/// \throws Error{kUsage} where a folder stands for no file
void RequireFiles(const std::string& folder, const FolderFiles& files) {
  if (!files.found.empty()) return;
  if (files.arrow_files > 0) {
    throw Error(ErrorCode::kUsage, folder,
                "holds " + FormatNumberOf(files.arrow_files, ".arrow file") +
                    ", which this tool does not read, and nothing that it reads",
                "", kArrowHint);
  }
  if (files.others > 0) {
    throw Error(ErrorCode::kUsage, folder,
                "is a folder without a file whose name implies its format; it holds " +
                    std::to_string(files.others) + " of other names",
                "",
                std::string("known are ") + kKnownNames + "; with --format, every file of a folder is read");
  }
  if (files.note_files > 0) {
    throw Error(ErrorCode::kUsage, folder,
                "is a folder without data: it holds " + NamesOfNotes(files) + ", which describe a data set",
                "", "a file that is named itself is read");
  }
  throw Error(ErrorCode::kUsage, folder, "is a folder without a file", "", "");
}

std::vector<std::string> FilesOfFolder(const std::string& folder, bool every_file) {
  FolderFiles files = FilesBelow(folder, every_file);
  RequireFiles(folder, files);
  if (files.note_files > 0) {
    HoldInfo(folder + ": skipped " + FormatNumberOf(files.note_files, "file") +
             " that may describe a data set, and are read where they are named: " + NamesOfNotes(files));
  }
  if (files.arrow_files > 0) {
    LogWarning(folder + ": does not read " + FormatNumberOf(files.arrow_files, ".arrow file"));
    LogHint(kArrowHint, LogLevel::kWarning);
  }
  if (files.others > 0) {
    HoldInfo(folder + ": skipped " + std::to_string(files.others) + " files whose names imply no format");
  }
  std::sort(files.found.begin(), files.found.end());
  return std::move(files.found);
}

std::vector<std::string> NamesOfList(const std::string& path) {
  constexpr uint64_t kMaxListBytes = uint64_t{1} << 30;
  const std::vector<uint8_t> bytes = ReadWholeFile(path, kMaxListBytes);
  const std::string_view text = AsText(bytes);
  const char mark = text.find('\0') == std::string_view::npos ? '\n' : '\0';
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(mark, begin), text.size());
    std::string_view name = text.substr(begin, end - begin);
    if (mark == '\n' && name.ends_with('\r')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
    begin = end + 1;
  }
  if (names.empty()) {
    throw Error(ErrorCode::kUsage, path == "-" ? "standard input" : path, "is a list without a file", "",
                "--files-from takes one name a line, or names between zero bytes");
  }
  return names;
}

/// Found at the start and not after hours.
void RequireReadable(const std::string& path) {
  if (access(path.c_str(), R_OK) != 0) throw SystemError(path, "open", errno);
}

void Append(const std::string& name, bool may_be_pattern, bool every_file, std::vector<std::string>* files) {
  std::error_code ignored;
  std::vector<std::string> found;
  if (fs::is_directory(name, ignored)) {
    found = FilesOfFolder(name, every_file);
  } else if (may_be_pattern && IsPattern(name) && !fs::exists(name, ignored)) {
    found = FilesOfPattern(name);
  } else {
    found = {name};
  }
  for (std::string& file : found) {
    RequireReadable(file);
    files->push_back(file == "-" ? "./-" : std::move(file));  // "-" alone is standard input
  }
}

void WarnOfRepetition(std::vector<std::string> files) {
  const size_t count = files.size();
  std::sort(files.begin(), files.end());
  const auto repeated = std::adjacent_find(files.begin(), files.end());
  if (repeated == files.end()) return;
  const std::string example = *repeated;
  files.erase(std::unique(files.begin(), files.end()), files.end());
  LogWarning(example + ": is named more than once" +
             (count - files.size() > 1 ? ", as are other inputs" : "") + "; its documents come as often");
}

}  // namespace

std::vector<std::string> ExpandInputs(const InputFilesOptions& options) {
  std::vector<std::string> files;
  for (const std::string& argument : options.arguments) {
    if (argument == "-") {
      files.push_back(argument);
    } else {
      Append(argument, /*may_be_pattern=*/true, options.every_file, &files);
    }
  }
  if (!options.list.empty()) {
    for (const std::string& name : NamesOfList(options.list)) {
      Append(name, /*may_be_pattern=*/false, options.every_file, &files);
    }
  }
  WarnOfRepetition(files);
  return files;
}

}  // namespace trainwright

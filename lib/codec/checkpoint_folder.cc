#include "lib/codec/checkpoint_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/path_inside.h"
#include "lib/io/atomic_folder.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderEnd = ".twc";

Error FileSystemError(const fs::filesystem_error& error) {
  return SystemError(error.path1().string(), "the walk through the folder", error.code().value());
}

void CopyFile(const std::string& from, const std::string& to) {
  const std::unique_ptr<ByteSource> source = OpenSource(from);
  AtomicFileSink sink(to, PermissionsOf(from));
  std::vector<uint8_t> piece(1 << 18);
  while (const size_t count = source->Read(piece.data(), piece.size()))
    sink.Write(ByteSpan(piece).first(count));
  sink.Commit();
}

/// What is below a folder, relative to it, in the order of the names. It is looked for once, so that no file
/// that vanishes meanwhile is missing from the output without a word.
std::vector<fs::path> PathsBelow(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    paths.push_back(entry.path().lexically_relative(folder));
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Calls `take` with each file, relative to `folder`; makes the subfolders and the links to folders below
/// `output`.
/// \param paths as PathsBelow gives them
void ForEachFile(const std::string& folder, const std::vector<fs::path>& paths, const std::string& output,
                 const std::function<void(const std::string&)>& take) {
  for (const fs::path& relative : paths) {
    const fs::path path = fs::path(folder) / relative;
    const fs::file_status status = fs::status(path);
    if (fs::is_directory(status)) {
      if (output.empty()) continue;
      if (fs::is_symlink(path)) {
        fs::copy_symlink(path, output / relative);
      } else {
        fs::create_directory(output / relative);
      }
    } else if (fs::is_regular_file(status)) {
      take(relative.string());
    } else {
      const bool is_there = fs::exists(fs::symlink_status(path));
      throw Error(ErrorCode::kBadInput, path.string(),
                  is_there ? "is neither a file nor a folder" : "was removed while its folder was read");
    }
  }
}

std::string RestoredPath(const std::string& relative) {
  const fs::path path(relative);
  const std::string name = RestoredName(path.filename());
  return name.empty() ? "" : (path.parent_path() / name).string();
}

/// Neither may the output lie in what is read, nor may what is read vanish with what the output replaces.
void RefuseOverlap(const std::string& output, const std::string& input, const CompressJobOptions& options) {
  std::error_code ignored;
  const auto place_of = [&](const std::string& path) {
    return fs::weakly_canonical(WithoutLastSlash(path), ignored);
  };
  const fs::path target = place_of(output);
  if (IsInside(target, place_of(input))) {
    throw Error(ErrorCode::kUsage, output, "is inside the folder to be read", "",
                "choose a place outside with -o");
  }
  std::vector<std::string> all_read = {input, options.base};
  all_read.insert(all_read.end(), options.inputs.begin(), options.inputs.end());
  for (const std::string& read : all_read) {
    if (read.empty() || read == "-" || !IsInside(place_of(read), target)) continue;
    throw Error(ErrorCode::kUsage, output, "holds " + read + ", which is read", "",
                "choose another place with -o");
  }
}

/// Whether a *.safetensors file is compressed already, as those of train --compress-state are.
/// \throws Error{kBadInput} when it is no safetensors file at all
bool HoldsCompressed(const std::string& path) {
  return IsCompressedCheckpoint(*OpenRandomReader(path));
}

/// Likewise, in a folder that is compressed. A file whose header cannot be read counts, so that its fault is
/// named beside what is said about the others.
bool MayHoldCompressed(const std::string& path) {
  try {
    return HoldsCompressed(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    return true;
  }
}

/// The files of a folder to be compressed, by what becomes of them; paths relative to it.
struct FolderFiles {
  std::set<std::string> plain;       ///< to be compressed
  std::set<std::string> kept;        ///< compressed already, under a plain name
  std::set<std::string> compressed;  ///< compressed already, under the name of a compressed file
};

FolderFiles FilesOf(const std::string& folder, const std::vector<fs::path>& paths) {
  FolderFiles files;
  ForEachFile(folder, paths, "", [&](const std::string& relative) {
    const bool has_form = !CompressedName(relative, CompressedForm::kSafetensors).empty();
    const bool is_compressed = has_form && HoldsCompressed(folder + "/" + relative);
    if (!RestoredPath(relative).empty() && (is_compressed || !has_form)) {
      files.compressed.insert(relative);
    } else if (has_form) {
      (is_compressed ? files.kept : files.plain).insert(relative);
    }
  });
  return files;
}

/// Restoring decodes every file that has the name of a compressed one, so that none may be there before;
/// rewriting is about these alone.
void RefuseCompressed(const std::string& folder, const FolderFiles& files, bool rewrites) {
  if (!files.compressed.empty() && !(rewrites && files.plain.empty())) {
    const std::string path = folder + "/" + *files.compressed.begin();
    if (!files.plain.empty()) {
      throw Error(ErrorCode::kUsage, path, "is compressed already, beside files that are not", "",
                  "move it out of the folder, or restore it with -d and remove it");
    }
    throw Error(ErrorCode::kUsage, folder, "is compressed already", path,
                "-d restores it, --to stream or --to safetensors rewrites it");
  }
  if (!files.plain.empty() || !files.compressed.empty()) return;
  if (!files.kept.empty()) {
    throw Error(ErrorCode::kUsage, folder, "is compressed already", folder + "/" + *files.kept.begin(),
                "-d restores a file that is named, with -o");
  }
  throw Error(ErrorCode::kBadInput, folder, "holds no *.safetensors", "", "name the folder of a checkpoint");
}

/// Of a folder without a file that has the name of a compressed one.
Error NothingCompressed(const std::string& folder) {
  const FolderFiles files = FilesOf(folder, PathsBelow(folder));
  if (files.kept.empty()) {
    return Error(ErrorCode::kBadInput, folder, "holds no compressed file", "",
                 "name a folder that ckpt-compress wrote");
  }
  return Error(ErrorCode::kBadInput, folder, "holds no file by the name of a compressed one",
               "but " + *files.kept.begin() + " is compressed", "name the file itself, and another with -o");
}

/// \param relative what `from` becomes in the output
void RefuseTaken(const std::string& folder, const std::string& from, const std::string& relative) {
  std::error_code ignored;
  if (!fs::exists(folder + "/" + relative, ignored)) return;
  throw Error(ErrorCode::kUsage, from, "would take the place of another file", relative,
              "move one of the two out of the folder");
}

/// Gives the folders below `to`, and it, the permissions of those of the same names below `from`.
void CopyFolderPermissions(const std::string& from, const std::string& to) {
  std::vector<fs::path> folders = {to};
  for (const auto& entry : fs::recursive_directory_iterator(to)) {
    if (entry.is_directory() && !entry.is_symlink()) folders.push_back(entry.path());
  }
  // The innermost first: one that may not be written to keeps nothing from what is in it.
  std::sort(folders.rbegin(), folders.rend());
  for (const fs::path& folder : folders) {
    const fs::path original = folder == to ? fs::path(from) : fs::path(from) / folder.lexically_relative(to);
    fs::permissions(folder, fs::status(original).permissions());
  }
}

/// Keeps others out of a folder until it has its permissions.
void HideFolder(const std::string& folder) {
  fs::permissions(folder, fs::perms::owner_all);
}

/// Its name where it has one: "." and ".." have none.
std::string NamedFolder(const std::string& folder) {
  const std::string path = WithoutLastSlash(folder);
  const fs::path name = fs::path(path).filename();
  std::error_code error;
  const fs::path canonical = name == "." || name == ".." ? fs::canonical(path, error) : fs::path(path);
  return error ? path : canonical.string();
}

/// \returns empty when there is none
std::string BaseOfName(const std::string& base_folder, const std::string& name) {
  std::error_code ignored;
  for (const std::string& candidate : {name, CompressedName(name, CompressedForm::kSafetensors),
                                       CompressedName(name, CompressedForm::kStream)}) {
    const std::string path = base_folder + "/" + candidate;
    if (!candidate.empty() && fs::is_regular_file(path, ignored)) return path;
  }
  return "";
}

}  // namespace

std::string CompressedFolderName(const std::string& folder) {
  return NamedFolder(folder) + std::string(kFolderEnd);
}

std::string RestoredFolderName(const std::string& folder) {
  const std::string path = NamedFolder(folder);
  if (!path.ends_with(kFolderEnd) || fs::path(path).filename() == kFolderEnd) return "";
  return path.substr(0, path.size() - kFolderEnd.size());
}

CompressJobOptions OptionsFor(const std::string& path, const std::string& folder,
                              const CompressJobOptions& options) {
  CompressJobOptions file_options = options;
  std::error_code ignored;
  if (!options.base.empty() && fs::is_directory(options.base, ignored)) {
    const std::string relative = fs::path(path).lexically_relative(folder).string();
    const std::string restored = RestoredPath(relative);
    file_options.base = BaseOfName(options.base, restored.empty() ? relative : restored);
  }
  return file_options;
}

CompressReport CompressFolder(const std::string& input, const std::string& output,
                              const CompressJobOptions& options) {
  RefuseOverlap(output, input, options);
  CompressReport report;
  bool has_base = options.base.empty();
  try {
    const std::vector<fs::path> paths = PathsBelow(input);
    const FolderFiles files = FilesOf(input, paths);
    RefuseCompressed(input, files, options.compressed_input == CompressedInput::kRewrite);
    AtomicFolder folder(output, options.force);
    HideFolder(folder.temporary());
    ForEachFile(input, paths, folder.temporary(), [&](const std::string& relative) {
      const std::string from = input + "/" + relative;
      const bool compressed = files.compressed.contains(relative);
      if (!compressed && !files.plain.contains(relative)) {
        if (files.kept.contains(relative)) report.kept.push_back(from);
        RefuseTaken(folder.temporary(), from, relative);
        CopyFile(from, folder.temporary() + "/" + relative);
        return;
      }
      CompressJobOptions file_options = OptionsFor(from, input, options);
      file_options.form = options.form.value_or(CompressedForm::kSafetensors);
      has_base = has_base || !file_options.base.empty();
      const std::string to =
          CompressedName(compressed ? RestoredPath(relative) : relative, *file_options.form);
      RefuseTaken(folder.temporary(), from, to);
      report.Add(CompressFile(from, folder.temporary() + "/" + to, file_options));
    });
    if (!has_base) {
      throw Error(ErrorCode::kUsage, options.base, "holds no base for any file of " + input, "",
                  "a base has the name of its file");
    }
    CopyFolderPermissions(input, folder.temporary());
    folder.Commit();
  } catch (const fs::filesystem_error& error) {
    throw FileSystemError(error);
  }
  return report;
}

CompressReport RestoreFolder(const std::string& input, const std::string& output,
                             const CompressJobOptions& options) {
  RefuseOverlap(output, input, options);
  CompressReport report;
  try {
    const std::vector<fs::path> paths = PathsBelow(input);
    AtomicFolder folder(output, options.force);
    HideFolder(folder.temporary());
    ForEachFile(input, paths, folder.temporary(), [&](const std::string& relative) {
      const std::string from = input + "/" + relative, restored = RestoredPath(relative);
      const std::string name = restored.empty() ? relative : restored;
      RefuseTaken(folder.temporary(), from, name);
      if (restored.empty()) {
        CopyFile(from, folder.temporary() + "/" + relative);
      } else {
        report.Add(RestoreFile(from, folder.temporary() + "/" + restored, OptionsFor(from, input, options)));
      }
    });
    if (report.files == 0 && report.lost_files.empty()) throw NothingCompressed(input);
    if (report.files == 0) return report;
    CopyFolderPermissions(input, folder.temporary());
    folder.Commit();
  } catch (const fs::filesystem_error& error) {
    throw FileSystemError(error);
  }
  return report;
}

std::vector<std::string> CompressedFilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  try {
    bool has_named = false;
    ForEachFile(folder, PathsBelow(folder), "", [&](const std::string& relative) {
      const std::string path = WithoutLastSlash(folder) + "/" + relative;
      const bool is_named = !RestoredPath(relative).empty();
      has_named = has_named || is_named;
      const bool has_form = !CompressedName(relative, CompressedForm::kSafetensors).empty();
      if (is_named || (has_form && MayHoldCompressed(path))) paths.push_back(path);
    });
    if (!has_named) throw NothingCompressed(folder);
  } catch (const fs::filesystem_error& error) {
    throw FileSystemError(error);
  }
  return paths;
}

}  // namespace trainwright

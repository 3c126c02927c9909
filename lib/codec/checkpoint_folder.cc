#include "lib/codec/checkpoint_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <utility>

#include "lib/base/error.h"
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
  AtomicFileSink sink(to);
  std::vector<uint8_t> piece(1 << 18);
  while (const size_t count = source->Read(piece.data(), piece.size()))
    sink.Write(ByteSpan(piece).first(count));
  sink.Commit();
}

/// Calls `take` with the path of each file below `folder`, relative to it, in the order of the names; makes
/// the subfolders and the links to folders below `output`.
void ForEachFile(const std::string& folder, const std::string& output,
                 const std::function<void(const std::string&)>& take) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const std::string relative = path.lexically_relative(folder).string();
    const fs::file_status status = fs::status(path);
    if (fs::is_directory(status)) {
      if (output.empty()) continue;
      if (fs::is_symlink(path)) {
        fs::copy_symlink(path, output + "/" + relative);
      } else {
        fs::create_directory(output + "/" + relative);
      }
    } else if (fs::is_regular_file(status)) {
      take(relative);
    } else {
      throw Error(ErrorCode::kBadInput, path.string(), "is neither a file nor a folder");
    }
  }
}

std::string RestoredPath(const std::string& relative) {
  const fs::path path(relative);
  const std::string name = RestoredName(path.filename());
  return name.empty() ? "" : (path.parent_path() / name).string();
}

void RefuseOutputInside(const std::string& input, const std::string& output) {
  std::error_code ignored;
  const fs::path inner = fs::weakly_canonical(output, ignored), outer = fs::canonical(input, ignored);
  if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end()) {
    throw Error(ErrorCode::kUsage, output, "is inside the folder to be read", "",
                "choose a place outside with -o");
  }
}

}  // namespace

std::string CompressedFolderName(const std::string& folder) {
  return WithoutLastSlash(folder) + std::string(kFolderEnd);
}

std::string RestoredFolderName(const std::string& folder) {
  const std::string path = WithoutLastSlash(folder);
  if (!path.ends_with(kFolderEnd) || fs::path(path).filename() == kFolderEnd) return "";
  return path.substr(0, path.size() - kFolderEnd.size());
}

CompressJobOptions OptionsFor(const std::string& path, const std::string& folder,
                              const CompressJobOptions& options) {
  CompressJobOptions file_options = options;
  std::error_code ignored;
  if (!options.base.empty() && fs::is_directory(options.base, ignored)) {
    const std::string relative = fs::path(path).lexically_relative(folder).string();
    const std::string plain = RestoredPath(relative).empty() ? relative : RestoredPath(relative);
    file_options.base.clear();
    for (const std::string& candidate :
         {options.base + "/" + plain,
          options.base + "/" + CompressedName(plain, CompressedForm::kSafetensors)}) {
      if (!fs::is_regular_file(candidate, ignored)) continue;
      file_options.base = candidate;
      break;
    }
  }
  return file_options;
}

CompressReport CompressFolder(const std::string& input, const std::string& output,
                              const CompressJobOptions& options) {
  RefuseOutputInside(input, output);
  AtomicFolder folder(output, options.force);
  const CompressedForm form = options.form.value_or(CompressedForm::kSafetensors);
  CompressReport report;
  try {
    ForEachFile(input, folder.temporary(), [&](const std::string& relative) {
      const std::string from = input + "/" + relative, to = folder.temporary() + "/" + relative;
      const std::string compressed = CompressedName(relative, form);
      if (!compressed.empty()) {
        CompressJobOptions file_options = OptionsFor(from, input, options);
        file_options.form = form;
        file_options.compressed_input = CompressedInput::kCompress;
        report.Add(CompressFile(from, folder.temporary() + "/" + compressed, file_options));
      } else if (!RestoredPath(relative).empty()) {
        throw Error(ErrorCode::kUsage, from,
                    "has the name of a compressed file, so that it would not come back", "",
                    "restore or rename it first");
      } else {
        CopyFile(from, to);
      }
    });
    if (report.files == 0) {
      throw Error(ErrorCode::kBadInput, input, "holds no *.safetensors", "",
                  "name the folder of a checkpoint");
    }
    folder.Commit();
  } catch (const fs::filesystem_error& error) {
    throw FileSystemError(error);
  }
  return report;
}

CompressReport RestoreFolder(const std::string& input, const std::string& output,
                             const CompressJobOptions& options) {
  RefuseOutputInside(input, output);
  AtomicFolder folder(output, options.force);
  CompressReport report;
  try {
    ForEachFile(input, folder.temporary(), [&](const std::string& relative) {
      const std::string from = input + "/" + relative, restored = RestoredPath(relative);
      if (restored.empty()) {
        CopyFile(from, folder.temporary() + "/" + relative);
      } else {
        report.Add(RestoreFile(from, folder.temporary() + "/" + restored, OptionsFor(from, input, options)));
      }
    });
    if (report.files == 0)
      throw Error(ErrorCode::kBadInput, input, "holds no compressed file", "",
                  "name a folder that ckpt-compress wrote");
    folder.Commit();
  } catch (const fs::filesystem_error& error) {
    throw FileSystemError(error);
  }
  return report;
}

std::vector<std::string> CompressedFilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  try {
    ForEachFile(folder, "", [&](const std::string& relative) {
      if (!RestoredPath(relative).empty()) paths.push_back(WithoutLastSlash(folder) + "/" + relative);
    });
  } catch (const fs::filesystem_error& error) {
    throw FileSystemError(error);
  }
  if (paths.empty())
    throw Error(ErrorCode::kBadInput, folder, "holds no compressed file", "",
                "name a folder that ckpt-compress wrote");
  return paths;
}

}  // namespace trainwright

#include "lib/cli/named_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"
#include "lib/io/output_link.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

/// Whether two paths lead to one file, or would if it were there.
bool IsSamePlace(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  const auto place_of = [&](const std::string& path) {
    const fs::path place = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
    return place.has_filename() ? place : place.parent_path();  // "a/" is "a"
  };
  return place_of(a) == place_of(b);
}

/// Whether a summary of this name would be a file in place of what has it.
bool IsWrittenAsFile(const std::string& summary) {
  std::error_code ignored;
  return !summary.empty() && summary != "-" && !OutputDescriptor(summary) &&
         !fs::is_other(fs::status(summary, ignored));
}

bool IsBehindStandardOutput(const std::string& path) {
  struct stat output, file;
  return fstat(STDOUT_FILENO, &output) == 0 && S_ISREG(output.st_mode) && stat(path.c_str(), &file) == 0 &&
         file.st_dev == output.st_dev && file.st_ino == output.st_ino;
}

/// Whether there is something in a file that is no summary of a tool.
bool HoldsSomethingElse(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 64> buffer = {};
  file.read(buffer.data(), buffer.size());
  const std::string_view start(buffer.data(), static_cast<size_t>(file.gcount()));
  return !start.empty() && !start.starts_with("{\n  \"schema\": \"trainwright.");
}

bool IsNameOfShards(const std::string& path) {
  const fs::path name = fs::path(path).filename();
  return name == "MANIFEST.json" || name.extension() == ".tws" || name.extension() == ".tok";
}

Error Refused(const std::string& summary, const std::string& problem) {
  return Error(ErrorCode::kUsage, "--summary", summary + " " + problem, "", "name another file");
}

}  // namespace

void RefuseToReplaceNamed(const NamedFile& output, const std::vector<NamedFile>& others) {
  std::error_code ignored;
  if (IsStandardOutput(output.path) || !fs::is_regular_file(output.path, ignored)) return;
  for (const NamedFile& other : others) {
    if (!fs::equivalent(output.path, other.path, ignored)) continue;
    throw Error(
        ErrorCode::kUsage, output.path,
        "is an input, the file of " + other.option + ", which the output would replace", "",
        output.option == "--output" ? "choose another -o" : "choose another file for " + output.option);
  }
}

void RefuseSummaryOver(const std::string& summary, const std::vector<NamedFile>& files) {
  if (!IsWrittenAsFile(summary)) return;
  if (IsBehindStandardOutput(summary)) throw Refused(summary, "is the file that standard output goes to");
  for (const NamedFile& file : files) {
    if (file.path.empty() || file.path == "-") continue;
    if (!IsFolderPath(file.path)) {
      if (IsSamePlace(summary, file.path)) throw Refused(summary, "is the file of " + file.option);
      continue;
    }
    if (!IsSamePlace(FolderOf(summary), file.path)) continue;
    if (IsNameOfShards(summary) || HoldsSomethingElse(summary))
      throw Refused(summary, "is a file of the folder " + file.path + ", which " + file.option + " names");
  }
}

bool SummaryReplacesOther(const std::string& summary) {
  return IsWrittenAsFile(summary) && HoldsSomethingElse(summary);
}

}  // namespace trainwright

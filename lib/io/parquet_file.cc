#include "lib/io/parquet_file.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/base/version.h"

namespace trainwright {
namespace {

constexpr char kPluginName[] = "libtrainwright_parquet.so";
constexpr char kBuildHint[] =
    "scripts/fetch_arrow.sh fetches what it needs, and the next build makes it; or write the text as JSON "
    "lines";

/// Where the plugin is; empty when it is nowhere.
std::string PluginPath() {
  namespace fs = std::filesystem;
  if (const char* named = std::getenv("TRAINWRIGHT_PARQUET_PLUGIN"); named != nullptr && *named != '\0') {
    return named;
  }
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return "";
  for (const fs::path& path :
       {folder / kPluginName, folder.parent_path() / "libexec" / "trainwright" / kPluginName}) {
    if (fs::exists(path, error)) return path.string();
  }
  return "";
}

const ParquetPlugin* LoadPlugin(const std::string& file) {
  const std::string path = PluginPath();
  if (path.empty()) {
    throw Error(ErrorCode::kUsage, file,
                "is a parquet file, and this installation is without its part that reads them, " +
                    std::string(kPluginName),
                "", kBuildHint);
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(ErrorCode::kUsage, file, "cannot be read as parquet: " + std::string(dlerror()), "",
                kBuildHint);
  }
  const auto entry = reinterpret_cast<ParquetPluginEntry>(dlsym(library, kParquetPluginEntry));
  const ParquetPlugin* plugin = entry == nullptr ? nullptr : entry();
  if (plugin == nullptr || plugin->interface != kParquetPluginInterface ||
      std::string_view(plugin->trainwright_version) != TRAINWRIGHT_VERSION) {
    throw Error(ErrorCode::kUsage, path, "does not belong to this program, trainwright " TRAINWRIGHT_VERSION,
                "", "build both from the same sources");
  }
  return plugin;
}

/// Loaded once; a plugin is never unloaded.
const ParquetPlugin* PluginFor(const std::string& file) {
  static const ParquetPlugin* const plugin = LoadPlugin(file);
  return plugin;
}

FileState StateOfRegularFile(const std::string& path) {
  const std::optional<FileState> state = path == "-" ? std::nullopt : StateOf(path);
  if (!state) {
    throw Error(ErrorCode::kUsage, path == "-" ? "standard input" : path,
                "cannot be read as parquet, which begins at its end", "", "save it to a file");
  }
  return *state;
}

}  // namespace

ParquetFile::ParquetFile(std::string path, const std::vector<std::string>& columns)
    : path_(std::move(path)), state_(StateOfRegularFile(path_)), column_count_(columns.size()) {
  plugin_ = PluginFor(path_);
  std::vector<const char*> names;
  for (const std::string& column : columns) names.push_back(column.c_str());
  ParquetStatus status = ParquetStatus::kDone;
  reader_ = plugin_->open(path_.c_str(), names.data(), names.size(), &status);
  try {
    if (status != ParquetStatus::kDone) Throw(status);
  } catch (...) {
    plugin_->close(reader_);
    throw;
  }
}

ParquetFile::~ParquetFile() {
  plugin_->close(reader_);
}

void ParquetFile::RequirePlugin(const std::string& path) {
  PluginFor(path);
}

uint64_t ParquetFile::rows() const {
  return plugin_->rows(reader_);
}

const ParquetColumn& ParquetFile::column(size_t index) const {
  return plugin_->columns(reader_)[index];
}

std::string ParquetFile::column_names() const {
  return plugin_->column_names(reader_);
}

void ParquetFile::Seek(uint64_t row) {
  row_ = row;
  const ParquetStatus status = plugin_->seek(reader_, row);
  if (status != ParquetStatus::kDone) Throw(status);
}

ParquetRows ParquetFile::Next(uint64_t max_rows) {
  ThrowIfStopped();
  const ParquetCell* cells = nullptr;
  size_t rows = 0;
  const ParquetStatus status = plugin_->next(reader_, max_rows, &cells, &rows);
  // What was written into the middle of a page may still be one.
  ThrowIfWrittenSince(state_, path_);
  if (status == ParquetStatus::kDone) return {};
  if (status != ParquetStatus::kRows) Throw(status);
  row_ += rows;
  return {rows, {cells, rows * column_count_}};
}

void ParquetFile::Throw(ParquetStatus status) const {
  const std::string problem = plugin_->problem(reader_);
  if (status == ParquetStatus::kCannotOpen) {
    throw Error(ErrorCode::kIo, path_, "open failed: " + problem, "", "check the path and its permissions");
  }
  throw Error(ErrorCode::kBadInput, path_, "is damaged or no parquet file: " + problem,
              row_ > 0 ? "after row " + std::to_string(row_) : "");
}

}  // namespace trainwright

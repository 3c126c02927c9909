#include "lib/bench/metric_file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace trainwright {
namespace {

std::optional<std::string> TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return std::nullopt;
  return std::move(text).str();
}

}  // namespace

MetricFile::MetricFile(std::string path) : path_(std::move(path)) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(path_, absent)) return;
  before_ = SettledStateOf(path_);
  if (const std::optional<std::string> text = TextOf(path_)) content_before_ = Sha256Of(AsBytes(*text));
}

std::string MetricFile::Read() const {
  std::optional<std::string> text = TextOf(path_);
  const auto is_as_before = [&] {
    const std::optional<FileState> now = StateOf(path_);
    return now && IsSameFile(*before_, *now) && !WasWrittenTo(*before_, *now);
  };
  if (!text || (before_ && is_as_before())) {
    throw Error(ErrorCode::kBadInput, path_, "was not written by the command", "", "see --metric-file");
  }
  const uint64_t size_before = before_ ? before_->size_bytes : 0;
  if (size_before > 0 && text->size() > size_before &&
      Sha256Of(AsBytes(*text).first(size_before)) == content_before_) {
    throw Error(ErrorCode::kBadInput, path_,
                "begins with what was there before the run: the command adds to it", "",
                "{dir} in --metric-file and in the command names a file of each run's own");
  }
  return *std::move(text);
}

}  // namespace trainwright

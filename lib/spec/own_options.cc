#include "lib/spec/own_options.h"

#include <charconv>
#include <cmath>

namespace trainwright {
namespace {

std::string NamesOf(const OwnOptions& options) {
  std::string names;
  for (const auto& [name, value] : options) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

OwnOptions ParseOwnOptions(const std::vector<std::string>& asked, const std::string& flag) {
  OwnOptions options;
  for (const std::string& text : asked) {
    const size_t equals = text.find('=');
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [parsed, status] =
        std::from_chars(equals == std::string::npos ? end : text.data() + equals + 1, end, value);
    if (equals == 0 || status != std::errc() || parsed != end || !std::isfinite(value)) {
      throw Error(ErrorCode::kUsage, flag, "'" + text + "' is not NAME=NUMBER");
    }
    if (!options.emplace(text.substr(0, equals), value).second) {
      throw Error(ErrorCode::kUsage, flag, "gives '" + text.substr(0, equals) + "' twice");
    }
  }
  return options;
}

std::vector<std::string> FormatOwnOptions(const OwnOptions& options) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : options) {
    char text[32];  // the shortest that reads back as the same number takes 24
    const auto [end, status] = std::to_chars(text, text + sizeof(text), value);
    TRAINWRIGHT_CHECK(status == std::errc());
    texts.push_back(name + "=" + std::string(text, end));
  }
  return texts;
}

OwnOptions WithDefaults(const OwnOptions& said, const OwnOptions& defaults, ErrorCode code,
                        const std::string& whose) {
  OwnOptions options = said;
  for (const auto& [name, value] : said) {
    if (defaults.contains(name)) continue;
    throw Error(code, whose, "has no option '" + name + "' of its own", "",
                defaults.empty() ? "it has none" : "it has " + NamesOf(defaults));
  }
  options.insert(defaults.begin(), defaults.end());
  return options;
}

}  // namespace trainwright

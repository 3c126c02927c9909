#include "lib/loading/sample_caps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_fields.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr char kCapsFlag[] = "--num-samples";
constexpr uint64_t kMostCapsBytes = 1 << 24;

/// What is called alike has one number in the file for both.
void RefuseEqualNames(std::span<const ShardSetPart> parts) {
  std::map<std::string, std::string> paths;
  for (const ShardSetPart& part : parts) {
    const auto [found, is_new] = paths.emplace(BaseNameOf(part.name), part.name);
    if (is_new) continue;
    throw Error(ErrorCode::kUsage, kCapsFlag,
                "names sets by the last part of their paths, which " + found->second + " and " + part.name +
                    " have in common",
                "", "give one of them another name, as by a link to it");
  }
}

}  // namespace

std::string BaseNameOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const size_t slash = path.find_last_of('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

std::map<std::string, uint64_t> ReadSampleCaps(const std::string& path) {
  const std::vector<uint8_t> bytes = ReadWholeFile(path, kMostCapsBytes);
  const nlohmann::json json = ParseJson(AsText(bytes), path);
  const auto refuse = [&] {
    throw Error(ErrorCode::kBadInput, path, "is no JSON object of whole numbers by names of sets", "",
                R"(write {"nli.tws": 50000, "qa": 20000})");
  };
  if (!json.is_object()) refuse();
  std::map<std::string, uint64_t> caps;
  for (const auto& [name, value] : json.items()) {
    if (!IsWholeNumber<uint64_t>(value)) refuse();
    caps[name] = value.get<uint64_t>();
  }
  return caps;
}

std::vector<uint64_t> SampleCapsOf(std::span<const ShardSetPart> parts, uint64_t most,
                                   const std::string& path) {
  std::vector<uint64_t> caps(parts.size(), most);
  if (path.empty()) return caps;
  RefuseEqualNames(parts);
  const std::map<std::string, uint64_t> named = ReadSampleCaps(path);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = BaseNameOf(parts[i].name);
    const auto found = named.find(name);
    if (found == named.end()) {
      throw Error(ErrorCode::kUsage, kCapsFlag,
                  path + " does not say how many samples to take of \"" + name + "\"", "",
                  "add it: {\"" + name + "\": 50000}");
    }
    if (found->second == 0) {
      throw Error(ErrorCode::kUsage, kCapsFlag, path + " takes no sample of \"" + name + "\"", "",
                  "leave the set out of --data");
    }
    caps[i] = most == 0 ? found->second : std::min(most, found->second);
  }
  return caps;
}

}  // namespace trainwright

#include "lib/model/object_file.h"

#include <cstdint>
#include <filesystem>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr uint64_t kMostBytes = 1 << 24;

}  // namespace

nlohmann::ordered_json ReadObjectFile(const std::string& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  nlohmann::ordered_json object = OrderedJsonOf(AsText(ReadWholeFile(path, kMostBytes)));
  if (!object.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  return object;
}

}  // namespace trainwright

#include "lib/eval/identity.h"

#include <charconv>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"

namespace trainwright {
namespace {

constexpr size_t kShownDigits = 12;  // of a hash

std::string Describe(const std::string& what, const nlohmann::ordered_json& identity) {
  const nlohmann::ordered_json& path = identity.at("path");
  return what + (path.is_string() ? " " + path.get<std::string>() : "") + " (sha256 " +
         identity.at("sha256").get<std::string>().substr(0, kShownDigits) + ")";
}

}  // namespace

std::string DescribeIdentity(const Checkpoint& checkpoint, const nlohmann::ordered_json& data) {
  std::string text = Describe("model", checkpoint.model_identity);
  if (checkpoint.adapter_identity.is_object())
    text += ", " + Describe("adapter", checkpoint.adapter_identity);
  return text + ", " + Describe("data", data);
}

void RefuseToReplaceModel(const std::string& output, const Checkpoint& checkpoint) {
  std::vector<std::string> folders = {checkpoint.named, checkpoint.folder};
  if (checkpoint.adapter_identity.is_object()) {
    folders.push_back(checkpoint.adapter_identity.at("path").get<std::string>());
  }
  RefuseToReplaceInputs(output, folders);
}

Sha256Digest WeightsDigestOf(const Checkpoint& checkpoint) {
  const std::string model = checkpoint.model_identity.at("sha256").get<std::string>();
  if (checkpoint.adapter_identity.is_object()) {
    return Sha256Of(AsBytes(model + checkpoint.adapter_identity.at("sha256").get<std::string>()));
  }
  Sha256Digest digest{};
  TRAINWRIGHT_CHECK(model.size() == 2 * digest.size());
  for (size_t i = 0; i < digest.size(); ++i) {
    const char* const digits = model.data() + 2 * i;
    const auto [end, status] = std::from_chars(digits, digits + 2, digest[i], 16);
    TRAINWRIGHT_CHECK(status == std::errc() && end == digits + 2);
  }
  return digest;
}

}  // namespace trainwright

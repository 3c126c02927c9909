#include "lib/eval/identity.h"

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

}  // namespace trainwright

#include "lib/eval/rank_input.h"

#include <filesystem>
#include <system_error>

#include "lib/base/error.h"

namespace trainwright {

Facts FactsOf(const Checkpoint& checkpoint, Precision precision) {
  const auto hash_of = [](const nlohmann::ordered_json& identity) {
    return identity.is_object() ? identity.at("sha256").dump() : std::string("none");
  };
  return {{"sha256 of the model", hash_of(checkpoint.model_identity)},
          {"sha256 of the adapter", hash_of(checkpoint.adapter_identity)},
          {"precision", PrecisionName(precision)}};
}

bool IsReadOnce(const std::string& path) {
  std::error_code none;  // a file that is missing is told of where it is opened
  const std::filesystem::file_status status = std::filesystem::status(path, none);
  return path == "-" || std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status) ||
         std::filesystem::is_socket(status);
}

void RefuseSharedPipe(int64_t ranks, const std::string& flag, const std::string& path) {
  if (ranks == 1 || !IsReadOnce(path)) return;
  throw Error(ErrorCode::kUsage, flag,
              (path == "-" ? "standard input" : path) + " can be read once only, and " +
                  std::to_string(ranks) + " ranks are to read it",
              "", "write it to a file that all ranks see, or run one rank");
}

}  // namespace trainwright

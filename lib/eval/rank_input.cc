#include "lib/eval/rank_input.h"

#include "lib/base/error.h"
#include "lib/io/random_reader.h"

namespace trainwright {

Facts FactsOf(const Checkpoint& checkpoint, Precision precision) {
  const auto hash_of = [](const nlohmann::ordered_json& identity) {
    return identity.is_object() ? identity.at("sha256").dump() : std::string("none");
  };
  return {{"sha256 of the model", hash_of(checkpoint.model_identity)},
          {"sha256 of the adapter", hash_of(checkpoint.adapter_identity)},
          {"precision", PrecisionName(precision)}};
}

void RefuseSharedPipe(int64_t ranks, const std::string& flag, const std::string& path) {
  if (ranks == 1 || !IsReadOnce(path)) return;
  throw Error(ErrorCode::kUsage, flag,
              (path == "-" ? "standard input" : path) + " can be read once only, and " +
                  std::to_string(ranks) + " ranks are to read it",
              "", "write it to a file that all ranks see, or run one rank");
}

}  // namespace trainwright

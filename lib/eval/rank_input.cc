#include "lib/eval/rank_input.h"

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/io/random_reader.h"

namespace trainwright {
namespace {

constexpr char kNotGiven[] = "not given";

}  // namespace

Facts FactsOf(const Checkpoint& checkpoint, Precision precision) {
  const auto hash_of = [](const nlohmann::ordered_json& identity) {
    return identity.is_object() ? identity.at("sha256").dump() : std::string("none");
  };
  return {{"sha256 of the model", hash_of(checkpoint.model_identity)},
          {"sha256 of the adapter", hash_of(checkpoint.adapter_identity)},
          {"precision", PrecisionName(precision)}};
}

Facts FactsOfOptions(const std::vector<OptionValue>& options, const std::vector<std::string>& keys) {
  constexpr size_t kLongest_bytes = 80;  // of a line of a message
  Facts facts;
  for (const OptionValue& option : options) {
    if (std::find(keys.begin(), keys.end(), option.key) == keys.end()) continue;
    const std::string& value = option.value;
    const bool is_short = value.size() <= kLongest_bytes && value.find('\n') == std::string::npos;
    std::string& fact = facts["--" + option.key];
    if (value.empty()) {
      fact = kNotGiven;
    } else {
      fact = is_short ? value : "of sha256 " + HexEncode(Sha256Of(AsBytes(value)));
    }
  }
  return facts;
}

std::string FactOfPath(const std::string& path) {
  return path.empty() ? kNotGiven : "given";
}

void RefuseSharedPipe(int64_t ranks, const std::string& flag, const std::string& path) {
  if (ranks == 1 || !IsReadOnce(path)) return;
  throw Error(ErrorCode::kUsage, flag,
              (path == "-" ? "standard input" : path) + " can be read once only, and " +
                  std::to_string(ranks) + " ranks are to read it",
              "", "write it to a file that all ranks see, or run one rank");
}

}  // namespace trainwright

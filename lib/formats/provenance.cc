#include "lib/formats/provenance.h"

#include "lib/base/bytes.h"
#include "lib/base/version.h"
#include "lib/formats/json_text.h"

namespace trainwright {

std::string MakeProvenance(const std::string& tool, const nlohmann::json& options,
                           const std::vector<ProvenanceInput>& inputs) {
  nlohmann::json provenance = {{"tool", tool}, {"version", TRAINWRIGHT_VERSION}, {"options", options}};
  provenance["inputs"] = nlohmann::json::array();
  for (const ProvenanceInput& input : inputs) {
    nlohmann::json entry = nlohmann::json::object();
    if (!input.hash.empty()) entry["hash"] = input.hash;
    if (!input.provenance_json.empty()) {
      entry["provenance"] = ParseJson(input.provenance_json, "the provenance of an input");
    }
    provenance["inputs"].push_back(std::move(entry));
  }
  return CanonicalJson(provenance);
}

std::string HashName(uint64_t xxh3) {
  std::vector<uint8_t> big_endian;
  for (int shift = 56; shift >= 0; shift -= 8) big_endian.push_back(static_cast<uint8_t>(xxh3 >> shift));
  return "xxh3:" + HexEncode(big_endian);
}

}  // namespace trainwright

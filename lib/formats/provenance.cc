#include "lib/formats/provenance.h"

#include <algorithm>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/version.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

void Collect(const nlohmann::ordered_json& provenance, const std::string& tool,
             std::vector<nlohmann::ordered_json>* all) {
  if (provenance.is_array()) {  // of a mixture
    for (const nlohmann::ordered_json& part : provenance) Collect(part, tool, all);
  }
  if (!provenance.is_object()) return;
  if (provenance.value("tool", nlohmann::ordered_json()) == tool) {
    nlohmann::ordered_json options = provenance.value("options", nlohmann::ordered_json());
    if (options.is_object() && std::find(all->begin(), all->end(), options) == all->end())
      all->push_back(std::move(options));
  }
  const nlohmann::ordered_json inputs = provenance.value("inputs", nlohmann::ordered_json());
  if (!inputs.is_array()) return;
  for (const nlohmann::ordered_json& input : inputs) {
    if (input.is_object()) Collect(input.value("provenance", nlohmann::ordered_json()), tool, all);
  }
}

}  // namespace

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

nlohmann::ordered_json JoinedProvenance(const std::vector<nlohmann::ordered_json>& all) {
  std::vector<nlohmann::ordered_json> distinct;
  const auto add = [](const nlohmann::ordered_json& one, auto* to) {
    if (!one.is_null() && std::find(to->begin(), to->end(), one) == to->end()) to->push_back(one);
  };
  for (const nlohmann::ordered_json& one : all) add(one, &distinct);
  if (distinct.size() <= 1) return distinct.empty() ? nullptr : distinct[0];
  auto joined = nlohmann::ordered_json::array();
  for (const nlohmann::ordered_json& one : distinct) {
    if (!one.is_array()) {
      add(one, &joined);
      continue;
    }
    for (const nlohmann::ordered_json& part : one) add(part, &joined);
  }
  return joined;
}

std::vector<nlohmann::ordered_json> OptionsInProvenance(const nlohmann::ordered_json& provenance,
                                                        const std::string& tool) {
  std::vector<nlohmann::ordered_json> all;
  Collect(provenance, tool, &all);
  return all;
}

std::optional<bool> FlagInProvenance(const nlohmann::ordered_json& provenance, const std::string& tool,
                                     const std::string& name) {
  std::vector<nlohmann::ordered_json> all = OptionsInProvenance(provenance, tool);
  if (tool == "pretokenize") {
    for (nlohmann::ordered_json& options : OptionsInProvenance(provenance, "pack")) {
      if (options.contains("from")) all.push_back(std::move(options));
    }
  }
  std::optional<bool> flag;
  for (const nlohmann::ordered_json& options : all) {
    const nlohmann::ordered_json value = options.value(name, nlohmann::ordered_json());
    if (!value.is_boolean() || flag.value_or(value.get<bool>()) != value.get<bool>()) return std::nullopt;
    flag = value.get<bool>();
  }
  return flag;
}

std::string HashName(uint64_t xxh3) {
  std::vector<uint8_t> big_endian;
  for (int shift = 56; shift >= 0; shift -= 8) big_endian.push_back(static_cast<uint8_t>(xxh3 >> shift));
  return "xxh3:" + HexEncode(big_endian);
}

}  // namespace trainwright

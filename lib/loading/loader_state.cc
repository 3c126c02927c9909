#include "lib/loading/loader_state.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/formats/json_fields.h"

namespace trainwright {
namespace {

void Encode(const LoaderState& state, nlohmann::ordered_json* json) {
  const SampleCursor& cursor = state.cursor;
  nlohmann::ordered_json& place = (*json)["cursor"];
  place = {{"epoch", cursor.epoch}, {"window", cursor.window}, {"sample", cursor.sample}};
  if (cursor.taken > 0) place["taken"] = cursor.taken;
  (*json)["order_fingerprint"] = state.order_fingerprint;
  if (!state.bad_chunks.empty()) (*json)["bad_chunks"] = state.bad_chunks;
}

LoaderState Decode(const nlohmann::json& json, const std::string& path) {
  LoaderState state;
  const nlohmann::json& cursor = json.at("cursor");
  ReadField(cursor, "epoch", path, &state.cursor.epoch);
  ReadField(cursor, "window", path, &state.cursor.window);
  ReadField(cursor, "sample", path, &state.cursor.sample);
  if (cursor.contains("taken")) ReadField(cursor, "taken", path, &state.cursor.taken);
  ReadField(json, "order_fingerprint", path, &state.order_fingerprint);
  if (json.contains("bad_chunks")) state.bad_chunks = json.at("bad_chunks").get<std::vector<uint64_t>>();
  return state;
}

}  // namespace

void EncodeLoaderStates(const LoaderStates& states, nlohmann::ordered_json* json) {
  Encode(states.at(kMainLoader), json);
  if (states.size() == 1) return;
  nlohmann::ordered_json& others = (*json)["loaders"] = nlohmann::ordered_json::object();
  for (const auto& [name, state] : states) {
    if (name != kMainLoader) Encode(state, &others[name]);
  }
}

LoaderStates DecodeLoaderStates(const nlohmann::json& json, const std::string& path) {
  LoaderStates states = {{kMainLoader, Decode(json, path)}};
  if (!json.contains("loaders")) return states;
  for (const auto& [name, state] : json.at("loaders").get_ref<const nlohmann::json::object_t&>()) {
    if (!states.emplace(name, Decode(state, path)).second) {
      throw Error(ErrorCode::kBadInput, path, "states twice where the loader \"" + name + "\" is");
    }
  }
  return states;
}

}  // namespace trainwright

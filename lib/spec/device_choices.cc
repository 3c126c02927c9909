#include "lib/spec/device_choices.h"

#include "lib/base/units.h"

namespace trainwright {

nlohmann::ordered_json EncodeDeviceChoices(const DeviceChoices& choices) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (choices.head_slice_logits > 0) json["head_slice_logits"] = choices.head_slice_logits;
  if (!choices.attention.empty()) json["attention"] = choices.attention;
  for (const DeviceChoices::AttentionTime& time : choices.attention_times) {
    json["attention_s"][time.backend] = time.seconds;
  }
  return json;
}

DeviceChoices DecodeDeviceChoices(const nlohmann::ordered_json& json) {
  DeviceChoices choices;
  choices.head_slice_logits = json.value("head_slice_logits", int64_t{0});
  choices.attention = json.value("attention", std::string());
  if (!json.contains("attention_s")) return choices;
  for (const auto& [backend, seconds] : json.at("attention_s").items()) {
    choices.attention_times.push_back({backend, seconds.get<double>()});
  }
  return choices;
}

std::string FormatAttentionTimes(const DeviceChoices& choices) {
  std::string text;
  for (const DeviceChoices::AttentionTime& time : choices.attention_times) {
    if (!text.empty()) text += ", ";
    text += time.backend + " " + FormatFixed(1e3 * time.seconds, 3) + " ms";
  }
  return text;
}

}  // namespace trainwright

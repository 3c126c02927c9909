#include "lib/spec/device_choices.h"

#include "lib/base/error.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

[[noreturn]] void RefuseType(const char* problem, const nlohmann::ordered_json& json) {
  throw nlohmann::json::type_error::create(302, problem, &json);
}

ProductChoices DecodeProducts(const nlohmann::ordered_json& json) {
  if (!json.is_object()) RefuseType("gemm_kernels must be an object", json);
  ProductChoices products;
  for (const auto& [product, candidate] : json.items()) {
    if (!candidate.is_number_unsigned()) RefuseType("the number of a GEMM's kernel must be at least 0", json);
    products[product] = candidate.get<int64_t>();
  }
  return products;
}

CpuGemms DecodeCpuGemms(const nlohmann::ordered_json& json) {
  try {
    return ParseCpuGemms(json.get<std::string>(), "cpu_kernels", {});
  } catch (const Error& error) {
    RefuseType(error.what(), json);
  }
}

}  // namespace

nlohmann::ordered_json EncodeDeviceChoices(const DeviceChoices& choices) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (choices.head_slice_logits > 0) json["head_slice_logits"] = choices.head_slice_logits;
  if (!choices.attention.empty()) json["attention"] = choices.attention;
  for (const DeviceChoices::AttentionTime& time : choices.attention_times) {
    json["attention_s"][time.backend] = time.seconds;
  }
  for (const auto& [product, candidate] : choices.products) json["gemm_kernels"][product] = candidate;
  if (choices.cpu_gemms) json["cpu_kernels"] = CpuGemmsName(*choices.cpu_gemms);
  return json;
}

DeviceChoices DecodeDeviceChoices(const nlohmann::ordered_json& json) {
  DeviceChoices choices;
  choices.head_slice_logits = json.value("head_slice_logits", int64_t{0});
  choices.attention = json.value("attention", std::string());
  if (json.contains("attention_s")) {
    for (const auto& [backend, seconds] : json.at("attention_s").items()) {
      choices.attention_times.push_back({backend, seconds.get<double>()});
    }
  }
  if (json.contains("gemm_kernels")) choices.products = DecodeProducts(json.at("gemm_kernels"));
  if (json.contains("cpu_kernels")) choices.cpu_gemms = DecodeCpuGemms(json.at("cpu_kernels"));
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

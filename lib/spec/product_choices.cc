#include "lib/spec/product_choices.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr char kSchema[] = "trainwright.product_choices/1";
/// Of the first candidate's time.
constexpr double kWorthwhile = 0.98;

[[noreturn]] void Refuse(const std::string& place, const std::string& problem) {
  throw Error(ErrorCode::kBadInput, place, problem, "",
              "without the file the GEMM kernels are those of the last checkpoint");
}

}  // namespace

int64_t FastestCandidate(const std::vector<double>& seconds) {
  TRAINWRIGHT_CHECK(!seconds.empty());
  size_t fastest = 0;
  for (size_t i = 1; i < seconds.size(); ++i) {
    if (!std::isfinite(seconds[i])) continue;
    if (!std::isfinite(seconds[fastest]) || seconds[i] < seconds[fastest]) fastest = i;
  }
  const bool worthwhile = !std::isfinite(seconds[0]) || seconds[fastest] < kWorthwhile * seconds[0];
  return worthwhile ? static_cast<int64_t>(fastest) : 0;
}

std::string EncodeProductChoices(const ProductChoices& choices) {
  nlohmann::ordered_json json = {{"schema", kSchema}, {"candidates", nlohmann::ordered_json::object()}};
  for (const auto& [product, candidate] : choices) json["candidates"][product] = candidate;
  return json.dump(2) + "\n";
}

ProductChoices DecodeProductChoices(const std::string& text, const std::string& place) {
  const nlohmann::json json = JsonOf(text);
  if (!json.is_object() || json.value("schema", nlohmann::json()) != kSchema) {
    Refuse(place, std::string("is not of the schema ") + kSchema);
  }
  const auto candidates = json.find("candidates");
  if (candidates == json.end() || !candidates->is_object()) Refuse(place, "has no candidates");
  ProductChoices choices;
  for (const auto& [product, candidate] : candidates->items()) {
    if (!candidate.is_number_unsigned()) Refuse(place, "has no candidate of " + product);
    choices[product] = candidate.get<int64_t>();
  }
  return choices;
}

}  // namespace trainwright

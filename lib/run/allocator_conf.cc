#include "lib/run/allocator_conf.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int64_t kDefaultSegmentMb = 20;

/// The whole text as a number.
template <typename Number>
std::optional<Number> NumberOf(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && last == end && !text.empty() ? std::optional(number) : std::nullopt;
}

struct Rule {
  std::function<bool(const std::string& value)> holds;
  std::string means;  ///< what may stand there
};

Rule WholeFrom(int64_t least) {
  return {[least](const std::string& value) { return NumberOf<int64_t>(value).value_or(-1) >= least; },
          "a whole number of at least " + std::to_string(least)};
}

Rule OneOf(const std::vector<std::string>& words) {
  std::string means;
  for (const std::string& word : words) means += (means.empty() ? "" : " or ") + word;
  return {[words](const std::string& value) {
            return std::find(words.begin(), words.end(), value) != words.end();
          },
          means};
}

bool IsPowerOfTwo(const std::string& text) {
  const int64_t number = NumberOf<int64_t>(text).value_or(0);
  return number > 0 && (number & (number - 1)) == 0;
}

/// Splits at commas that stand in no brackets.
std::vector<std::string> SplitEntries(const std::string& text) {
  std::vector<std::string> entries(1);
  int depth = 0;
  for (const char letter : text) {
    depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
    if (letter == ',' && depth <= 0) {
      entries.emplace_back();
    } else {
      entries.back() += letter;
    }
  }
  return entries;
}

/// A number of divisions, or "[256:1,512:2,>:8]": those of sizes in MiB.
bool AreDivisions(const std::string& value) {
  const auto is_division = [](const std::string& text) { return text == "0" || IsPowerOfTwo(text); };
  if (value.empty() || value.front() != '[') return is_division(value);
  if (value.back() != ']' || value.size() < 3) return false;
  for (const std::string& pair : SplitEntries(value.substr(1, value.size() - 2))) {
    const size_t colon = pair.find(':');
    if (colon == std::string::npos) return false;
    const std::string size = pair.substr(0, colon);
    if ((size != ">" && !IsPowerOfTwo(size)) || !is_division(pair.substr(colon + 1))) return false;
  }
  return true;
}

std::map<std::string, Rule> Rules(int64_t segment_mb) {
  const Rule boolean = OneOf({"True", "False"});
  const auto number = [](const std::string& value) { return NumberOf<double>(value).value_or(-1); };
  return {{"backend", OneOf({"native", "cudaMallocAsync"})},
          {"expandable_segments", boolean},
          {"garbage_collection_threshold",
           {[number](const std::string& value) { return number(value) > 0 && number(value) < 1; },
            "a number between 0 and 1"}},
          {"graph_capture_record_stream_reuse", boolean},
          {"large_segment_size_mb", WholeFrom(3)},
          {"max_non_split_rounding_mb", WholeFrom(segment_mb + 1)},
          {"max_split_size_mb", WholeFrom(segment_mb)},
          {"per_process_memory_fraction",
           {[number](const std::string& value) { return number(value) >= 0 && number(value) <= 1; },
            "a number from 0 to 1"}},
          {"pinned_num_register_threads", {&IsPowerOfTwo, "a power of two"}},
          {"pinned_reserve_segment_size_mb", WholeFrom(1)},
          {"pinned_use_background_threads", boolean},
          {"pinned_use_cuda_host_register", boolean},
          {"release_lock_on_cudamalloc", boolean},
          {"roundup_power2_divisions", {&AreDivisions, "a power of two, or a list as [256:1,512:2,>:8]"}}};
}

}  // namespace

void CheckAllocatorConf(const std::string& text, const std::string& flag) {
  std::map<std::string, std::string> values;
  const auto refuse = [&](const std::string& problem, const std::string& hint) {
    throw Error(ErrorCode::kUsage, flag, problem, "", hint);
  };
  for (const std::string& entry : SplitEntries(text)) {
    const size_t colon = entry.find(':');
    if (colon == std::string::npos) {
      refuse("'" + entry + "' is no KEY:VALUE", "as in " + flag + " expandable_segments:True");
    }
    if (!values.emplace(entry.substr(0, colon), entry.substr(colon + 1)).second) {
      refuse("'" + entry.substr(0, colon) + "' is there twice", "leave one of them out");
    }
  }
  const auto segment = values.find("large_segment_size_mb");
  const int64_t segment_mb =
      segment == values.end() ? kDefaultSegmentMb : NumberOf<int64_t>(segment->second).value_or(0);
  const std::map<std::string, Rule> rules = Rules(segment_mb);
  std::string keys;
  for (const auto& [key, rule] : rules) keys += (keys.empty() ? "" : ", ") + key;
  for (const auto& [key, value] : values) {
    const auto rule = rules.find(key);
    if (rule == rules.end()) refuse("'" + key + "' is no key of torch's allocator", "the keys are " + keys);
    if (!rule->second.holds(value)) {
      refuse("'" + value + "' is no value of " + key, "it takes " + rule->second.means);
    }
  }
}

}  // namespace trainwright

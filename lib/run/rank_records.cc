#include "lib/run/rank_records.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr char kHosts[] = "rank_hosts", kMemory[] = "rank_max_memory_bytes",
               kDevice[] = "rank_max_device_bytes";

/// \returns nothing where one is of another type
template <typename Value>
std::vector<Value> ListOf(const nlohmann::ordered_json& record, const char* name) {
  std::vector<Value> values;
  const auto field = record.is_object() ? record.find(name) : record.end();
  if (field == record.end() || !field->is_array()) return {};
  for (const nlohmann::ordered_json& value : *field) {
    if constexpr (std::is_same_v<Value, std::string>) {
      if (!value.is_string()) return {};
    } else {
      if (!value.is_number_integer() || value.get<Value>() < 0) return {};
    }
    values.push_back(value.get<Value>());
  }
  return values;
}

std::string Size(int64_t size_bytes) {
  return FormatBytes(static_cast<uint64_t>(size_bytes));
}

/// "412.00 MiB to 520.00 MiB (rank 3)".
std::string RangeOf(const std::vector<int64_t>& sizes, const RankRecords& ranks) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return *least == *most
             ? Size(*most)
             : Size(*least) + " to " + Size(*most) + " (" + ranks.NameOf(most - sizes.begin()) + ")";
}

}  // namespace

std::string RankRecords::NameOf(int64_t rank) const {
  const std::string name = "rank " + std::to_string(rank);
  const auto place = static_cast<size_t>(rank);
  const bool one_machine =
      std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts[0]; });
  return one_machine || place >= hosts.size() ? name : name + " on " + hosts[place];
}

std::string RankRecords::DescribeMemory() const {
  if (max_memory_bytes.empty()) return "";
  const std::string text = "peak memory of a rank " + RangeOf(max_memory_bytes, *this);
  return max_device_bytes.empty() ? text : text + ", on its device " + RangeOf(max_device_bytes, *this);
}

void EncodeRanks(const RankRecords& ranks, nlohmann::ordered_json* fields) {
  if (!ranks.hosts.empty()) (*fields)[kHosts] = ranks.hosts;
  if (!ranks.max_memory_bytes.empty()) (*fields)[kMemory] = ranks.max_memory_bytes;
  if (!ranks.max_device_bytes.empty()) (*fields)[kDevice] = ranks.max_device_bytes;
}

RankRecords DecodeRanks(const nlohmann::ordered_json& record) {
  return {.hosts = ListOf<std::string>(record, kHosts),
          .max_memory_bytes = ListOf<int64_t>(record, kMemory),
          .max_device_bytes = ListOf<int64_t>(record, kDevice)};
}

}  // namespace trainwright

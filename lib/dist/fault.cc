#include "lib/dist/fault.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr size_t kNamedRanks = 8;

/// Fields are told apart by their lines.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string RankName(int64_t rank) {
  return "rank " + std::to_string(rank);
}

std::string RankNames(const std::vector<int64_t>& ranks) {
  if (ranks.size() == 1) return RankName(ranks[0]);
  const size_t named = std::min(ranks.size(), kNamedRanks);
  const size_t more = ranks.size() - named;
  std::string names = "ranks ";
  for (size_t i = 0; i < named; ++i) {
    if (i > 0) names += i + 1 == named && more == 0 ? " and " : ", ";
    names += std::to_string(ranks[i]);
  }
  return more > 0 ? names + " and " + std::to_string(more) + " more" : names;
}

std::string StoreName(const RankPlace& place) {
  return "the store at " + place.store_host + ":" + std::to_string(place.store_port);
}

Fault FaultOfStore(const RankPlace& place, const std::string& what) {
  if (place.store_is_served) return {-1, StoreName(place), what, place.launcher + " serves it"};
  return {0, RankName(0), what, "it serves " + StoreName(place) + "; its own messages may say why"};
}

Fault DidNotCome(const RankPlace& place, double timeout_s, const std::string& problem) {
  Fault fault = FaultOfStore(place, "did not come within " + FormatFixed(timeout_s, 0) + " s: " + problem);
  fault.hint = "start all ranks; --dist-timeout waits longer; " + StoreName(place) + " is where they meet";
  return fault;
}

std::string EncodeFault(const Fault& fault) {
  return std::to_string(fault.rank) + "\n" + OneLine(fault.who) + "\n" + OneLine(fault.what) + "\n" +
         OneLine(fault.hint);
}

Fault DecodeFault(const std::string& encoded) {
  std::array<std::string, 4> fields;
  size_t begin = 0, field = 0;
  for (; field < fields.size(); ++field) {
    const size_t end = field + 1 < fields.size() ? encoded.find('\n', begin) : encoded.size();
    if (end == std::string::npos) break;
    fields[field] = encoded.substr(begin, end - begin);
    begin = end + 1;
  }
  Fault fault;
  const auto [rest, problem] =
      std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), fault.rank);
  if (field < fields.size() || problem != std::errc() || *rest != '\0') {
    return {-1, "another rank", OneLine(encoded), ""};
  }
  fault.who = fields[1];
  fault.what = fields[2];
  fault.hint = fields[3];
  return fault;
}

Error ErrorOf(const Fault& fault, int64_t self) {
  return Error(ErrorCode::kIo, fault.rank == self ? fault.who + " (this one)" : fault.who, fault.what, "",
               fault.hint);
}

}  // namespace trainwright

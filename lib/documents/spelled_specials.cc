#include "lib/documents/spelled_specials.h"

#include <algorithm>
#include <span>
#include <utility>

namespace trainwright {
namespace {

uint8_t FirstByte(std::string_view text) {
  return static_cast<uint8_t>(text[0]);
}

size_t CharacterBytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return bytes;
}

}  // namespace

bool HasNoData(const std::vector<jinja::Span>& data, uint64_t begin, uint64_t end) {
  const auto ends_before = [](const jinja::Span& span, uint64_t at) { return span.end <= at; };
  const auto span = std::lower_bound(data.begin(), data.end(), begin, ends_before);
  return span == data.end() || span->begin >= end;
}

SpelledSpecials::SpelledSpecials(std::vector<std::string> specials) : specials_(std::move(specials)) {
  std::erase(specials_, "");
  std::sort(specials_.begin(), specials_.end(), [](const std::string& a, const std::string& b) {
    if (FirstByte(a) != FirstByte(b)) return FirstByte(a) < FirstByte(b);
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  for (const std::string& special : specials_) ++first_[FirstByte(special) + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

size_t SpelledSpecials::SizeAt(std::string_view text, const std::vector<jinja::Span>& data, size_t at) const {
  const std::string_view rest = text.substr(at);
  if (rest.empty()) return 0;
  for (uint32_t i = first_[FirstByte(rest)]; i < first_[FirstByte(rest) + 1]; ++i) {
    const std::string& special = specials_[i];
    if (rest.starts_with(special) && HasNoData(data, at, at + special.size())) return special.size();
  }
  return 0;
}

std::vector<SpecialCut> SpelledSpecials::CutsOf(std::string_view text,
                                                const std::vector<jinja::Span>& data) const {
  std::vector<SpecialCut> cuts;
  if (data.empty()) return cuts;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const uint8_t first = FirstByte(rest);
    const auto matches = [&](const std::string& special) { return rest.starts_with(special); };
    const auto begin = specials_.begin() + first_[first], end = specials_.begin() + first_[first + 1];
    const auto longest = std::find_if(begin, end, matches);
    if (longest == end) {
      ++at;
      continue;
    }
    const size_t own = SizeAt(text, data, at);
    const size_t character = CharacterBytes(rest);
    // What the template writes is found first, as by the tokenizer: a cut behind it leaves it whole.
    const size_t next = at + (own > 0 ? own : character);
    const bool alone = own == 0 && std::any_of(longest, end, [&](const std::string& special) {
                         return special.size() == character && matches(special);
                       });
    if (longest->size() > own) cuts.push_back({next, alone ? character : 0});
    at = next;
  }
  return cuts;
}

}  // namespace trainwright

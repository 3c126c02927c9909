#include "lib/tok/character_map.h"

#include <cstring>
#include <utility>

#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr int kMaxMatches = 32;
constexpr size_t kBlockBytes = 1024;

/// By place, whether what is there, up to the next zero byte, is valid UTF-8.
/// \param text ends with a zero byte
std::vector<bool> ValidTails(std::string_view text) {
  std::vector<bool> valid(text.size());
  for (size_t at = text.size(); at-- > 0;) {
    const size_t size = DecodeUtf8(text.substr(at)).size_bytes;
    valid[at] = text[at] == '\0' || (size > 0 && valid[at + size]);
  }
  return valid;
}

}  // namespace

std::string CharacterMap::Read(std::string_view serialized, CharacterMap* map) {
  *map = {};
  if (serialized.empty()) return "";
  uint32_t trie_bytes = 0;
  if (serialized.size() <= sizeof(trie_bytes)) return "its character map is cut short";
  std::memcpy(&trie_bytes, serialized.data(), sizeof(trie_bytes));
  serialized.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes >= serialized.size()) return "its character map is cut short";
  if (trie_bytes == 0 || trie_bytes % kBlockBytes != 0) return "its character map has a trie of an odd size";
  if (serialized.back() != '\0') return "its character map's last replacement has no end";
  CharacterMap read;
  read.units_.resize(trie_bytes / sizeof(Unit));
  std::memcpy(read.units_.data(), serialized.data(), trie_bytes);
  read.replacements_ = serialized.substr(trie_bytes);
  if (!read.IsSound()) return "its character map points outside itself";
  const std::vector<bool> valid = ValidTails(read.replacements_);
  for (const Unit& unit : read.units_) {
    if (unit.is_leaf() && !valid[unit.value()]) return "its character map makes text that is not UTF-8";
  }
  *map = std::move(read);
  return "";
}

bool CharacterMap::IsSound() const {
  const auto children_fit = [this](size_t at) { return ((at ^ units_[at].offset()) | 0xFF) < units_.size(); };
  const Unit& root = units_[0];
  if (!root.bears(0) || root.has_leaf() || root.offset() == 0 || !children_fit(0)) return false;
  for (size_t at = 1; at < units_.size(); ++at) {
    const Unit& unit = units_[at];
    if (unit.is_leaf()) {
      if (unit.value() >= replacements_.size()) return false;
    } else if (!children_fit(at) || (unit.has_leaf() && !units_[at ^ unit.offset()].is_leaf())) {
      return false;
    }
  }
  return true;
}

CharacterMap::Match CharacterMap::Find(std::string_view text) const {
  if (units_.empty()) return {};
  Match match;
  uint32_t leaf = 0;
  uint32_t at = units_[0].offset();
  int matches = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    const Unit unit = units_[at];
    if (!unit.bears(byte)) break;
    at ^= unit.offset();
    if (!unit.has_leaf()) continue;
    match.size_bytes = i + 1;
    leaf = at;
    if (++matches == kMaxMatches) break;
  }
  if (match.size_bytes > 0) match.replacement = ReplacementAt(units_[leaf].value());
  return match;
}

CharacterMap::Match CharacterMap::FindShortest(std::string_view text) const {
  if (units_.empty()) return {};
  uint32_t at = units_[0].offset();
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const bool ends = units_[at ^ static_cast<uint8_t>(text[i])].has_leaf();
    if (!Step(static_cast<uint8_t>(text[i]), &at)) break;
    if (ends) return {ReplacementAt(units_[at].value()), i + 1};
  }
  return {};
}

bool CharacterMap::Step(uint8_t byte, uint32_t* at) const {
  const Unit unit = units_[*at ^ byte];
  if (!unit.bears(byte)) return false;
  *at ^= byte ^ unit.offset();
  return true;
}

CharacterMap::Rules CharacterMap::RulesFrom(std::string_view text) const {
  if (units_.empty()) return Rules::kNone;
  uint32_t at = units_[0].offset();
  for (const char letter : text) {
    const auto byte = static_cast<uint8_t>(letter);
    const bool ends = units_[at ^ byte].has_leaf();
    if (!Step(byte, &at)) return Rules::kNone;
    if (ends) return Rules::kItself;
  }
  return Rules::kLonger;
}

bool CharacterMap::AddNext(std::string_view text, NextCharacters* next) const {
  uint32_t children = units_[0].offset();
  for (const char letter : text) Step(static_cast<uint8_t>(letter), &children);
  const auto visit = [&](uint32_t first, uint32_t last, uint32_t from, auto&& reach) {
    for (uint32_t byte = first; byte <= last; ++byte) {
      if (next->steps_left == 0) return false;
      --next->steps_left;
      uint32_t at = from;
      const bool ends = units_[from ^ byte].has_leaf();
      if (Step(static_cast<uint8_t>(byte), &at) && !reach(byte, at, ends)) return false;
    }
    return true;
  };
  // A byte from 0x80 to 0xC1 begins no character. A rule that ends within one is as bad as one beyond 2^16.
  return visit(0, 0xFF, children, [&](uint32_t lead, uint32_t after_lead, bool ends_in_lead) {
    if (lead >= 0x80 && lead < 0xC2) return true;
    if (lead < 0x80 || lead >= 0xF0 || ends_in_lead) return false;
    return visit(0x80, 0xBF, after_lead, [&](uint32_t second, uint32_t after_second, bool ends_in_second) {
      if (lead < 0xE0) {
        next->below_2_16[(lead & 0x1F) << 6 | (second & 0x3F)] = true;
        return true;
      }
      if (ends_in_second) return false;
      return visit(0x80, 0xBF, after_second, [&](uint32_t third, uint32_t, bool) {
        next->below_2_16[(lead & 0xF) << 12 | (second & 0x3F) << 6 | (third & 0x3F)] = true;
        return true;
      });
    });
  });
}

int CharacterMap::AsciiOf(uint8_t character) const {
  if (units_.empty()) return character;
  const uint32_t at = units_[0].offset() ^ character;
  const Unit unit = units_[at];
  if (!unit.bears(character)) return character;
  const uint32_t children = at ^ unit.offset();
  for (uint32_t byte = 0; byte < 0x80; ++byte) {
    if (units_[children ^ byte].bears(static_cast<uint8_t>(byte))) return -1;
  }
  if (!unit.has_leaf()) return character;
  const std::string_view replacement = ReplacementAt(units_[children].value());
  const bool is_ascii = replacement.size() == 1 && static_cast<uint8_t>(replacement[0]) < 0x80;
  return is_ascii ? replacement[0] : -1;
}

}  // namespace trainwright

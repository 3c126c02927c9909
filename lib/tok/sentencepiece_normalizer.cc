#include "lib/tok/sentencepiece_normalizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr int kMaxUserDefinedMatches = 64;
constexpr uint32_t kWideCharacters = 1 << 16;
constexpr size_t kMostSteps = 8 << 20;

PieceTrie UserDefinedPieces(const SentencePieceModel& model) {
  std::vector<PieceTrie::Entry> entries;
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    if (piece.type == SentencePieceModel::PieceType::kUserDefined && !piece.text.empty()) {
      entries.push_back({piece.text, id});
    }
  }
  return PieceTrie(std::move(entries));
}

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceModel& model, const std::string& name)
    : user_defined_(UserDefinedPieces(model)),
      removes_spaces_(model.remove_extra_whitespaces),
      escapes_spaces_(model.escape_whitespaces),
      has_mark_(model.add_dummy_prefix),
      mark_at_end_(model.treat_whitespace_as_suffix) {
  const std::string problem = CharacterMap::Read(model.character_map, &map_);
  if (!problem.empty()) {
    throw Error(ErrorCode::kBadInput, name, "is a damaged SentencePiece model: " + problem, "",
                kTokenizerHint);
  }
  ReadPlain(model);
}

/// What becomes of most characters, without a look at the trees.
void SentencePieceNormalizer::ReadPlain(const SentencePieceModel& model) {
  plain_.fill(kOther);
  kinds_.resize(kWideCharacters);
  CharacterMap::NextCharacters next{std::vector<bool>(kWideCharacters), kMostSteps};
  using Rules = CharacterMap::Rules;
  for (uint32_t code_point = 0; code_point < kWideCharacters; ++code_point) {
    std::string character;
    AppendUtf8(code_point, &character);
    const int becomes = code_point < 0x80 ? map_.AsciiOf(static_cast<uint8_t>(code_point)) : 0;
    if (becomes < 0 || FindInvalidUtf8(character) != std::string_view::npos) continue;
    const Rules rules = map_.RulesFrom(character);
    const bool is_known = code_point < 0x80 || (rules != Rules::kItself && character != kSpaceMark);
    if (!is_known || (rules != Rules::kNone && !map_.AddNext(character, &next))) continue;
    if (code_point < 0x80) {
      plain_[code_point] = static_cast<uint8_t>(becomes);
    } else if (!user_defined_.MayBegin(character)) {
      kinds_[code_point] = rules == Rules::kNone ? kStays : kStaysUnlessJoined;
    }
  }
  for (uint32_t code_point = 0; code_point < kWideCharacters; ++code_point) {
    if (next.below_2_16[code_point]) kinds_[code_point] |= kJoins;
  }
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.type == SentencePieceModel::PieceType::kUserDefined && !piece.text.empty()) {
      plain_[static_cast<uint8_t>(piece.text[0])] = kOther;
    }
  }
}

void SentencePieceNormalizer::Normalize(std::string_view text, bool mark, std::string* out) const {
  out->clear();
  if (removes_spaces_) {
    while (!text.empty()) {
      const Prefix prefix = PrefixAt(text);
      if (prefix.replacement != " ") break;
      text.remove_prefix(prefix.size_bytes);
    }
  }
  if (text.empty()) return;
  out->reserve(text.size() + text.size() / 8 + 1);
  mark = mark && has_mark_;
  if (mark && !mark_at_end_) out->push_back(' ');
  bool after_space = removes_spaces_;
  for (size_t at = 0; at < text.size();) {
    const size_t plain_end = PlainEnd(text, at);
    if (plain_end > at) {
      AppendPlain(text.substr(at, plain_end - at), &after_space, out);
      at = plain_end;
      continue;
    }
    const size_t wide_end = WidePlainEnd(text, at);
    if (wide_end > at) {
      out->append(text.substr(at, wide_end - at));
      after_space = false;
      at = wide_end;
      continue;
    }
    const Prefix prefix = PrefixAt(text.substr(at));
    AppendPrefix(prefix, &after_space, out);
    at += prefix.size_bytes;
  }
  if (removes_spaces_) out->resize(out->find_last_not_of(' ') + 1);
  if (mark && mark_at_end_) out->push_back(' ');
}

SentencePieceNormalizer::Prefix SentencePieceNormalizer::PrefixAt(std::string_view text) const {
  if (!user_defined_.empty()) {
    size_t longest = 0;
    int matches = 0;
    user_defined_.VisitPrefixes(text.data(), text.data() + text.size(), [&](size_t size, uint32_t) {
      longest = size;
      return ++matches < kMaxUserDefinedMatches;
    });
    if (longest > 0) return {text.substr(0, longest), longest};
  }
  if (const CharacterMap::Match match = map_.Find(text); match.size_bytes > 0) {
    return {match.replacement, match.size_bytes};
  }
  const size_t size = DecodeUtf8(text).size_bytes;
  if (size == 0) return {kReplacement, 1};
  return {text.substr(0, size), size};
}

/// Whether a rule may join what is at `at` to the character before.
bool SentencePieceNormalizer::MayJoin(std::string_view text, size_t at) const {
  if (at == text.size() || static_cast<uint8_t>(text[at]) < 0x80) return false;
  const Utf8Character next = DecodeUtf8(text.substr(at));
  if (next.size_bytes == 0 || next.code_point >= kWideCharacters) return true;
  return (kinds_[next.code_point] & kJoins) != 0;
}

/// The end of what AppendPlain may take from `begin` on.
size_t SentencePieceNormalizer::PlainEnd(std::string_view text, size_t begin) const {
  size_t end = begin;
  while (end < text.size() && plain_[static_cast<uint8_t>(text[end])] != kOther) ++end;
  return end > begin && MayJoin(text, end) ? end - 1 : end;
}

/// The end of the characters from `begin` on that are not ASCII and stay.
size_t SentencePieceNormalizer::WidePlainEnd(std::string_view text, size_t begin) const {
  size_t end = begin;
  while (end < text.size() && static_cast<uint8_t>(text[end]) >= 0x80) {
    const Utf8Character character = DecodeUtf8(text.substr(end));
    if (character.size_bytes == 0 || character.code_point >= kWideCharacters) break;
    const uint8_t kind = kinds_[character.code_point];
    const size_t after = end + character.size_bytes;
    const bool stays = (kind & kStays) != 0 || ((kind & kStaysUnlessJoined) != 0 && !MayJoin(text, after));
    if (!stays) break;
    end = after;
  }
  return end;
}

void SentencePieceNormalizer::AppendPlain(std::string_view text, bool* after_space, std::string* out) const {
  const size_t old_size = out->size();
  out->resize(old_size + text.size());
  char* to = out->data() + old_size;
  if (removes_spaces_) {
    bool skips_space = *after_space;
    for (const char byte : text) {
      const auto becomes = static_cast<char>(plain_[static_cast<uint8_t>(byte)]);
      const bool is_space = becomes == ' ';
      *to = becomes;
      to += is_space && skips_space ? 0 : 1;
      skips_space = is_space;
    }
    *after_space = skips_space;
  } else {
    for (const char byte : text) *to++ = static_cast<char>(plain_[static_cast<uint8_t>(byte)]);
  }
  out->resize(static_cast<size_t>(to - out->data()));
}

void SentencePieceNormalizer::AppendPrefix(const Prefix& prefix, bool* after_space, std::string* out) const {
  std::string_view text = prefix.replacement;
  if (*after_space) text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text.empty()) return;
  *after_space = removes_spaces_ && text.back() == ' ';
  if (!escapes_spaces_ || text.find(kSpaceMark) == std::string_view::npos) {
    out->append(text);
    return;
  }
  while (!text.empty()) {
    const size_t marked = std::min(text.find(kSpaceMark), text.size());
    out->append(text.substr(0, marked));
    text.remove_prefix(marked);
    if (text.empty()) return;
    out->push_back(' ');
    text.remove_prefix(kSpaceMark.size());
  }
}

}  // namespace trainwright

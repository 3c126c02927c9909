#include "lib/tok/reference_byte_level_bpe.h"

#include <algorithm>
#include <set>

#include "lib/base/signals.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

/// The characters of a text; where each begins, and behind them where the text ends.
struct Characters {
  explicit Characters(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const Utf8Character character = DecodeUtf8(text.substr(at));
      code_points.push_back(character.size_bytes == 0 ? PretokenPattern::kBadByte : character.code_point);
      begins.push_back(at);
      at += std::max<size_t>(character.size_bytes, 1);
    }
    begins.push_back(text.size());
  }
  bool Is(size_t index, uint8_t classes) const {
    return code_points[index] != PretokenPattern::kBadByte &&
           (CharacterClasses()[code_points[index]] & classes) != 0;
  }
  std::vector<uint32_t> code_points;
  std::vector<size_t> begins;
};

/// Calls `token(added token)` and `between(text, first)` for the parts of a text.
template <typename OnToken, typename OnText>
void CutAtAddedTokens(std::string_view text, const std::vector<AddedToken>& tokens, bool normalized,
                      OnToken&& on_token, OnText&& on_text) {
  const Characters characters(text);
  const auto flags_at = [&](size_t byte, bool before, uint8_t classes) {
    const auto found = std::lower_bound(characters.begins.begin(), characters.begins.end(), byte);
    auto index = static_cast<size_t>(found - characters.begins.begin());
    if (before && index-- == 0) return false;
    return index < characters.code_points.size() && characters.Is(index, classes);
  };
  size_t done = 0;
  size_t run_begin = 0, run_end = 0;  // the white space that was stripped last
  for (size_t at = 0; at < text.size();) {
    const AddedToken* longest = nullptr;
    for (const AddedToken& token : tokens) {
      if (token.normalized != normalized || !text.substr(at).starts_with(token.pattern)) continue;
      if (longest == nullptr || token.pattern.size() > longest->pattern.size()) longest = &token;
    }
    if (longest == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + longest->pattern.size();
    at = end;
    if (longest->single_word && (flags_at(begin, true, kWord) || flags_at(end, false, kWord))) continue;
    while (longest->left_strip && begin > done && flags_at(begin, true, kSpace)) {
      begin = *(std::lower_bound(characters.begins.begin(), characters.begins.end(), begin) - 1);
    }
    if (longest->right_strip) {
      const bool known = end >= run_begin && end < run_end;
      run_begin = known ? run_begin : end;
      end = known ? run_end : end;
      while (end < text.size() && flags_at(end, false, kSpace)) {
        end = *(std::lower_bound(characters.begins.begin(), characters.begins.end(), end) + 1);
      }
      run_end = end;
    }
    // A match in white space that the token before has stripped: the library takes it again, unless
    // stripping on the left leaves nothing of it.
    if (longest->left_strip && std::max(begin, done) >= end) continue;
    begin = std::max(begin, done);
    if (done < begin) on_text(text.substr(done, begin - done), done == 0);
    on_token(*longest);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done), done == 0);
}

}  // namespace

ReferenceByteLevelBpe::ReferenceByteLevelBpe(TokenizerJson json, const Tokenizer* original)
    : json_(std::move(json)), original_(*original) {
  if (json_.cut_rule != CutRule::kNone) pattern_.emplace(RegularExpressionOf(json_.cut_rule));
  for (const BytePairMerge& merge : json_.merges) merges_[{merge.left, merge.right}] = merge;
  for (uint32_t id = 0; json_.ignore_merges && id < json_.tokens.size(); ++id) {
    const TokenizerJson::Token& token = json_.tokens[id];
    if (token.in_model && token.spells_bytes) whole_pieces_.emplace(token.bytes, id);
  }
}

void ReferenceByteLevelBpe::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*mark=*/true, ids);
}

void ReferenceByteLevelBpe::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, /*mark=*/false, ids);
}

void ReferenceByteLevelBpe::EncodeAll(std::string_view text, bool mark, std::vector<uint32_t>* ids) const {
  CutAtAddedTokens(
      text, json_.added_tokens, /*normalized=*/false,
      [&](const AddedToken& token) { ids->push_back(token.id); },
      [&](std::string_view part, bool first) {
        std::string normalized;
        if (!json_.nfc || !NormalizeNfc(part, &normalized)) normalized = part;
        EncodeNormalized(normalized, mark || !first, ids);
      });
}

void ReferenceByteLevelBpe::EncodeNormalized(std::string_view text, bool mark,
                                             std::vector<uint32_t>* ids) const {
  CutAtAddedTokens(
      text, json_.added_tokens, /*normalized=*/true,
      [&](const AddedToken& token) { ids->push_back(token.id); },
      [&](std::string_view part, bool first) { EncodeText(std::string(part), mark || !first, ids); });
}

void ReferenceByteLevelBpe::EncodeText(std::string text, bool mark, std::vector<uint32_t>* ids) const {
  if (json_.add_prefix_space && mark && !text.starts_with(' ')) text.insert(0, 1, ' ');
  const Characters characters(text);
  const size_t count = characters.code_points.size();
  for (size_t begin = 0; begin < count;) {
    // Digits are cut off first: what is between them is cut as if it were alone.
    size_t stretch_end = begin + 1;
    if (!json_.cut_digits) stretch_end = count;
    if (json_.cut_digits && !characters.Is(begin, kDigit)) {
      while (stretch_end < count && !characters.Is(stretch_end, kDigit)) ++stretch_end;
    }
    const std::span stretch = std::span(characters.code_points).first(stretch_end);
    while (begin < stretch_end) {
      const size_t end = pattern_ ? pattern_->PieceEnd(stretch, begin) : stretch_end;
      const size_t first_byte = characters.begins[begin];
      EncodePiece(std::string_view(text).substr(first_byte, characters.begins[end] - first_byte), ids);
      begin = end;
    }
  }
}

void ReferenceByteLevelBpe::EncodePiece(std::string_view piece, std::vector<uint32_t>* ids) const {
  ThrowIfStopped();
  if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
    ids->push_back(whole->second);
    return;
  }
  std::vector<uint32_t> symbols;
  for (const char byte : piece) {
    if (const uint32_t id = json_.byte_ids[static_cast<uint8_t>(byte)]; id != kNoId) symbols.push_back(id);
  }
  // Symbols by their place, and the places where one merges with the next, by the merge's rank.
  std::map<size_t, uint32_t> at;
  for (size_t i = 0; i < symbols.size(); ++i) at[i] = symbols[i];
  std::set<std::pair<uint32_t, size_t>> candidates;
  using Place = std::map<size_t, uint32_t>::iterator;
  const auto merge_at = [&](Place place) -> const BytePairMerge* {
    const auto next = std::next(place);
    if (next == at.end()) return nullptr;
    const auto found = merges_.find({place->second, next->second});
    return found == merges_.end() ? nullptr : &found->second;
  };
  const auto update = [&](Place place, bool add) {
    const BytePairMerge* merge = merge_at(place);
    if (merge == nullptr) return;
    if (add) {
      candidates.emplace(merge->rank, place->first);
    } else {
      candidates.erase({merge->rank, place->first});
    }
  };
  for (auto place = at.begin(); place != at.end(); ++place) update(place, true);
  while (!candidates.empty()) {
    const auto place = at.find(candidates.begin()->second);
    const auto next = std::next(place);
    const uint32_t merged = merge_at(place)->merged;
    if (place != at.begin()) update(std::prev(place), false);
    update(place, false);
    update(next, false);
    at.erase(next);
    place->second = merged;
    if (place != at.begin()) update(std::prev(place), true);
    update(place, true);
  }
  for (const auto& [place, symbol] : at) ids->push_back(symbol);
}

}  // namespace trainwright

/// Finds added tokens in text slowly, for references: added_token_matcher.h is checked against it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/pretoken_pattern.h"
#include "lib/tok/tokenizer_json.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {

/// The characters of a text; where each begins, and after them where the text ends.
struct ReferenceCharacters {
  explicit ReferenceCharacters(std::string_view text) {
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
  const ReferenceCharacters characters(text);
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

}  // namespace trainwright

#include "lib/tok/added_token_matcher.h"

#include <algorithm>
#include <cstring>

#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

uint8_t ByteAt(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<uint8_t>(text[at]) : 0;
}

uint8_t FlagsOf(const Utf8Character& character) {
  return character.size_bytes == 0 ? 0 : CharacterClasses()[character.code_point];
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens, bool normalized) {
  for (const AddedToken& token : tokens) {
    if (token.normalized == normalized) tokens_.push_back(&token);
  }
  const auto first_byte = [](const AddedToken* token) { return ByteAt(token->pattern, 0); };
  std::sort(tokens_.begin(), tokens_.end(), [&](const AddedToken* a, const AddedToken* b) {
    if (first_byte(a) != first_byte(b)) return first_byte(a) < first_byte(b);
    return a->pattern.size() != b->pattern.size() ? a->pattern.size() > b->pattern.size()
                                                  : a->pattern < b->pattern;
  });
  for (const AddedToken* token : tokens_) {
    const uint32_t first = first_byte(token);
    ++first_[first + 1];
    for (uint32_t second = 0; second < 256; ++second) {
      if (token->pattern.size() == 1 || second == ByteAt(token->pattern, 1))
        beginnings_.set(first | second << 8);
    }
  }
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  if (!tokens_.empty() && first_byte(tokens_.front()) == first_byte(tokens_.back())) {
    only_first_byte_ = first_byte(tokens_.front());
  }
}

const AddedToken* AddedTokenMatcher::LongestAt(std::string_view text, size_t at) const {
  const uint8_t first = ByteAt(text, at);
  if (!beginnings_[first | uint32_t{ByteAt(text, at + 1)} << 8]) return nullptr;
  const std::string_view rest = text.substr(at);
  for (uint32_t i = first_[first]; i < first_[first + 1]; ++i) {
    if (rest.starts_with(tokens_[i]->pattern)) return tokens_[i];
  }
  return nullptr;
}

const AddedToken* AddedTokenMatcher::Find(std::string_view text, size_t* at) const {
  if (tokens_.empty()) return nullptr;
  for (size_t i = *at; i < text.size(); ++i) {
    if (only_first_byte_ >= 0) {
      const void* found = std::memchr(text.data() + i, only_first_byte_, text.size() - i);
      if (found == nullptr) return nullptr;
      i = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    }
    if (const AddedToken* token = LongestAt(text, i)) {
      *at = i;
      return token;
    }
  }
  return nullptr;
}

bool AddedTokenMatcher::BesideWord(std::string_view text, size_t begin, size_t end) {
  return (FlagsOf(LastCharacter(text.substr(0, begin))) & kWord) != 0 ||
         (FlagsOf(DecodeUtf8(text.substr(end))) & kWord) != 0;
}

size_t AddedTokenMatcher::SpacesBegin(std::string_view text, size_t done, size_t end) {
  while (end > done) {
    const Utf8Character before = LastCharacter(text.substr(0, end));
    if ((FlagsOf(before) & kSpace) == 0) return end;
    end -= before.size_bytes;
  }
  return done;
}

size_t WhiteSpaceRuns::EndOf(size_t begin) {
  if (begin >= begin_ && begin < end_) return end_;
  begin_ = end_ = begin;
  for (;;) {
    const Utf8Character next = DecodeUtf8(text_.substr(end_));
    if ((FlagsOf(next) & kSpace) == 0) return end_;
    end_ += next.size_bytes;
    ++characters_read_;
  }
}

}  // namespace trainwright

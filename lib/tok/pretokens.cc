#include "lib/tok/pretokens.h"

#include <algorithm>

#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

struct Step {
  uint8_t flags = 0;  // 0 beyond the end and for a bad byte, too
  size_t size = 0;    // 0 beyond the end
};

class Scanner {
 public:
  Scanner(std::string_view text, const uint8_t* classes) : text_(text), classes_(classes) {}

  Step At(size_t at) const {
    if (at >= text_.size()) return {};
    const auto byte = static_cast<uint8_t>(text_[at]);
    if (byte < 0x80) return {classes_[byte], 1};
    const Utf8Character character = DecodeUtf8(text_.substr(at));
    if (character.size_bytes == 0) return {0, 1};
    return {classes_[character.code_point], character.size_bytes};
  }
  uint8_t ByteAt(size_t at) const { return at < text_.size() ? static_cast<uint8_t>(text_[at]) : 0; }
  bool IsLineEnd(size_t at) const { return ByteAt(at) == '\n' || ByteAt(at) == '\r'; }

  /// The end of the run of characters with `flags` (any of them) that begins at `at`.
  size_t RunEnd(size_t at, uint8_t flags) const {
    for (Step step = At(at); (step.flags & flags) != 0; step = At(at)) at += step.size;
    return at;
  }
  size_t OtherRunEnd(size_t at) const {
    for (Step step = At(at); step.size != 0 && (step.flags & (kLetter | kNumber | kSpace)) == 0;
         step = At(at)) {
      at += step.size;
    }
    return at;
  }

  /// The size of the contraction that begins at an apostrophe, without it; 0 when there is none.
  size_t ContractionSize(size_t at, bool any_case) const {
    uint8_t first = ByteAt(at), second = ByteAt(at + 1);
    if (any_case) {
      // U+017F, the long s, is an s to a regular expression that heeds no case.
      if (first == 0xC5 && second == 0xBF) return 2;
      if (first >= 'A' && first <= 'Z') first = static_cast<uint8_t>(first | 0x20);
      if (second >= 'A' && second <= 'Z') second = static_cast<uint8_t>(second | 0x20);
    }
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 1;
    const bool two =
        (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
    return two ? 2 : 0;
  }

  /// \s+(?!\S)|\s+ : a run of spaces, without its last one when something else follows.
  size_t SpacesEnd(size_t begin) const {
    size_t end = begin, last = begin;
    for (Step step = At(end); (step.flags & kSpace) != 0; step = At(end)) {
      last = end;
      end += step.size;
    }
    return end == text_.size() || last == begin ? end : last;
  }

  size_t Gpt2End(size_t begin) const {
    if (text_[begin] == '\'') {
      if (const size_t size = ContractionSize(begin + 1, false); size != 0) return begin + 1 + size;
    }
    const size_t at = begin + (text_[begin] == ' ' ? 1 : 0);
    const Step step = At(at);
    if ((step.flags & kLetter) != 0) return RunEnd(at, kLetter);
    if ((step.flags & kNumber) != 0) return RunEnd(at, kNumber);
    if (step.size != 0 && (step.flags & kSpace) == 0) return OtherRunEnd(at);
    return SpacesEnd(begin);
  }

  size_t O200kEnd(size_t begin) const {
    if (size_t end = WordEnd(begin); end != 0) {
      if (ByteAt(end) != '\'') return end;
      const size_t size = ContractionSize(end + 1, true);
      return size == 0 ? end : end + 1 + size;
    }
    if ((At(begin).flags & kNumber) != 0) return NumberEnd(begin, 3);
    const size_t other = begin + (text_[begin] == ' ' ? 1 : 0);
    if (size_t end = OtherRunEnd(other); end > other) {
      while (IsLineEnd(end) || ByteAt(end) == '/') ++end;
      return end;
    }
    return LinesOrSpacesEnd(begin, RunEnd(begin, kSpace));
  }

  size_t Llama3End(size_t begin, size_t longest_number, bool trailing_spaces_together = false) const {
    if (text_[begin] == '\'') {
      if (const size_t size = ContractionSize(begin + 1, true); size != 0) return begin + 1 + size;
    }
    const Step first = At(begin);
    if ((first.flags & kLetter) != 0) return RunEnd(begin, kLetter);
    if ((first.flags & kNumber) != 0) return NumberEnd(begin, longest_number);
    if (!IsLineEnd(begin) && (At(begin + first.size).flags & kLetter) != 0) {
      return RunEnd(begin + first.size, kLetter);
    }
    const size_t other = begin + (text_[begin] == ' ' ? 1 : 0);
    if (size_t end = OtherRunEnd(other); end > other) {
      while (IsLineEnd(end)) ++end;
      return end;
    }
    const size_t spaces_end = RunEnd(begin, kSpace);
    if (trailing_spaces_together && spaces_end == text_.size()) return spaces_end;
    return LinesOrSpacesEnd(begin, spaces_end);
  }

 private:
  size_t NumberEnd(size_t begin, size_t longest) const {
    size_t end = begin;
    for (size_t count = 0; count < longest && (At(end).flags & kNumber) != 0; ++count) end += At(end).size;
    return end;
  }

  /// \s*[\r\n]+ reaches to the last line end of the run of spaces.
  size_t LinesOrSpacesEnd(size_t begin, size_t spaces_end) const {
    for (size_t at = spaces_end; at > begin; --at) {
      if (IsLineEnd(at - 1)) return at;
    }
    return SpacesEnd(begin);
  }

  /// The first two alternatives of o200k, without the contraction; 0 when neither matches.
  size_t WordEnd(size_t begin) const {
    const Step first = At(begin);
    const bool may_skip = (first.flags & (kLetter | kNumber)) == 0 && !IsLineEnd(begin);
    const size_t skipped = may_skip ? begin + first.size : begin;
    if (const size_t end = MixedEnd(skipped); end != 0) return end;
    if (may_skip) {
      if (const size_t end = MixedEnd(begin); end != 0) return end;
    }
    if (const size_t capitals = RunEnd(skipped, kCapital); capitals > skipped)
      return RunEnd(capitals, kSmall);
    const size_t capitals = may_skip ? RunEnd(begin, kCapital) : begin;
    return capitals > begin ? RunEnd(capitals, kSmall) : 0;
  }

  /// Capitals* small+, which gives capitals back until one that is small, too, comes next; 0 when there is no
  /// match.
  size_t MixedEnd(size_t begin) const {
    size_t at = begin, small_end = 0;
    Step step = At(at);
    for (; (step.flags & kCapital) != 0; step = At(at)) {
      at += step.size;
      if ((step.flags & kSmall) != 0) small_end = at;
    }
    return (step.flags & kSmall) != 0 ? RunEnd(at, kSmall) : small_end;
  }

  std::string_view text_;
  const uint8_t* classes_;
};

}  // namespace

std::string_view RegularExpressionOf(CutRule rule) {
  switch (rule) {
    case CutRule::kNone:
      break;
    case CutRule::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case CutRule::kLlama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case CutRule::kQwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case CutRule::kCl100k:
      return R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
    case CutRule::kO200k:
      return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return {};
}

std::optional<CutRule> CutRuleOf(std::string_view regular_expression) {
  for (const CutRule rule : {CutRule::kGpt2, CutRule::kLlama3, CutRule::kQwen2, CutRule::kO200k}) {
    if (regular_expression == RegularExpressionOf(rule)) return rule;
  }
  return std::nullopt;
}

size_t PieceEnd(CutRule rule, std::string_view text, size_t begin, const uint8_t* classes) {
  const Scanner scanner(text, classes);
  switch (rule) {
    case CutRule::kNone:
      break;
    case CutRule::kGpt2:
      return scanner.Gpt2End(begin);
    case CutRule::kLlama3:
      return scanner.Llama3End(begin, 3);
    case CutRule::kQwen2:
      return scanner.Llama3End(begin, 1);
    case CutRule::kCl100k:
      return scanner.Llama3End(begin, 3, /*trailing_spaces_together=*/true);
    case CutRule::kO200k:
      return scanner.O200kEnd(begin);
  }
  return text.size();
}

}  // namespace trainwright

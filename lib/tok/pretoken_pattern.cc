#include "lib/tok/pretoken_pattern.h"

#include <limits>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/tok/unicode.h"

namespace trainwright {

class PretokenPattern::Parser {
 public:
  explicit Parser(std::string_view expression) : expression_(expression) {}

  std::vector<Sequence> Parse() {
    std::vector<Sequence> alternatives = ParseAlternatives(false);
    if (at_ != expression_.size()) Refuse();
    return alternatives;
  }

 private:
  [[noreturn]] void Refuse() const {
    throw Error(ErrorCode::kInternal, "regular expression " + std::string(expression_), "is not understood",
                "byte " + std::to_string(at_));
  }
  bool Take(std::string_view text) {
    if (!expression_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  std::vector<Sequence> ParseAlternatives(bool any_case) {
    std::vector<Sequence> alternatives(1);
    while (at_ < expression_.size() && expression_[at_] != ')') {
      if (Take("|")) {
        alternatives.emplace_back();
      } else {
        alternatives.back().push_back(ParseTerm(any_case));
      }
    }
    return alternatives;
  }

  Term ParseTerm(bool any_case) {
    Term term;
    const bool not_ahead = Take("(?!"), folding = !not_ahead && Take("(?i:");
    if (not_ahead || folding || Take("(?:")) {
      term.kind = not_ahead ? Term::Kind::kNotAhead : Term::Kind::kGroup;
      term.alternatives = ParseAlternatives(any_case || folding);
      if (!Take(")")) Refuse();
    } else if (Take("$")) {
      term.kind = Term::Kind::kEnd;
    } else if (Take("[")) {
      term.negated = Take("^");
      while (!Take("]")) ParseCharacter(any_case, &term);
    } else {
      if (Take("\\S")) {
        term.negated = true;
        term.classes = kSpace;
      } else {
        ParseCharacter(any_case, &term);
      }
    }
    ParseQuantifier(&term);
    return term;
  }

  void ParseCharacter(bool any_case, Term* term) {
    if (at_ == expression_.size()) Refuse();
    if (Take("\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}")) {
      term->classes |= kCapital;
    } else if (Take("\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}")) {
      term->classes |= kSmall;
    } else if (Take("\\p{L}")) {
      term->classes |= kLetter;
    } else if (Take("\\p{N}")) {
      term->classes |= kNumber;
    } else if (Take("\\s")) {
      term->classes |= kSpace;
    } else if (Take("\\r")) {
      term->ranges.emplace_back('\r', '\r');
    } else if (Take("\\n")) {
      term->ranges.emplace_back('\n', '\n');
    } else {
      const auto character = static_cast<uint8_t>(expression_[at_]);
      if (character >= 0x80 ||
          std::string_view("\\()[]{}?*+.^$|").find(expression_[at_]) != std::string_view::npos) {
        Refuse();
      }
      ++at_;
      term->ranges.emplace_back(character, character);
      const bool letter = (character | 0x20) >= 'a' && (character | 0x20) <= 'z';
      if (any_case && letter) {
        term->ranges.emplace_back(character ^ 0x20, character ^ 0x20);
        if ((character | 0x20) == 's') term->ranges.emplace_back(0x17F, 0x17F);    // the long s
        if ((character | 0x20) == 'k') term->ranges.emplace_back(0x212A, 0x212A);  // the Kelvin sign
      }
    }
  }

  void ParseQuantifier(Term* term) {
    constexpr size_t kAny = std::numeric_limits<size_t>::max();
    if (Take("?")) {
      term->min = 0;
    } else if (Take("*")) {
      term->min = 0;
      term->max = kAny;
    } else if (Take("+")) {
      term->max = kAny;
    } else if (Take("{1,3}")) {
      term->max = 3;
    }
    if (term->kind != Term::Kind::kCharacter && term->max != 1) Refuse();
    term->possessive = Take("+");
  }

  std::string_view expression_;
  size_t at_ = 0;
};

/// One attempt to match.
struct PretokenPattern::Match {
  using Then = std::function<bool(size_t)>;
  std::span<const uint32_t> characters;

  bool Fits(const Term& term, uint32_t character) const {
    bool in = character != kBadByte && (CharacterClasses()[character] & term.classes) != 0;
    for (const auto& [first, last] : term.ranges) in |= character >= first && character <= last;
    return in != term.negated;
  }

  bool Any(const std::vector<Sequence>& alternatives, size_t at, const Then& then) const {
    for (const Sequence& sequence : alternatives) {
      if (All(sequence, at, then)) return true;
    }
    return false;
  }

  bool All(std::span<const Term> terms, size_t at, const Then& then) const {
    if (terms.empty()) return then(at);
    const Term& term = terms.front();
    const auto rest = [&](size_t end) { return All(terms.subspan(1), end, then); };
    switch (term.kind) {
      case Term::Kind::kNotAhead:
        return !Any(term.alternatives, at, [](size_t) { return true; }) && rest(at);
      case Term::Kind::kGroup:
        return Any(term.alternatives, at, rest) || (term.min == 0 && rest(at));
      case Term::Kind::kEnd:
        return at == characters.size() && rest(at);
      case Term::Kind::kCharacter:
        break;
    }
    size_t count = 0;
    while (count < term.max && at + count < characters.size() && Fits(term, characters[at + count])) ++count;
    for (; count + 1 > term.min; --count) {
      if (rest(at + count)) return true;
      if (count == 0 || term.possessive) break;
    }
    return false;
  }
};

PretokenPattern::PretokenPattern(std::string_view expression) : alternatives_(Parser(expression).Parse()) {}

size_t PretokenPattern::PieceEnd(std::span<const uint32_t> characters, size_t begin) const {
  const Match match{characters};
  for (size_t at = begin; at < characters.size(); ++at) {
    size_t end = at;
    match.Any(alternatives_, at, [&](size_t match_end) {
      end = match_end;
      return true;
    });
    if (end > at) return at == begin ? end : at;
  }
  return characters.size();
}

}  // namespace trainwright

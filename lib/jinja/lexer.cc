#include "lib/jinja/lexer.h"

#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "lib/base/error.h"
#include "lib/jinja/text.h"

namespace trainwright::jinja {
namespace {

bool IsDigitByte(char c) {
  return c >= '0' && c <= '9';
}

std::string NormalizedLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// What a backslash at text[at] means; `at` moves behind it.
class Unescaper {
 public:
  Unescaper(std::string_view text, const std::string& name, int line)
      : text_(text), name_(name), line_(line) {}

  std::string Run() {
    while (at_ < text_.size()) {
      if (text_[at_] != '\\' || at_ + 1 == text_.size()) {
        out_ += text_[at_++];
      } else {
        ++at_;
        Escape();
      }
    }
    return std::move(out_);
  }

 private:
  void Escape() {
    static constexpr std::string_view kLetters = "abfnrtv\\'\"";
    static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    const char c = text_[at_];
    const size_t letter = kLetters.find(c);
    if (letter != std::string_view::npos) {
      out_ += kMeanings[letter];
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i) {
        code = code * 8 + static_cast<uint32_t>(text_[at_++] - '0');
      }
      AppendPoint(code, &out_);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      ++at_;
      Hex(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c == 'N') {
      SyntaxError(name_, "\\N{...} in a string is not supported", line_);
    } else {
      out_ += '\\';
      if (static_cast<signed char>(c) < 0) Spelled();
    }
  }

  // Jinja spells what is beyond ASCII before it resolves escapes, and so it stays spelled behind a backslash.
  void Spelled() {
    const auto code = static_cast<unsigned>(NextPoint(text_, &at_));
    char buffer[16];
    const char* format = code < 0x100 ? "x%02x" : code < 0x10000 ? "u%04x" : "U%08x";
    std::snprintf(buffer, sizeof buffer, format, code);  // NOLINT
    out_ += buffer;
  }

  void Hex(size_t digits) {
    uint32_t code = 0;
    const char* begin = text_.data() + at_;
    if (at_ + digits > text_.size() ||
        std::from_chars(begin, begin + digits, code, 16).ptr != begin + digits) {
      SyntaxError(name_, "a string ends within an escape of hexadecimal digits", line_);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      SyntaxError(name_, "an escape in a string is no code point", line_);
    }
    at_ += digits;
    AppendPoint(code, &out_);
  }

  std::string_view text_;
  const std::string& name_;
  int line_;
  size_t at_ = 0;
  std::string out_;
};

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(NormalizedLines(source)), name_(name) {}

  std::vector<Token> Run() {
    while (at_ < source_.size()) {
      if (!Root()) break;
    }
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view Rest() const { return std::string_view(source_).substr(at_); }
  bool At(std::string_view text) const { return Rest().substr(0, text.size()) == text; }
  [[noreturn]] void Fail(const std::string& problem) const { SyntaxError(name_, problem, line_); }

  void Add(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  void Advance(size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) line_ += source_[at_ + i] == '\n' ? 1 : 0;
    at_ += bytes;
    if (bytes > 0) line_starting_ = source_[at_ - 1] == '\n';
  }

  size_t SpaceFrom(size_t at) const {
    size_t end = at;
    while (end < source_.size()) {
      size_t next = end;
      if (!IsSpace(NextPoint(source_, &next))) break;
      end = next;
    }
    return end - at;
  }

  // The text in front of a tag, without what its sign or lstrip_blocks takes away.
  void AddData(std::string_view text, char sign, bool is_variable) {
    std::string_view kept = text;
    if (sign == '-') {
      kept = Stripped(text, "", false, true);
    } else if (sign != '+' && !is_variable) {
      const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 is 0
      if ((line_begin > 0 || line_starting_) && Stripped(text.substr(line_begin), "", true, false).empty()) {
        kept = text.substr(0, line_begin);
      }
    }
    if (!kept.empty()) Add(TokenKind::kData, std::string(kept));
    Advance(text.size());
  }

  bool Root() {
    size_t begin = at_;
    for (;; ++begin) {
      begin = source_.find('{', begin);
      if (begin == std::string::npos || begin + 1 >= source_.size()) {
        Add(TokenKind::kData, source_.substr(at_));
        Advance(source_.size() - at_);
        return false;
      }
      const char next = source_[begin + 1];
      if (next == '#' || next == '%' || next == '{') break;
    }
    const char mark = source_[begin + 1];
    size_t size = 2;
    char sign = 0;
    if (begin + 2 < source_.size() && (source_[begin + 2] == '-' || source_[begin + 2] == '+')) {
      sign = source_[begin + 2];
      size = 3;
    }
    AddData(std::string_view(source_).substr(at_, begin - at_), sign, mark == '{');
    if (mark == '%') {
      if (const size_t raw = RawBegin(size)) {
        Advance(raw);
        Raw();
        return true;
      }
    }
    Advance(size);
    if (mark == '#') {
      Comment();
    } else {
      Add(mark == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, "");
      Inside(mark == '%');
    }
    return true;
  }

  // The size of "{% raw %}" here, 0 where there is none; `from` bytes are its delimiter and sign.
  size_t RawBegin(size_t from) const {
    size_t at = at_ + from;
    at += SpaceFrom(at);
    if (source_.compare(at, 3, "raw") != 0) return 0;
    at += 3;
    at += SpaceFrom(at);
    if (source_.compare(at, 3, "-%}") == 0) return at + 3 + SpaceFrom(at + 3) - at_;
    return source_.compare(at, 2, "%}") == 0 ? at + 2 - at_ : 0;
  }

  // The size of the end of a tag at `at`, 0 where there is none: "+%}", "-%}" with what it strips, or "%}"
  // with its line end.
  size_t EndAt(size_t at, std::string_view end, bool plus, bool trims) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    if (rest.substr(0, end.size()) == end) {
      return end.size() + (trims && rest.substr(end.size(), 1) == "\n" ? 1 : 0);
    }
    if (rest.size() <= end.size() || rest.substr(1, end.size()) != end) return 0;
    if (rest[0] == '-') return end.size() + 1 + SpaceFrom(at + end.size() + 1);
    return plus && rest[0] == '+' ? end.size() + 1 : 0;
  }

  void Raw() {
    for (size_t at = at_; (at = source_.find("{%", at)) != std::string::npos; at += 2) {
      size_t end = at + 2;
      char sign = 0;
      if (end < source_.size() && (source_[end] == '-' || source_[end] == '+')) sign = source_[end++];
      end += SpaceFrom(end);
      if (source_.compare(end, 6, "endraw") != 0) continue;
      end += 6;
      end += SpaceFrom(end);
      const size_t size = EndAt(end, "%}", true, true);
      if (size == 0) continue;
      AddData(std::string_view(source_).substr(at_, at - at_), sign, false);
      Advance(end + size - at_);
      return;
    }
    if (at_ < source_.size()) Fail("the end of a raw block is missing");
  }

  void Comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) {
      if (at_ == source_.size()) return;
      Fail("the end of a comment is missing");
    }
    const bool has_sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    const size_t begin = has_sign ? end - 1 : end;
    Advance(begin - at_);
    Advance(EndAt(begin, "#}", true, true));
  }

  void Inside(bool is_block) {
    while (at_ < source_.size()) {
      if (open_.empty()) {
        const size_t size = is_block ? EndAt(at_, "%}", true, true) : EndAt(at_, "}}", false, false);
        if (size > 0) {
          Add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, "");
          Advance(size);
          return;
        }
      }
      if (const size_t space = SpaceFrom(at_)) {
        Advance(space);
        continue;
      }
      if (!Number() && !Name() && !Quoted() && !Operator()) {
        size_t end = at_;
        NextPoint(source_, &end);
        Fail("unexpected character '" + source_.substr(at_, end - at_) + "'");
      }
    }
  }

  // The end of digits with single _ between them.
  size_t DigitsFrom(size_t at) const {
    while (at < source_.size() &&
           (IsDigitByte(source_[at]) ||
            (source_[at] == '_' && at + 1 < source_.size() && IsDigitByte(source_[at + 1])))) {
      ++at;
    }
    return at;
  }

  char ByteAt(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  bool Number() {
    if (!IsDigitByte(source_[at_])) return false;
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
    size_t end = DigitsFrom(at_);
    bool is_float = false;
    if (!behind_dot) {
      if (ByteAt(end) == '.' && IsDigitByte(ByteAt(end + 1))) {
        end = DigitsFrom(end + 1);
        is_float = true;
      }
      size_t power = end + 1;
      if (ByteAt(power) == '+' || ByteAt(power) == '-') ++power;
      if ((ByteAt(end) == 'e' || ByteAt(end) == 'E') && IsDigitByte(ByteAt(power))) {
        end = DigitsFrom(power);
        is_float = true;
      }
    }
    if (!is_float) return Integer();
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    Add(TokenKind::kFloat, text);
    const auto result = std::from_chars(text.data(), text.data() + text.size(), tokens_.back().number);
    // Too large is infinity, too small is 0, as strtod has it.
    if (result.ec != std::errc()) tokens_.back().number = std::strtod(text.c_str(), nullptr);
    Advance(end - at_);
    return true;
  }

  bool Integer() {
    int base = 10;
    size_t begin = at_, end = at_;
    const char letter = static_cast<char>(ByteAt(at_ + 1) | 0x20);
    if (source_[at_] == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
      base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
      begin = end = at_ + 2;
      const auto is_digit = [&](char c) {
        return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c >= '0' && c < '0' + base;
      };
      while (is_digit(ByteAt(end)) || (ByteAt(end) == '_' && is_digit(ByteAt(end + 1)))) ++end;
      if (end == begin) base = 10, begin = at_;
    }
    if (base == 10 && source_[at_] == '0') {
      end = at_ + 1;
      while (ByteAt(end) == '0' || (ByteAt(end) == '_' && ByteAt(end + 1) == '0')) ++end;
    } else if (base == 10) {
      end = DigitsFrom(at_);
    }
    std::string text = source_.substr(begin, end - begin);
    std::erase(text, '_');
    Add(TokenKind::kInteger, text);
    const auto result = std::from_chars(text.data(), text.data() + text.size(), tokens_.back().integer, base);
    if (result.ec != std::errc()) Fail("the number " + text + " does not fit 64 bits: not supported");
    Advance(end - at_);
    return true;
  }

  bool Name() {
    size_t end = at_;
    while (end < source_.size()) {
      size_t next = end;
      if (!IsWord(NextPoint(source_, &next))) break;
      end = next;
    }
    if (end == at_) return false;
    Add(TokenKind::kName, source_.substr(at_, end - at_));
    Advance(end - at_);
    return true;
  }

  bool Quoted() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) Fail("the end of a string is missing");
    Add(TokenKind::kString,
        Unescaper(std::string_view(source_).substr(at_ + 1, end - at_ - 1), name_, line_).Run());
    Advance(end + 1 - at_);
    return true;
  }

  bool Operator() {
    static constexpr std::string_view kPairs[] = {"**", "//", "==", "!=", ">=", "<="};
    static constexpr std::string_view kSingles = "+-/*%~[](){}><=.:|,;";
    std::string_view text;
    for (const std::string_view pair : kPairs) {
      if (At(pair)) text = pair;
    }
    if (text.empty() && kSingles.find(source_[at_]) != std::string_view::npos) text = Rest().substr(0, 1);
    if (text.empty()) return false;
    Balance(text[0]);
    Add(TokenKind::kOperator, std::string(text));
    Advance(text.size());
    return true;
  }

  void Balance(char c) {
    if (c == '(' || c == '[' || c == '{') {
      open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_.empty() || open_.back() != c) Fail(std::string("unexpected '") + c + "'");
      open_.pop_back();
    }
  }

  std::string source_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string open_;  // the brackets that are to close what is open
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source, const std::string& name) {
  return Lexer(source, name).Run();
}

void SyntaxError(const std::string& name, const std::string& problem, int line) {
  throw Error(ErrorCode::kUsage, name, problem, "line " + std::to_string(line));
}

}  // namespace trainwright::jinja

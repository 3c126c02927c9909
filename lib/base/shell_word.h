/// Text as a word of a shell's command line, for commands that a message advises. Pure and thread-safe.
#pragma once

#include <string>

namespace trainwright {

/// Whether a shell reads a text as one word and as it is, quoted or not. Letters beyond ASCII are plain, and
/// quoted all the same in advice, which may be read in another locale.
inline bool IsPlainWord(const std::string& text) {
  constexpr char kSpecial[] = "|&;<>()$`\\\"'*?[]{}#~!^";
  if (text.empty() || text.find_first_of(kSpecial) != std::string::npos) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7F) return false;  // blanks and control characters
  }
  return true;
}

/// The text itself where a shell reads it as one word, else in single quotes.
inline std::string ShellWord(const std::string& text) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace trainwright

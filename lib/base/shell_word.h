/// Text as a word of a shell's command line, for commands that a message advises. Pure and thread-safe.
#pragma once

#include <string>

namespace trainwright {

/// The text itself where a shell reads it as one word, else in single quotes.
inline std::string ShellWord(const std::string& text) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace trainwright

/// Text as Python's str sees it: as code points. Bytes that are no UTF-8 count as one code point each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright::jinja {

/// The code point at `*at`, which moves after it.
char32_t NextPoint(std::string_view text, size_t* at);
void AppendPoint(char32_t point, std::string* out);
std::vector<std::string_view> PointsOf(std::string_view text);
size_t PointCount(std::string_view text);
bool IsAscii(std::string_view text);
/// The byte at which the code point `index` begins; the size where there are not that many.
size_t ByteOf(std::string_view text, size_t index);

/// str.isspace, isprintable, isalpha, isdigit, isdecimal or isnumeric or isalpha, of one code point.
bool IsSpace(char32_t point);
bool IsPrintable(char32_t point);
bool IsAlpha(char32_t point);
bool IsDigit(char32_t point);
bool IsAlnum(char32_t point);
bool IsUpper(char32_t point);
bool IsLower(char32_t point);
/// 0 to 9 for what str.isdecimal takes, else -1.
int DecimalOf(char32_t point);
/// What `\w` of Python's re matches.
bool IsWord(char32_t point);

/// str.upper and str.lower.
std::string Upper(std::string_view text);
std::string Lower(std::string_view text);
/// str.capitalize and str.title.
std::string Capitalized(std::string_view text);
std::string Titled(std::string_view text);

/// Without what is in `set` at the sides asked for; an empty set means white space.
std::string_view Stripped(std::string_view text, std::string_view set, bool left, bool right);
/// The line at `*at`, as str.splitlines cuts them; `*at`, which must not be the end, moves to the next.
std::string_view NextLine(std::string_view text, bool keep_end, size_t* at);
/// Where `sought` comes first or last; npos where it does not. Takes a time that is linear in both.
size_t FindFirst(std::string_view text, std::string_view sought, size_t from = 0);
size_t FindLast(std::string_view text, std::string_view sought);
/// Where the word that ends a text begins, which has no white space in it.
size_t BeginOfLastWord(std::string_view text);
/// Where the word that begins a text ends.
size_t EndOfFirstWord(std::string_view text);
/// str.replace; `most` < 0 means all.
std::string Replaced(std::string_view text, std::string_view old, std::string_view by, int64_t most);
/// str.center, ljust and rjust: -1 pads on the right, 1 on the left, 0 on both sides.
std::string Padded(std::string_view text, int64_t width, std::string_view fill, int side);

}  // namespace trainwright::jinja

#include "lib/tok/utf8.h"

#include <cstring>

namespace trainwright {
namespace {

/// Bytes of plain ASCII at the start of `text`, counted eight at a time.
size_t AsciiPrefix(std::string_view text) {
  size_t size = 0;
  while (size + 8 <= text.size()) {
    uint64_t word;
    std::memcpy(&word, text.data() + size, 8);
    if ((word & 0x8080808080808080u) != 0) break;
    size += 8;
  }
  while (size < text.size() && static_cast<uint8_t>(text[size]) < 0x80) ++size;
  return size;
}

}  // namespace

Utf8Character DecodeUtf8(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const auto trails = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if ((lead & 0xE0) == 0xC0 && text.size() >= 2 && trails(1)) {
    const uint32_t code_point = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    if (code_point >= 0x80) return {code_point, 2};
  } else if ((lead & 0xF0) == 0xE0 && text.size() >= 3 && trails(1) && trails(2)) {
    const uint32_t code_point = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (code_point >= 0x800 && (code_point < 0xD800 || code_point > 0xDFFF)) return {code_point, 3};
  } else if ((lead & 0xF8) == 0xF0 && text.size() >= 4 && trails(1) && trails(2) && trails(3)) {
    const uint32_t code_point =
        (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    if (code_point >= 0x10000 && code_point <= 0x10FFFF) return {code_point, 4};
  }
  return {};
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return add(code_point);
  if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      add(0xE0 | code_point >> 12);
    } else {
      add(0xF0 | code_point >> 18);
      add(0x80 | (code_point >> 12 & 0x3F));
    }
    add(0x80 | (code_point >> 6 & 0x3F));
  }
  add(0x80 | (code_point & 0x3F));
}

Utf8Character LastCharacter(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    const Utf8Character character = DecodeUtf8(text.substr(text.size() - size));
    if (character.size_bytes == size) return character;
  }
  return {};
}

size_t UnfinishedBytes(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // within a character
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t offset = 0;
  while (true) {
    offset += AsciiPrefix(text.substr(offset));
    if (offset == text.size()) return std::string_view::npos;
    const size_t size_bytes = DecodeUtf8(text.substr(offset)).size_bytes;
    if (size_bytes == 0) return offset;
    offset += size_bytes;
  }
}

std::string ReplaceInvalidUtf8(std::string_view text, uint64_t* replaced) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t bad = FindInvalidUtf8(text);
    out.append(text.substr(0, bad));
    if (bad == std::string_view::npos) return out;
    out.append("\xEF\xBF\xBD");
    if (replaced != nullptr) ++*replaced;
    text.remove_prefix(bad + 1);
  }
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShownBytes = 80;
  std::string shown = ReplaceInvalidUtf8(text.substr(0, kShownBytes));
  for (char& byte : shown) {
    if (static_cast<uint8_t>(byte) < 0x20 || byte == 0x7F) byte = '?';
  }
  return "\"" + shown + (text.size() > kShownBytes ? "...\"" : "\"");
}

uint64_t CountCharacters(std::string_view text) {
  uint64_t characters = 0;
  for (const char byte : text) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return characters;
}

}  // namespace trainwright

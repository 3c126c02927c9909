#include "lib/eval/text_stream.h"

#include <algorithm>
#include <span>
#include <utility>

namespace trainwright {
namespace {

/// What a piece's text can depend on before it.
constexpr size_t kPromptIds = 8;

/// Tokens that may follow before U+FFFD is shown as that: by then they would be a character, were they bytes
/// of one.
constexpr size_t kMostHeldIds = 8;

/// How many bytes at the end of a text begin a UTF-8 character and do not complete it.
size_t UnfinishedBytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // within a character
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

TextStream::TextStream(const Tokenizer* tokenizer, const std::vector<uint32_t>& prompt,
                       std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  ids_.assign(prompt.end() - static_cast<ptrdiff_t>(std::min(prompt.size(), kPromptIds)), prompt.end());
  end_ = ids_.size();
}

std::string TextStream::Take(uint32_t id) {
  ids_.push_back(id);
  const std::string before = tokenizer_->Decode(std::span(ids_).subspan(begin_, end_ - begin_));
  const std::string whole = tokenizer_->Decode(std::span(ids_).subspan(begin_));
  // Tokens of bytes that are no character yet may be decoded to U+FFFD, one a byte.
  const bool may_go_on = whole.ends_with("\xEF\xBF\xBD") && ids_.size() - end_ <= kMostHeldIds;
  if (may_go_on || UnfinishedBytes(whole) > 0 || whole.size() <= before.size() || !whole.starts_with(before))
    return {};
  text_ += whole.substr(before.size());
  begin_ = end_;
  end_ = ids_.size();
  const size_t safe = SafeSize();
  if (safe <= shown_) return {};
  const size_t first = std::exchange(shown_, safe);
  return text_.substr(first, safe - first);
}

size_t TextStream::SafeSize() const {
  size_t safe = text_.size();
  for (const std::string& stop : stops_) {
    if (const size_t found = text_.find(stop); found != std::string::npos) safe = std::min(safe, found);
    for (size_t size = std::min(stop.size() - 1, text_.size()); size > 0; --size) {
      if (!text_.ends_with(std::string_view(stop).substr(0, size))) continue;
      safe = std::min(safe, text_.size() - size);
      break;
    }
  }
  while (safe > shown_ && safe < text_.size() && (static_cast<uint8_t>(text_[safe]) & 0xC0) == 0x80) --safe;
  return safe;
}

std::string TextStream::Finish(std::string_view text) const {
  return std::string(text.substr(std::min(shown_, text.size())));
}

}  // namespace trainwright

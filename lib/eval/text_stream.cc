#include "lib/eval/text_stream.h"

#include <algorithm>
#include <utility>

#include "lib/tok/utf8.h"

namespace trainwright {

TextStream::TextStream(const Tokenizer* tokenizer, const std::vector<uint32_t>& prompt,
                       std::vector<std::string> stops, std::vector<std::vector<uint32_t>> sequences)
    : stops_(std::move(stops)), sequences_(std::move(sequences)), text_(tokenizer, prompt) {}

std::string TextStream::Take(uint32_t id) {
  held_.push_back(id);
  const size_t free = held_.size() - HeldIds();
  for (size_t i = 0; i < free; ++i) Add(held_[i]);
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(free));

  const std::string_view settled = text_.settled();
  const bool shows_open = text_.open_ids() > kMostHeldIds;
  std::string next;
  if (shows_open && shown_ >= settled.size()) {
    next = text_.open().substr(std::min(text_.open().size(), shown_ - settled.size()));
  } else {
    next = settled.substr(std::min(settled.size(), shown_));
    if (shows_open) next += text_.open();
  }
  next.resize(SafeSize(next));
  shown_ += next.size();
  if (shown_ > settled.size())
    early_ += next.substr(next.size() - std::min(next.size(), shown_ - settled.size()));
  return next;
}

size_t TextStream::HeldIds() const {
  size_t most = 0;
  for (const std::vector<uint32_t>& sequence : sequences_) {
    for (size_t count = std::min(sequence.size(), held_.size()); count > most; --count) {
      if (std::equal(held_.end() - static_cast<ptrdiff_t>(count), held_.end(), sequence.begin()))
        most = count;
    }
  }
  return most;
}

void TextStream::Add(uint32_t id) {
  const size_t before = text_.settled().size();
  text_.Add(id);
  if (early_.empty() || text_.settled().size() == before) return;
  shown_ = Resume(text_.settled(), before);
  early_.clear();
}

size_t TextStream::Resume(std::string_view text, size_t settled) const {
  if (text.substr(std::min(settled, text.size())).starts_with(early_)) return shown_;
  return settled + 3 * early_.size();  // bytes of a U+FFFD
}

size_t TextStream::SafeSize(std::string_view text) const {
  size_t safe = text.size() - UnfinishedBytes(text);
  for (const std::string& stop : stops_) {
    if (const size_t found = text.find(stop); found != std::string::npos) safe = std::min(safe, found);
    for (size_t size = std::min(stop.size() - 1, text.size()); size > 0; --size) {
      if (!text.ends_with(std::string_view(stop).substr(0, size))) continue;
      safe = std::min(safe, text.size() - size);
      break;
    }
  }
  while (safe > 0 && safe < text.size() && (static_cast<uint8_t>(text[safe]) & 0xC0) == 0x80) --safe;
  return safe;
}

std::string TextStream::Finish(std::string_view text) const {
  return std::string(text.substr(std::min(Resume(text, text_.settled().size()), text.size())));
}

}  // namespace trainwright

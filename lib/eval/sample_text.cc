#include "lib/eval/sample_text.h"

#include <algorithm>
#include <utility>

#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

/// Ids of the prompt that a sample's first ones are decoded with: more than one, for some may have no text.
constexpr size_t kPromptIds = 8;
/// Ids without a text in a row, as spaces that a decoder drops where a text begins, that it may yet count.
constexpr size_t kMostIdsWithoutText = 64;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

SampleText::SampleText(const Tokenizer* tokenizer, std::span<const uint32_t> prompt) : tokenizer_(tokenizer) {
  BeginBehind(prompt);
}

void SampleText::BeginBehind(std::span<const uint32_t> prompt) {
  size_t begin = prompt.size(), counted = 0;
  bool in_run = true;
  std::string run;  // of bytes that the sample's may continue, reversed
  while (begin > 0 && (in_run || counted < kPromptIds)) {
    const DecodedId decoded = tokenizer_->DecodedIdOf(prompt[begin - 1]);
    in_run = in_run && (decoded.as == DecodedAs::kByteOfRun || decoded.as == DecodedAs::kNothing);
    if (in_run && decoded.as == DecodedAs::kByteOfRun) run.push_back(decoded.byte);
    counted += decoded.as == DecodedAs::kNothing ? 0 : 1;
    --begin;
  }
  std::reverse(run.begin(), run.end());
  is_spoilt_ = FindInvalidUtf8(run) != std::string_view::npos;
  context_.assign(prompt.begin() + static_cast<ptrdiff_t>(begin), prompt.end());
  context_text_ = tokenizer_->Decode(context_);
}

void SampleText::Add(uint32_t id) {
  const DecodedId decoded = tokenizer_->DecodedIdOf(id);
  switch (decoded.as) {
    case DecodedAs::kByte:
      AddByte(id, decoded.byte);
      return;
    case DecodedAs::kByteOfRun:
      AddByteOfRun(id, decoded.byte);
      return;
    case DecodedAs::kNothing:
      if (pending_.empty()) {
        text_ends_.push_back(settled_.size());
      } else {
        pending_ends_.push_back(run_.size());
      }
      return;
    case DecodedAs::kText:
    case DecodedAs::kBreak:
      if (decoded.as == DecodedAs::kText) pending_.push_back(id);
      Settle(pending_.size());
      is_spoilt_ = false;
      text_ends_.push_back(settled_.size());
  }
}

void SampleText::AddByte(uint32_t id, char byte) {
  pending_.push_back(id);
  run_.push_back(byte);
  pending_ends_.push_back(run_.size());
  Settle(run_.size() - UnfinishedBytes(run_));
}

void SampleText::AddByteOfRun(uint32_t id, char byte) {
  pending_.push_back(id);
  run_.push_back(byte);
  pending_ends_.push_back(run_.size());
  while (valid_ < run_.size()) {
    const size_t size = DecodeUtf8(std::string_view(run_).substr(valid_)).size_bytes;
    if (size == 0) break;
    valid_ += size;
  }
  const size_t rest = run_.size() - valid_;
  if (!is_spoilt_ && (rest == 0 || UnfinishedBytes(run_) == rest)) return;
  is_spoilt_ = true;
  for (const size_t end : pending_ends_) text_ends_.push_back(settled_.size() + end * kReplacement.size());
  for (size_t i = 0; i < run_.size(); ++i) settled_ += kReplacement;
  context_ = {id};
  context_text_ = tokenizer_->Decode(context_);
  ForgetPending(pending_.size());
}

void SampleText::Settle(size_t count) {
  if (count == 0) return;
  const auto settling = std::span(pending_).first(count);
  std::vector<uint32_t> ids = context_;
  ids.insert(ids.end(), settling.begin(), settling.end());
  std::string whole = tokenizer_->Decode(ids);
  std::string alone = tokenizer_->Decode(settling);
  const std::string text = whole.starts_with(context_text_) ? whole.substr(context_text_.size()) : alone;

  const std::string_view bytes = std::string_view(run_).substr(0, count);
  const size_t width = text.starts_with(bytes) ? 1 : kReplacement.size();
  for (const size_t end : pending_ends_) {
    if (end <= count) text_ends_.push_back(settled_.size() + std::min(text.size(), end * width));
  }
  settled_ += text;
  // What follows is decoded behind some text, for decoders treat the beginning of a text otherwise.
  if (!alone.empty()) {
    context_.assign(settling.begin(), settling.end());
    context_text_ = std::move(alone);
  } else if (context_.size() < kMostIdsWithoutText) {
    context_ = std::move(ids);
    context_text_ = std::move(whole);
  }
  ForgetPending(count);
}

void SampleText::ForgetPending(size_t count) {
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count));
  run_.erase(0, count);
  valid_ = 0;
  std::erase_if(pending_ends_, [&](size_t end) { return end <= count; });
  for (size_t& end : pending_ends_) end -= count;
}

std::string_view SampleText::open() const {
  return valid_ == run_.size() ? std::string_view(run_) : std::string_view();
}

size_t SampleText::IdsWithin(size_t size) const {
  size_t ids =
      static_cast<size_t>(std::upper_bound(text_ends_.begin(), text_ends_.end(), size) - text_ends_.begin());
  if (ids < text_ends_.size()) return ids;
  for (const size_t end : pending_ends_) ids += settled_.size() + end <= size ? 1 : 0;
  return ids;
}

}  // namespace trainwright

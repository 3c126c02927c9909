#include "lib/jinja/traced_text.h"

#include <algorithm>

namespace trainwright::jinja {

void TracedText::AddData(size_t begin, size_t end) {
  if (begin == end) return;
  if (!data_.empty() && data_.back().end == begin) {
    data_.back().end = end;
  } else {
    data_.push_back({begin, end});
  }
}

void TracedText::Add(std::string_view bytes, bool is_data) {
  const size_t begin = bytes_.size();
  bytes_ += bytes;
  if (is_data) AddData(begin, bytes_.size());
}

void TracedText::AddPart(const TracedText& other, size_t begin, size_t end) {
  const size_t offset = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  if (other.data_.empty()) return;
  const auto ends_before = [](const Span& span, size_t at) { return span.end <= at; };
  auto span = std::lower_bound(other.data_.begin(), other.data_.end(), begin, ends_before);
  for (; span != other.data_.end() && span->begin < end; ++span) {
    AddData(offset + std::max<size_t>(span->begin, begin) - begin,
            offset + std::min<size_t>(span->end, end) - begin);
  }
}

TracedText TracedText::Part(std::string_view piece) const {
  TracedText part;
  if (piece.empty()) return part;
  const auto begin = static_cast<size_t>(piece.data() - bytes_.data());
  part.AddPart(*this, begin, begin + piece.size());
  return part;
}

}  // namespace trainwright::jinja

/// A text that knows which of its bytes are data: from variables of RenderOptions::data_variables, not from
/// the template.
///
/// Data are bytes that an operation takes over, and all of what it makes otherwise of a value that holds
/// data. Where they are is kept beside the text, so that no operation of a template sees a difference.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/jinja/span.h"

namespace trainwright::jinja {

class TracedText {
 public:
  TracedText() = default;
  explicit TracedText(std::string bytes, bool is_data = false) : bytes_(std::move(bytes)) {
    if (is_data && !bytes_.empty()) data_.push_back({0, bytes_.size()});
  }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  /// Where the data are: in order, apart from each other, none empty.
  const std::vector<Span>& data() const { return data_; }
  bool has_data() const { return !data_.empty(); }
  /// What is kept in memory.
  size_t cost() const { return bytes_.size() + data_.size() * sizeof(Span); }

  void Add(std::string_view bytes, bool is_data);
  void Add(const TracedText& other) { AddPart(other, 0, other.size()); }
  /// Adds bytes [begin, end) of `other`, in a time that is linear in them.
  void AddPart(const TracedText& other, size_t begin, size_t end);
  /// \param piece a view of bytes()
  TracedText Part(std::string_view piece) const;

  std::string TakeBytes() { return std::move(bytes_); }
  std::vector<Span> TakeData() { return std::move(data_); }

 private:
  void AddData(size_t begin, size_t end);

  std::string bytes_;
  std::vector<Span> data_;
};

}  // namespace trainwright::jinja

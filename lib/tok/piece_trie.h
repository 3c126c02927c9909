/// Texts, and the numbers they stand for, by their bytes: finds all that a text begins with in one walk.
///
/// A double array: the child of a node by byte b is the node at base XOR b, if that node bears b. A step is
/// one load of eight bytes. Immutable after construction and thread-safe.
/// \source Aoe, "An efficient digital search algorithm by using a double-array structure", IEEE TSE 15 (1989)
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trainwright {

class PieceTrie {
 public:
  struct Entry {
    std::string_view text;  ///< not empty
    uint32_t id = 0;        ///< not kNone
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  /// \param entries in any order, of a text that comes again the first; their texts need not outlive the call
  /// \throws Error{kBadInput} when they take more than 2^23 nodes
  explicit PieceTrie(std::vector<Entry> entries = {});

  bool empty() const { return empty_; }
  size_t longest_bytes() const { return longest_bytes_; }

  /// Calls visit(size_bytes, id) for each entry that the bytes [begin, end) begin with, the shortest first,
  /// until it returns false.
  template <typename Visit>
  void VisitPrefixes(const char* begin, const char* end, Visit&& visit) const {
    const Node* const nodes = nodes_.data();
    uint32_t base = nodes[0].base();
    for (const char* at = begin; at != end;) {
      const auto byte = static_cast<uint8_t>(*at++);
      const Node node = nodes[base ^ byte];
      if (node.label() != byte) return;
      if (node.id != kNone && !visit(static_cast<size_t>(at - begin), node.id)) return;
      base = node.base();
    }
  }

  /// Whether an entry begins with `text`, or `text` with an entry.
  bool MayBegin(std::string_view text) const {
    uint32_t base = nodes_[0].base();
    for (const char letter : text) {
      const auto byte = static_cast<uint8_t>(letter);
      const Node node = nodes_[base ^ byte];
      if (node.label() != byte) return false;
      if (node.id != kNone) return true;
      base = node.base();
    }
    return true;
  }

 private:
  static constexpr uint32_t kFree = 0x100;  // a label that no byte is
  struct Node {
    uint32_t base_and_label = kFree;
    uint32_t id = kNone;
    uint32_t base() const { return base_and_label >> 9; }
    uint32_t label() const { return base_and_label & 0x1FF; }
  };
  class Builder;

  std::vector<Node> nodes_;  // in blocks of 256, the root first
  size_t longest_bytes_ = 0;
  bool empty_ = true;
};

}  // namespace trainwright

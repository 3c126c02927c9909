#include "lib/tok/piece_trie.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <span>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr uint32_t kBlock = 256;
constexpr size_t kMaxNodes = size_t{1} << 23;
/// Only the last blocks are searched for room: what is full by then stays so, nearly.
constexpr size_t kOpenBlocks = 16;

}  // namespace

/// Places nodes, parents before children.
class PieceTrie::Builder {
 public:
  explicit Builder(std::vector<Node>* nodes) : nodes_(*nodes) {
    AddBlock();
    Take(0);
    blocks_[0].bases[0] = true;  // that of nodes without children
  }

  void Build(std::span<const Entry> sorted) {
    std::vector<Part> parts = {{0, 0, sorted}};
    while (!parts.empty()) {
      const Part part = parts.back();
      parts.pop_back();
      AddChildren(part, &parts);
    }
  }

 private:
  /// The entries below a node, alike in their first `depth` bytes.
  struct Part {
    uint32_t node = 0;
    size_t depth = 0;
    std::span<const Entry> entries;
  };
  struct Block {
    std::bitset<kBlock> taken, bases;
    size_t taken_count = 0;
  };

  void AddChildren(Part part, std::vector<Part>* parts) {
    if (part.entries.front().text.size() == part.depth) {
      if (part.depth > 0) nodes_[part.node].id = part.entries.front().id;
      part.entries = part.entries.subspan(1);
    }
    if (part.entries.empty()) return;
    std::array<uint8_t, kBlock> labels;
    std::array<size_t, kBlock + 1> begins;
    size_t count = 0;
    for (size_t i = 0; i < part.entries.size(); ++i) {
      const auto label = static_cast<uint8_t>(part.entries[i].text[part.depth]);
      if (count > 0 && labels[count - 1] == label) continue;
      labels[count] = label;
      begins[count++] = i;
    }
    begins[count] = part.entries.size();
    const uint32_t base = PlaceFor(std::span(labels).first(count));
    nodes_[part.node].base_and_label = base << 9 | nodes_[part.node].label();
    for (size_t i = 0; i < count; ++i) {
      const uint32_t child = base ^ labels[i];
      nodes_[child].base_and_label = labels[i];
      parts->push_back({child, part.depth + 1, part.entries.subspan(begins[i], begins[i + 1] - begins[i])});
    }
  }

  /// A base that no other node has and whose children are free; takes them.
  uint32_t PlaceFor(std::span<const uint8_t> labels) {
    for (size_t block = blocks_.size() > kOpenBlocks ? blocks_.size() - kOpenBlocks : 0;; ++block) {
      if (block == blocks_.size()) AddBlock();
      Block& room = blocks_[block];
      if (room.taken_count + labels.size() > kBlock) continue;
      for (uint32_t first = 0; first < kBlock; ++first) {
        const uint32_t base = first ^ labels[0];
        if (room.taken[first] || room.bases[base]) continue;
        const auto is_free = [&](uint8_t label) { return !room.taken[base ^ label]; };
        if (!std::all_of(labels.begin(), labels.end(), is_free)) continue;
        room.bases[base] = true;
        const auto block_begin = static_cast<uint32_t>(block * kBlock);
        for (const uint8_t label : labels) Take(block_begin + (base ^ label));
        return block_begin + base;
      }
    }
  }

  void Take(uint32_t node) {
    Block& block = blocks_[node / kBlock];
    block.taken[node % kBlock] = true;
    ++block.taken_count;
  }

  void AddBlock() {
    if (nodes_.size() + kBlock > kMaxNodes) {
      throw Error(ErrorCode::kBadInput, "the tokenizer", "its pieces are too many and too long");
    }
    blocks_.emplace_back();
    nodes_.resize(nodes_.size() + kBlock);
  }

  std::vector<Node>& nodes_;
  std::vector<Block> blocks_;
};

PieceTrie::PieceTrie(std::vector<Entry> entries) : empty_(entries.empty()) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  const auto same = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  for (const Entry& entry : entries) longest_bytes_ = std::max(longest_bytes_, entry.text.size());
  Builder builder(&nodes_);
  if (!empty_) builder.Build(entries);
}

}  // namespace trainwright

#include "lib/data/packer.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/ordered_bit_set.h"

namespace trainwright {
namespace {

constexpr size_t kWindowItems = 1 << 16;
constexpr uint64_t kReservedTokens = 1 << 26;  // address space is set aside for windows up to this size

// The share of `total` that falls on the first `part` of `whole` tokens.
uint64_t Share(uint64_t total, uint64_t part, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(total) * part / whole);
}

void PadTo(size_t size, Chunk* chunk) {
  if (chunk->tokens.size() == size) return;
  chunk->segments.push_back(
      {.tokens = static_cast<uint32_t>(size - chunk->tokens.size()), .flags = kSegmentPadding});
  chunk->tokens.resize(size, 0);
}

}  // namespace

class Packer::Layout {
 public:
  virtual ~Layout() = default;
  virtual void Add(std::span<const uint32_t> tokens, const Segment& segment) = 0;
  virtual void Finish() = 0;
};

class Packer::OneByOneLayout final : public Layout {
 public:
  explicit OneByOneLayout(std::function<void(Chunk)> emit) : emit_(std::move(emit)) {}
  void Add(std::span<const uint32_t> tokens, const Segment& segment) override {
    emit_({.segments = {segment}, .tokens = {tokens.begin(), tokens.end()}});
  }
  void Finish() override {}

 private:
  std::function<void(Chunk)> emit_;
};

class Packer::ConcatLayout final : public Layout {
 public:
  ConcatLayout(size_t chunk_tokens, std::function<void(Chunk)> emit)
      : chunk_tokens_(chunk_tokens), emit_(std::move(emit)) {}

  void Add(std::span<const uint32_t> tokens, const Segment& segment) override {
    Segment rest = segment;
    while (true) {
      const size_t room = chunk_tokens_ - chunk_.tokens.size();
      if (tokens.size() <= room) break;
      Segment head = rest;
      head.tokens = static_cast<uint32_t>(room);
      head.flags |= kSegmentEndsMidDocument;
      head.next_token = tokens[room];
      head.source_bytes = Share(rest.source_bytes, room, tokens.size());
      Append(tokens.first(room), head);
      tokens = tokens.subspan(room);
      rest.tokens -= head.tokens;
      rest.flags |= kSegmentStartsMidDocument;
      rest.source_bytes -= head.source_bytes;
    }
    Append(tokens, rest);
  }

  void Finish() override {
    if (chunk_.tokens.empty()) return;
    PadTo(chunk_tokens_, &chunk_);
    Emit();
  }

 private:
  void Append(std::span<const uint32_t> tokens, const Segment& segment) {
    chunk_.tokens.reserve(chunk_tokens_);
    chunk_.tokens.insert(chunk_.tokens.end(), tokens.begin(), tokens.end());
    if (!chunk_.segments.empty() && (segment.flags & kSegmentStartsMidDocument) != 0) {
      // Items of a document arrive one after the other: the segment before is the start of this one.
      Segment& open = chunk_.segments.back();
      open.tokens += segment.tokens;
      open.source_bytes += segment.source_bytes;
      open.flags = static_cast<uint8_t>((open.flags & ~kSegmentEndsMidDocument) |
                                        (segment.flags & kSegmentEndsMidDocument));
      open.next_token = segment.next_token;
    } else {
      chunk_.segments.push_back(segment);
    }
    if (chunk_.tokens.size() == chunk_tokens_) Emit();
  }

  void Emit() { emit_(std::exchange(chunk_, {})); }

  const size_t chunk_tokens_;
  std::function<void(Chunk)> emit_;
  Chunk chunk_;
};

class Packer::BestFitLayout final : public Layout {
 public:
  BestFitLayout(size_t chunk_tokens, uint64_t window_tokens, std::function<void(Chunk)> emit)
      : chunk_tokens_(chunk_tokens),
        window_tokens_(std::max<uint64_t>(window_tokens, chunk_tokens)),
        emit_(std::move(emit)),
        rooms_(chunk_tokens),
        newest_bin_with_room_(chunk_tokens, kNone) {
    tokens_.reserve(std::min<uint64_t>(window_tokens_, kReservedTokens) + chunk_tokens_);
    items_.reserve(kWindowItems);
  }

  void Add(std::span<const uint32_t> tokens, const Segment& segment) override {
    if (tokens.size() == chunk_tokens_) {
      emit_({.segments = {segment}, .tokens = {tokens.begin(), tokens.end()}});
      return;
    }
    items_.push_back({segment, tokens_.size(), kNone});
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (tokens_.size() >= window_tokens_ || items_.size() >= kWindowItems) PackWindow(/*final=*/false);
  }

  void Finish() override { PackWindow(/*final=*/true); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Item {
    Segment segment;
    size_t offset;  // of its tokens in tokens_
    uint32_t next;  // the next item of the same bin, or kNone
  };
  // A chunk in the making. Bins with equal room form a circular list, the newest of them pointing to the
  // oldest.
  struct Bin {
    size_t room;
    uint32_t first_item, last_item;
    uint32_t next_bin;
  };

  void PackWindow(bool final) {
    FillBins();
    std::vector<bool> kept(bins_.size(), false);
    if (!final) ChooseBinsToKeep(&kept);
    for (size_t bin = 0; bin < bins_.size(); ++bin) {
      if (!kept[bin]) EmitBin(bins_[bin]);
    }
    KeepItemsOf(kept);
    bins_.clear();
  }

  void FillBins() {
    std::vector<uint32_t> order(items_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return items_[a].segment.tokens > items_[b].segment.tokens;
    });
    for (const uint32_t item : order) {
      const size_t room = rooms_.NextAtLeast(items_[item].segment.tokens);
      uint32_t bin;
      if (room == OrderedBitSet::kNone) {
        bin = static_cast<uint32_t>(bins_.size());
        bins_.push_back({chunk_tokens_, item, item, kNone});
      } else {
        bin = TakeOldestBinWithRoom(room);
        items_[bins_[bin].last_item].next = item;
        bins_[bin].last_item = item;
      }
      bins_[bin].room -= items_[item].segment.tokens;
      if (bins_[bin].room > 0) PutBinWithRoom(bin);
    }
    for (size_t room = rooms_.NextAtLeast(0); room != OrderedBitSet::kNone; room = rooms_.NextAtLeast(room)) {
      rooms_.Erase(room);
      newest_bin_with_room_[room] = kNone;
    }
  }

  void PutBinWithRoom(uint32_t bin) {
    uint32_t& newest = newest_bin_with_room_[bins_[bin].room];
    if (newest == kNone) {
      bins_[bin].next_bin = bin;
      rooms_.Insert(bins_[bin].room);
    } else {
      bins_[bin].next_bin = bins_[newest].next_bin;
      bins_[newest].next_bin = bin;
    }
    newest = bin;
  }

  uint32_t TakeOldestBinWithRoom(size_t room) {
    uint32_t& newest = newest_bin_with_room_[room];
    const uint32_t oldest = bins_[newest].next_bin;
    if (oldest == newest) {
      newest = kNone;
      rooms_.Erase(room);
    } else {
      bins_[newest].next_bin = bins_[oldest].next_bin;
    }
    return oldest;
  }

  // The emptiest bins, of those with more than 1/64 room, up to an eighth of a window: what is kept cannot
  // crowd out what is new.
  void ChooseBinsToKeep(std::vector<bool>* kept) const {
    std::vector<uint32_t> candidates;
    for (uint32_t bin = 0; bin < bins_.size(); ++bin) {
      if (bins_[bin].room > chunk_tokens_ / 64) candidates.push_back(bin);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](uint32_t a, uint32_t b) { return bins_[a].room > bins_[b].room; });
    uint64_t tokens = 0, items = 0;
    for (const uint32_t bin : candidates) {
      tokens += chunk_tokens_ - bins_[bin].room;
      for (uint32_t item = bins_[bin].first_item; item != kNone; item = items_[item].next) ++items;
      if (tokens > window_tokens_ / 8 || items > kWindowItems / 8) return;
      (*kept)[bin] = true;
    }
  }

  void EmitBin(const Bin& bin) {
    Chunk chunk;
    chunk.tokens.reserve(chunk_tokens_);
    for (uint32_t i = bin.first_item; i != kNone; i = items_[i].next) {
      const Item& item = items_[i];
      const auto begin = tokens_.begin() + static_cast<ptrdiff_t>(item.offset);
      chunk.segments.push_back(item.segment);
      chunk.tokens.insert(chunk.tokens.end(), begin, begin + item.segment.tokens);
    }
    PadTo(chunk_tokens_, &chunk);
    emit_(std::move(chunk));
  }

  void KeepItemsOf(const std::vector<bool>& kept_bins) {
    std::vector<bool> kept(items_.size(), false);
    for (size_t bin = 0; bin < bins_.size(); ++bin) {
      if (!kept_bins[bin]) continue;
      for (uint32_t item = bins_[bin].first_item; item != kNone; item = items_[item].next) kept[item] = true;
    }
    size_t items = 0, tokens = 0;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!kept[i]) continue;
      const Item item = items_[i];
      const auto begin = tokens_.begin() + static_cast<ptrdiff_t>(item.offset);
      std::copy(begin, begin + item.segment.tokens, tokens_.begin() + static_cast<ptrdiff_t>(tokens));
      items_[items++] = {item.segment, tokens, kNone};
      tokens += item.segment.tokens;
    }
    items_.resize(items);
    tokens_.resize(tokens);
  }

  const size_t chunk_tokens_;
  const uint64_t window_tokens_;
  std::function<void(Chunk)> emit_;
  std::vector<uint32_t> tokens_;  // of all items of the window, one after the other
  std::vector<Item> items_;
  std::vector<Bin> bins_;
  OrderedBitSet rooms_;                         // those > 0 that some bin has
  std::vector<uint32_t> newest_bin_with_room_;  // by room; kNone where no bin has it
};

Packer::Packer(const PackerOptions& options, std::function<void(Chunk)> emit) : options_(options) {
  TRAINWRIGHT_CHECK(options.chunk_tokens >= 2 && options.chunk_tokens <= 1u << 24);
  switch (options.mode) {
    case PackMode::kNone:
      layout_ = std::make_unique<OneByOneLayout>(std::move(emit));
      break;
    case PackMode::kConcat:
      layout_ = std::make_unique<ConcatLayout>(options.chunk_tokens, std::move(emit));
      break;
    case PackMode::kBestFit:
      layout_ = std::make_unique<BestFitLayout>(options.chunk_tokens, options.window_tokens, std::move(emit));
      break;
  }
  item_tokens_.reserve(options.chunk_tokens);
}

Packer::~Packer() = default;

void Packer::Add(const DocumentPiece& piece) {
  if (piece.begins) {
    ++counts_.documents;
    item_tokens_.clear();
    item_source_bytes_ = 0;
    item_starts_mid_document_ = false;
    discarding_ = false;
  }
  const std::span<const uint32_t> tokens = piece.tokens;
  counts_.tokens += tokens.size();
  counts_.source_bytes += piece.source_bytes;
  size_t used = 0;
  while (used < tokens.size() && !discarding_) {
    if (item_tokens_.size() < options_.chunk_tokens) {
      const size_t count = std::min(tokens.size() - used, options_.chunk_tokens - item_tokens_.size());
      const auto begin = tokens.begin() + static_cast<ptrdiff_t>(used);
      item_tokens_.insert(item_tokens_.end(), begin, begin + static_cast<ptrdiff_t>(count));
      item_source_bytes_ += Share(piece.source_bytes, used + count, tokens.size()) -
                            Share(piece.source_bytes, used, tokens.size());
      used += count;
      continue;
    }
    switch (options_.overflow) {
      case OverflowPolicy::kSplit:
        CompleteItem(/*ends_mid_document=*/true, tokens[used]);
        break;
      case OverflowPolicy::kTruncate:
        CompleteItem(/*ends_mid_document=*/true, tokens[used]);
        ++counts_.documents_truncated;
        discarding_ = true;
        break;
      case OverflowPolicy::kDrop:
        counts_.tokens_dropped += item_tokens_.size();
        ++counts_.documents_dropped;
        discarding_ = true;
        break;
      case OverflowPolicy::kError:
        throw Error(ErrorCode::kBadInput, "document " + std::to_string(counts_.documents - 1),
                    "is longer than a chunk of " + std::to_string(options_.chunk_tokens) + " tokens", "",
                    "choose a larger --chunk, or --overflow split, truncate or drop");
    }
  }
  if (discarding_) counts_.tokens_dropped += tokens.size() - used;
  if (tokens.empty()) item_source_bytes_ += piece.source_bytes;
  if (!piece.ends || discarding_) return;
  if (item_tokens_.empty()) {
    ++counts_.documents_empty;
  } else {
    CompleteItem(/*ends_mid_document=*/false, kNoId);
  }
}

void Packer::CompleteItem(bool ends_mid_document, uint32_t next_token) {
  Segment segment;
  segment.tokens = static_cast<uint32_t>(item_tokens_.size());
  if (item_starts_mid_document_) segment.flags |= kSegmentStartsMidDocument;
  if (ends_mid_document) segment.flags |= kSegmentEndsMidDocument;
  segment.next_token = next_token;
  segment.source_bytes = item_source_bytes_;
  layout_->Add(item_tokens_, segment);
  item_tokens_.clear();
  item_source_bytes_ = 0;
  item_starts_mid_document_ = true;
}

void Packer::Finish() {
  layout_->Finish();
}

}  // namespace trainwright

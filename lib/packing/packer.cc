#include "lib/packing/packer.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/packing/best_fit_bins.h"

namespace trainwright {
namespace {

constexpr size_t kWindowItems = 1 << 16;
/// The fewest tokens, in chunks, that are packed before a window is full.
constexpr uint64_t kLookChunks = 16;
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
  /// \param segments of one part of one document: together `tokens`, all but the first continue the one
  /// before
  virtual void Add(std::span<const uint32_t> tokens, std::span<const Segment> segments) = 0;
  virtual void Finish() = 0;
};

class Packer::OneByOneLayout final : public Layout {
 public:
  explicit OneByOneLayout(std::function<void(Chunk)> emit) : emit_(std::move(emit)) {}
  void Add(std::span<const uint32_t> tokens, std::span<const Segment> segments) override {
    emit_({.segments = {segments.begin(), segments.end()}, .tokens = {tokens.begin(), tokens.end()}});
  }
  void Finish() override {}

 private:
  std::function<void(Chunk)> emit_;
};

class Packer::ConcatLayout final : public Layout {
 public:
  ConcatLayout(size_t chunk_tokens, std::function<void(Chunk)> emit)
      : chunk_tokens_(chunk_tokens), emit_(std::move(emit)) {}

  void Add(std::span<const uint32_t> tokens, std::span<const Segment> segments) override {
    for (size_t i = 0; i < segments.size(); ++i) {
      const std::span<const uint32_t> own = tokens.first(segments[i].tokens);
      tokens = tokens.subspan(own.size());
      if (i + 1 == segments.size()) {
        AddSegment(own, segments[i]);
        continue;
      }
      // What follows it, in case the chunk ends behind it.
      Segment segment = segments[i];
      SetNext(tokens.front(), (segments[i + 1].flags & kSegmentNoLoss) == 0, &segment);
      AddSegment(own, segment);
    }
  }

  void Finish() override {
    if (chunk_.tokens.empty()) return;
    PadTo(chunk_tokens_, &chunk_);
    Emit();
  }

 private:
  static void SetNext(uint32_t token, bool loss, Segment* segment) {
    segment->flags |= kSegmentEndsMidDocument | (loss ? 0 : kSegmentNextNoLoss);
    segment->next_token = token;
  }

  void AddSegment(std::span<const uint32_t> tokens, const Segment& segment) {
    Segment rest = segment;
    while (true) {
      const size_t room = chunk_tokens_ - chunk_.tokens.size();
      if (tokens.size() <= room) break;
      Segment head = rest;
      head.tokens = static_cast<uint32_t>(room);
      head.flags &= static_cast<uint8_t>(~kSegmentNextNoLoss);
      SetNext(tokens[room], (rest.flags & kSegmentNoLoss) == 0, &head);
      head.source_bytes = Share(rest.source_bytes, room, tokens.size());
      Append(tokens.first(room), head);
      tokens = tokens.subspan(room);
      rest.tokens -= head.tokens;
      rest.flags |= kSegmentStartsMidDocument;
      rest.source_bytes -= head.source_bytes;
    }
    Append(tokens, rest);
  }

  void Append(std::span<const uint32_t> tokens, Segment segment) {
    constexpr uint8_t kAboutTheEnd = kSegmentEndsMidDocument | kSegmentNextNoLoss;
    constexpr uint8_t kAboutTheStart = kSegmentStartsMidDocument | kSegmentContinuesPrevious;
    chunk_.tokens.reserve(chunk_tokens_);
    chunk_.tokens.insert(chunk_.tokens.end(), tokens.begin(), tokens.end());
    const bool goes_on = (segment.flags & kAboutTheStart) != 0;
    segment.flags &= static_cast<uint8_t>(~kAboutTheStart);
    if (goes_on && !chunk_.segments.empty()) {
      // Parts of a document arrive one after the other: the segment before is the start of this one.
      Segment& open = chunk_.segments.back();
      open.flags &= static_cast<uint8_t>(~kAboutTheEnd);
      open.next_token = kNoId;
      if ((open.flags & kSegmentNoLoss) == (segment.flags & kSegmentNoLoss)) {
        open.tokens += segment.tokens;
        open.source_bytes += segment.source_bytes;
        open.flags |= segment.flags & kAboutTheEnd;
        open.next_token = segment.next_token;
      } else {
        segment.flags |= kSegmentContinuesPrevious;
        chunk_.segments.push_back(segment);
      }
    } else {
      if (goes_on) segment.flags |= kSegmentStartsMidDocument;
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
        look_tokens_(std::max<uint64_t>(window_tokens_ / 8, kLookChunks * chunk_tokens)),
        next_look_tokens_(look_tokens_),
        emit_(std::move(emit)),
        fit_(chunk_tokens) {
    tokens_.reserve(std::min<uint64_t>(window_tokens_, kReservedTokens) + chunk_tokens_);
    items_.reserve(kWindowItems);
    sizes_.reserve(kWindowItems);
  }

  void Add(std::span<const uint32_t> tokens, std::span<const Segment> segments) override {
    if (tokens.size() == chunk_tokens_) {
      emit_({.segments = {segments.begin(), segments.end()}, .tokens = {tokens.begin(), tokens.end()}});
      return;
    }
    sizes_.push_back(static_cast<uint32_t>(tokens.size()));
    items_.push_back({.segments = static_cast<uint32_t>(segments.size()),
                      .first_token = tokens_.size(),
                      .first_segment = segments_.size()});
    segments_.insert(segments_.end(), segments.begin(), segments.end());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (tokens_.size() >= window_tokens_ || items_.size() >= kWindowItems) {
      PackWindow(Window::kWhole);
    } else if (tokens_.size() >= next_look_tokens_) {
      PackWindow(Window::kGrowing);
    }
  }

  void Finish() override { PackWindow(Window::kLast); }

 private:
  static constexpr uint32_t kNone = BestFitBins::kNone;
  using Bin = BestFitBins::Bin;

  enum class Window { kGrowing, kWhole, kLast };

  struct Item {
    uint32_t segments;                  // how many
    size_t first_token, first_segment;  // in tokens_ and segments_
  };
  void PackWindow(Window window) {
    fit_.Fill(sizes_);
    const std::vector<Bin>& bins = fit_.bins();
    const std::vector<bool> kept = BinsToKeep(window);
    for (size_t bin = 0; bin < bins.size(); ++bin) {
      if (!kept[bin]) EmitBin(bins[bin]);
    }
    KeepItemsOf(kept);
    next_look_tokens_ = tokens_.size() + std::max<uint64_t>(look_tokens_, tokens_.size() / 2);
  }

  std::vector<bool> BinsToKeep(Window window) const {
    const std::vector<Bin>& bins = fit_.bins();
    std::vector<bool> kept(bins.size(), false);
    if (window == Window::kWhole) KeepEmptiest(&kept);
    if (window == Window::kGrowing) {
      for (size_t bin = 0; bin < bins.size(); ++bin) kept[bin] = bins[bin].room > chunk_tokens_ / 256;
    }
    return kept;
  }

  // The emptiest bins, of those with more than 1/64 room, up to an eighth of a window: what is kept cannot
  // crowd out what is new.
  void KeepEmptiest(std::vector<bool>* kept) const {
    const std::vector<Bin>& bins = fit_.bins();
    std::vector<uint32_t> candidates;
    for (uint32_t bin = 0; bin < bins.size(); ++bin) {
      if (bins[bin].room > chunk_tokens_ / 64) candidates.push_back(bin);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](uint32_t a, uint32_t b) { return bins[a].room > bins[b].room; });
    uint64_t tokens = 0, items = 0;
    for (const uint32_t bin : candidates) {
      tokens += chunk_tokens_ - bins[bin].room;
      for (uint32_t item = bins[bin].first_item; item != kNone; item = fit_.NextOf(item)) ++items;
      if (tokens > window_tokens_ / 8 || items > kWindowItems / 8) return;
      (*kept)[bin] = true;
    }
  }

  void EmitBin(const Bin& bin) {
    Chunk chunk;
    chunk.tokens.reserve(chunk_tokens_);
    for (uint32_t i = bin.first_item; i != kNone; i = fit_.NextOf(i)) {
      const Item& item = items_[i];
      const auto token = tokens_.begin() + static_cast<ptrdiff_t>(item.first_token);
      const auto segment = segments_.begin() + static_cast<ptrdiff_t>(item.first_segment);
      chunk.segments.insert(chunk.segments.end(), segment, segment + item.segments);
      chunk.tokens.insert(chunk.tokens.end(), token, token + sizes_[i]);
    }
    PadTo(chunk_tokens_, &chunk);
    emit_(std::move(chunk));
  }

  void KeepItemsOf(const std::vector<bool>& kept_bins) {
    const std::vector<Bin>& bins = fit_.bins();
    std::vector<bool> kept(items_.size(), false);
    for (size_t bin = 0; bin < bins.size(); ++bin) {
      if (!kept_bins[bin]) continue;
      for (uint32_t item = bins[bin].first_item; item != kNone; item = fit_.NextOf(item)) kept[item] = true;
    }
    size_t items = 0, tokens = 0, segments = 0;
    const auto move_back = [](auto* all, size_t from, size_t count, size_t to) {
      const auto begin = all->begin() + static_cast<ptrdiff_t>(from);
      std::copy(begin, begin + static_cast<ptrdiff_t>(count), all->begin() + static_cast<ptrdiff_t>(to));
    };
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!kept[i]) continue;
      Item item = items_[i];
      move_back(&tokens_, item.first_token, sizes_[i], tokens);
      move_back(&segments_, item.first_segment, item.segments, segments);
      item.first_token = tokens;
      item.first_segment = segments;
      tokens += sizes_[i];
      sizes_[items] = sizes_[i];
      items_[items++] = item;
      segments += item.segments;
    }
    items_.resize(items);
    sizes_.resize(items);
    tokens_.resize(tokens);
    segments_.resize(segments);
  }

  const size_t chunk_tokens_;
  const uint64_t window_tokens_;
  const uint64_t look_tokens_;  // by which a window grows at least until its full chunks are emitted
  uint64_t next_look_tokens_;
  std::function<void(Chunk)> emit_;
  std::vector<uint32_t> tokens_;   // of all items of the window, one after the other
  std::vector<Segment> segments_;  // likewise
  std::vector<Item> items_;
  std::vector<uint32_t> sizes_;  // their tokens
  BestFitBins fit_;
};

Packer::Packer(const PackerOptions& options, std::function<void(Chunk)> emit) : options_(options) {
  TRAINWRIGHT_CHECK(options.chunk_tokens >= 2 && options.chunk_tokens <= kMaxChunkTokens);
  TRAINWRIGHT_CHECK(options.records != RecordKind::kContrastive ||
                    (options.overflow != OverflowPolicy::kSplit && options.mode != PackMode::kConcat));
  TRAINWRIGHT_CHECK(options.stride_tokens <= options.chunk_tokens);
  TRAINWRIGHT_CHECK(options.stride_tokens == 0 ||
                    (options.overflow == OverflowPolicy::kSplit && options.mode != PackMode::kConcat));
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

void Packer::AddContrastive(const DocumentPiece& piece) {
  if (piece.begins) {
    ++counts_.documents;
    contrastive_.Clear();
    discarding_ = false;
  }
  counts_.tokens += piece.tokens.size();
  counts_.source_bytes += piece.source_bytes;
  if (piece.loss) counts_.loss_tokens += piece.tokens.size();
  if (discarding_) {
    CountDropped(piece.tokens.size(), piece.loss);
    return;
  }
  contrastive_.Add(piece);
  // A record that is shortened may grow to two chunks before it is, so that this happens seldom.
  const bool truncate = options_.overflow == OverflowPolicy::kTruncate;
  const uint64_t most = truncate && !piece.ends ? 2 * uint64_t{options_.chunk_tokens} : options_.chunk_tokens;
  if (contrastive_.tokens() > most && options_.overflow == OverflowPolicy::kError) {
    throw Error(ErrorCode::kBadInput, "record " + std::to_string(counts_.documents - 1),
                "is longer than a chunk of " + std::to_string(options_.chunk_tokens) + " tokens", "",
                "choose a larger --chunk, or --overflow truncate or drop");
  }
  const bool shorten =
      truncate && (contrastive_.tokens() > most || (piece.ends && contrastive_.tokens_dropped() > 0));
  const bool fits = shorten ? contrastive_.ShortenTo(options_.chunk_tokens) : contrastive_.tokens() <= most;
  if (!fits) {
    CountDropped(contrastive_.tokens() + contrastive_.tokens_dropped(), true);
    ++counts_.documents_dropped;
    discarding_ = true;
    return;
  }
  if (!piece.ends) return;
  CountDropped(contrastive_.tokens_dropped(), true);
  if (contrastive_.tokens_dropped() > 0) ++counts_.documents_truncated;
  layout_->Add(contrastive_.ids(), contrastive_.Segments());
}

void Packer::Add(const DocumentPiece& piece) {
  if (options_.records == RecordKind::kContrastive) return AddContrastive(piece);
  if (piece.begins) {
    ++counts_.documents;
    item_tokens_.clear();
    item_runs_.clear();
    item_starts_mid_document_ = false;
    item_slides_ = false;
    front_dropped_ = false;
    loss_tokens_seen_ = 0;
    discarding_ = false;
  }
  const std::span<const uint32_t> tokens = piece.tokens;
  const uint64_t chunk_tokens = options_.chunk_tokens;
  const uint64_t keep_loss_tokens = std::min(options_.keep_loss_tokens, chunk_tokens);
  counts_.tokens += tokens.size();
  counts_.source_bytes += piece.source_bytes;
  if (piece.loss) counts_.loss_tokens += tokens.size();
  size_t used = 0;
  while (used < tokens.size() && !discarding_) {
    // A sliding item may grow to two chunks, so that its front goes in large strokes.
    const uint64_t most = item_slides_ ? 2 * chunk_tokens : chunk_tokens;
    if (item_tokens_.size() < most) {
      uint64_t count = std::min(tokens.size() - used, most - item_tokens_.size());
      if (item_slides_ && piece.loss) count = std::min(count, keep_loss_tokens - loss_tokens_seen_);
      Append(tokens.subspan(used, count),
             Share(piece.source_bytes, used + count, tokens.size()) -
                 Share(piece.source_bytes, used, tokens.size()),
             piece.loss);
      used += count;
      if (item_slides_ && loss_tokens_seen_ == keep_loss_tokens) {
        DropFront();
        item_slides_ = false;
      }
      continue;
    }
    if (item_slides_) {
      DropFront();
      continue;
    }
    switch (options_.overflow) {
      case OverflowPolicy::kSplit:
        CompleteWindow(tokens[used], piece.loss);
        break;
      case OverflowPolicy::kTruncate:
        if (loss_tokens_seen_ < keep_loss_tokens) {
          item_slides_ = true;
          break;
        }
        CompleteItem(/*ends_mid_document=*/true, tokens[used], piece.loss);
        ++counts_.documents_truncated;
        discarding_ = true;
        break;
      case OverflowPolicy::kDrop:
        for (const Run& run : item_runs_) CountDropped(run.tokens, run.loss);
        ++counts_.documents_dropped;
        discarding_ = true;
        break;
      case OverflowPolicy::kError:
        throw Error(ErrorCode::kBadInput, "document " + std::to_string(counts_.documents - 1),
                    "is longer than a chunk of " + std::to_string(options_.chunk_tokens) + " tokens", "",
                    "choose a larger --chunk, or --overflow split, truncate or drop");
    }
  }
  if (discarding_) CountDropped(tokens.size() - used, piece.loss);
  if (tokens.empty()) Append({}, piece.source_bytes, piece.loss);
  if (!piece.ends || discarding_) return;
  if (item_slides_) DropFront();
  if (front_dropped_) ++counts_.documents_truncated;
  if (item_tokens_.empty()) {
    ++counts_.documents_empty;
  } else {
    CompleteItem(/*ends_mid_document=*/false, kNoId, false);
  }
}

void Packer::Append(std::span<const uint32_t> tokens, uint64_t source_bytes, bool loss) {
  if (item_runs_.empty() || item_runs_.back().loss != loss) item_runs_.push_back({.loss = loss});
  item_runs_.back().tokens += tokens.size();
  item_runs_.back().source_bytes += source_bytes;
  item_tokens_.insert(item_tokens_.end(), tokens.begin(), tokens.end());
  if (loss) loss_tokens_seen_ += tokens.size();
}

void Packer::DropFront() {
  if (item_tokens_.size() <= options_.chunk_tokens) return;
  front_dropped_ = true;
  const uint64_t dropped = item_tokens_.size() - options_.chunk_tokens;
  item_tokens_.erase(item_tokens_.begin(), item_tokens_.begin() + static_cast<ptrdiff_t>(dropped));
  CutFront(dropped, &item_runs_, /*dropped=*/true);
}

void Packer::CutFront(uint64_t tokens, std::vector<Run>* runs, bool dropped) {
  auto run = runs->begin();
  for (; tokens >= run->tokens; ++run) {
    if (dropped) CountDropped(run->tokens, run->loss);
    tokens -= run->tokens;
  }
  run->source_bytes -= Share(run->source_bytes, tokens, run->tokens);
  run->tokens -= tokens;
  if (dropped) CountDropped(tokens, run->loss);
  runs->erase(runs->begin(), run);
}

void Packer::CompleteWindow(uint32_t next_token, bool next_loss) {
  if (options_.stride_tokens == 0 || options_.stride_tokens == options_.chunk_tokens) {
    return CompleteItem(/*ends_mid_document=*/true, next_token, next_loss);
  }
  const std::vector<uint32_t> repeated(item_tokens_.begin() + options_.stride_tokens, item_tokens_.end());
  std::vector<Run> runs = item_runs_;
  CutFront(options_.stride_tokens, &runs, /*dropped=*/false);
  CompleteItem(/*ends_mid_document=*/true, next_token, next_loss);
  item_tokens_ = repeated;
  item_runs_ = std::move(runs);
  counts_.tokens_repeated += repeated.size();
}

void Packer::CountDropped(uint64_t tokens, bool loss) {
  counts_.tokens_dropped += tokens;
  if (loss) counts_.loss_tokens_dropped += tokens;
}

void Packer::CompleteItem(bool ends_mid_document, uint32_t next_token, bool next_loss) {
  std::vector<Segment> segments;
  uint64_t bytes_without_tokens = 0;
  for (const Run& run : item_runs_) {
    if (run.tokens == 0) {
      bytes_without_tokens += run.source_bytes;
      continue;
    }
    const uint8_t loss_flag = run.loss ? 0 : kSegmentNoLoss;
    const uint64_t source_bytes = run.source_bytes + std::exchange(bytes_without_tokens, 0);
    // A run without tokens may have stood between two that are alike.
    if (!segments.empty() && (segments.back().flags & kSegmentNoLoss) == loss_flag) {
      segments.back().tokens += static_cast<uint32_t>(run.tokens);
      segments.back().source_bytes += source_bytes;
      continue;
    }
    const uint8_t continues = segments.empty() ? 0 : kSegmentContinuesPrevious;
    segments.push_back({.tokens = static_cast<uint32_t>(run.tokens),
                        .flags = static_cast<uint8_t>(loss_flag | continues),
                        .source_bytes = source_bytes});
  }
  segments.back().source_bytes += bytes_without_tokens;
  if (item_starts_mid_document_) segments.front().flags |= kSegmentStartsMidDocument;
  if (ends_mid_document) {
    segments.back().flags |= kSegmentEndsMidDocument | (next_loss ? 0 : kSegmentNextNoLoss);
    segments.back().next_token = next_token;
  }
  layout_->Add(item_tokens_, segments);
  item_tokens_.clear();
  item_runs_.clear();
  item_starts_mid_document_ = true;
}

void Packer::Finish() {
  layout_->Finish();
}

}  // namespace trainwright

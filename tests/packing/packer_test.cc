#include "lib/packing/packer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using Document = std::vector<uint32_t>;

struct Packed {
  std::vector<Chunk> chunks;
  PackerCounts counts;
};

// Four bytes of text a token, unless told otherwise.
uint64_t BytesOf(size_t tokens) {
  return 4 * tokens;
}

Packed Pack(const PackerOptions& options, const std::vector<Document>& documents,
            size_t piece_tokens = SIZE_MAX) {
  Packed packed;
  Packer packer(options, [&](Chunk chunk) { packed.chunks.push_back(std::move(chunk)); });
  for (const Document& document : documents) {
    size_t begin = 0;
    do {
      const size_t count = std::min(piece_tokens, document.size() - begin);
      packer.Add({.tokens = std::span(document).subspan(begin, count),
                  .begins = begin == 0,
                  .ends = begin + count == document.size(),
                  .source_bytes = BytesOf(count)});
      begin += count;
    } while (begin < document.size());
  }
  packer.Finish();
  packed.counts = packer.counts();
  return packed;
}

// The packer again, the slow and obvious way: whole documents in memory, lists scanned from end to end.
class ReferencePacker {
 public:
  explicit ReferencePacker(const PackerOptions& options) : options_(options) {}

  std::vector<Chunk> Pack(const std::vector<Document>& documents) {
    for (const Document& document : documents) {
      if (document.empty()) continue;
      if (options_.mode == PackMode::kConcat) {
        AddToConcat(document);
      } else {
        for (const Chunk& item : ItemsOf(document)) {
          if (options_.mode == PackMode::kNone || item.tokens.size() == options_.chunk_tokens) {
            chunks_.push_back(item);
          } else {
            window_.push_back(item);
            const uint64_t whole = std::max<uint64_t>(options_.window_tokens, options_.chunk_tokens);
            const uint64_t step = std::max<uint64_t>(whole / 8, 16 * chunk());
            if (WindowTokens() >= whole) {
              PackWindow(Window::kWhole);
            } else if (WindowTokens() >= kept_before_ + std::max(step, kept_before_ / 2)) {
              PackWindow(Window::kGrowing);
            }
          }
        }
      }
    }
    if (options_.mode == PackMode::kConcat && !open_.tokens.empty()) Pad(&open_), chunks_.push_back(open_);
    if (options_.mode == PackMode::kBestFit) PackWindow(Window::kLast);
    return chunks_;
  }

 private:
  struct Bin {
    std::vector<Chunk> items;
    size_t room;
    size_t last_change;
  };

  size_t chunk() const { return options_.chunk_tokens; }

  std::vector<Chunk> ItemsOf(const Document& document) const {
    if (document.size() > chunk() && options_.overflow == OverflowPolicy::kDrop) return {};
    std::vector<Chunk> items;
    const size_t stride = options_.stride_tokens > 0 ? options_.stride_tokens : chunk();
    for (size_t begin = 0, last_end = 0; last_end < document.size(); begin += stride) {
      const size_t end = std::min(document.size(), begin + chunk());
      Segment segment{.tokens = static_cast<uint32_t>(end - begin), .source_bytes = BytesOf(end - begin)};
      if (begin > 0) segment.flags |= kSegmentStartsMidDocument;
      if (end < document.size()) segment.flags |= kSegmentEndsMidDocument, segment.next_token = document[end];
      items.push_back({{segment}, Document(document.begin() + begin, document.begin() + end)});
      last_end = end;
      if (options_.overflow == OverflowPolicy::kTruncate) break;
    }
    return items;
  }

  // One token at a time.
  void AddToConcat(const Document& document) {
    const bool long_document = document.size() > chunk();
    if (long_document && options_.overflow == OverflowPolicy::kDrop) return;
    const size_t kept =
        long_document && options_.overflow == OverflowPolicy::kTruncate ? chunk() : document.size();
    for (size_t i = 0; i < kept; ++i) {
      if (i == 0 || open_.tokens.empty()) {
        open_.segments.push_back({.flags = i == 0 ? uint8_t{0} : kSegmentStartsMidDocument});
      }
      open_.tokens.push_back(document[i]);
      Segment& segment = open_.segments.back();
      ++segment.tokens;
      segment.source_bytes += BytesOf(1);
      const bool segment_ends = i + 1 == kept || open_.tokens.size() == chunk();
      if (segment_ends && i + 1 < document.size()) {
        segment.flags |= kSegmentEndsMidDocument;
        segment.next_token = document[i + 1];
      }
      if (open_.tokens.size() == chunk()) chunks_.push_back(std::exchange(open_, {}));
    }
  }

  uint64_t WindowTokens() const {
    uint64_t tokens = 0;
    for (const Chunk& item : window_) tokens += item.tokens.size();
    return tokens;
  }

  enum class Window { kGrowing, kWhole, kLast };

  void PackWindow(Window window) {
    std::vector<size_t> order(window_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const size_t size_a = window_[a].tokens.size(), size_b = window_[b].tokens.size();
      return size_a != size_b ? size_a > size_b : a < b;
    });
    std::vector<Bin> bins;
    std::vector<std::vector<size_t>> members;
    size_t now = 0;
    for (const size_t i : order) {
      const size_t size = window_[i].tokens.size();
      std::optional<size_t> best;
      for (size_t b = 0; b < bins.size(); ++b) {
        if (bins[b].room < size) continue;
        if (!best || std::pair(bins[b].room, bins[b].last_change) <
                         std::pair(bins[*best].room, bins[*best].last_change)) {
          best = b;
        }
      }
      if (!best) {
        best = bins.size();
        bins.push_back({{}, chunk(), 0});
        members.emplace_back();
      }
      bins[*best].items.push_back(window_[i]);
      bins[*best].room -= size;
      bins[*best].last_change = ++now;
      members[*best].push_back(i);
    }
    std::vector<size_t> emptiest;
    for (size_t b = 0; b < bins.size(); ++b) {
      const size_t full = chunk() / (window == Window::kWhole ? 64 : 256);
      if (window != Window::kLast && bins[b].room > full) emptiest.push_back(b);
    }
    std::sort(emptiest.begin(), emptiest.end(), [&](size_t a, size_t b) {
      return bins[a].room != bins[b].room ? bins[a].room > bins[b].room : a < b;
    });
    std::vector<size_t> kept_items;
    std::vector<bool> kept(bins.size(), false);
    uint64_t kept_tokens = 0;
    for (const size_t b : emptiest) {
      kept_tokens += chunk() - bins[b].room;
      const uint64_t most = std::max<uint64_t>(options_.window_tokens, chunk()) / 8;
      if (window == Window::kWhole && kept_tokens > most) break;
      kept[b] = true;
      kept_items.insert(kept_items.end(), members[b].begin(), members[b].end());
    }
    for (size_t b = 0; b < bins.size(); ++b) {
      if (kept[b]) continue;
      Chunk chunk;
      for (const Chunk& item : bins[b].items) {
        chunk.segments.push_back(item.segments[0]);
        chunk.tokens.insert(chunk.tokens.end(), item.tokens.begin(), item.tokens.end());
      }
      Pad(&chunk);
      chunks_.push_back(chunk);
    }
    std::sort(kept_items.begin(), kept_items.end());
    std::vector<Chunk> next;
    for (const size_t i : kept_items) next.push_back(window_[i]);
    window_ = next;
    kept_before_ = WindowTokens();
  }

  void Pad(Chunk* chunk) const {
    const size_t missing = options_.chunk_tokens - chunk->tokens.size();
    if (missing == 0) return;
    chunk->segments.push_back({.tokens = static_cast<uint32_t>(missing), .flags = kSegmentPadding});
    chunk->tokens.insert(chunk->tokens.end(), missing, 0);
  }

  PackerOptions options_;
  std::vector<Chunk> chunks_;
  std::vector<Chunk> window_;
  uint64_t kept_before_ = 0;  // tokens of the window when it was last packed
  Chunk open_;
};

// Every token of every document is another number, so that it can be found again.
std::vector<Document> RandomDocuments(uint64_t index, size_t count, size_t max_tokens) {
  const Rng rng(test::TestSeed(), "packer documents", index);
  std::vector<Document> documents(count);
  uint32_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    // Short documents, some of them equally long, a few empty, and a long tail.
    size_t tokens = rng.Bits(2 * i) % (rng.Bits(2 * i + 1) % 10 == 0 ? 6 * max_tokens : max_tokens);
    for (size_t t = 0; t < tokens; ++t) documents[i].push_back(next++);
  }
  return documents;
}

std::string Describe(const PackerOptions& options) {
  return "mode " + std::to_string(static_cast<int>(options.mode)) + " overflow " +
         std::to_string(static_cast<int>(options.overflow)) + " chunk " +
         std::to_string(options.chunk_tokens) + " window " + std::to_string(options.window_tokens) +
         " seed " + std::to_string(test::TestSeed());
}

std::vector<PackerOptions> ManyOptions() {
  std::vector<PackerOptions> many;
  for (const PackMode mode : {PackMode::kNone, PackMode::kConcat, PackMode::kBestFit}) {
    for (const OverflowPolicy overflow :
         {OverflowPolicy::kSplit, OverflowPolicy::kTruncate, OverflowPolicy::kDrop}) {
      for (const uint32_t chunk_tokens : {2u, 7u, 32u, 128u, 200u}) {
        for (const uint64_t window_tokens : {1u, 300u, 2000u, 1u << 24}) {
          many.push_back({mode, overflow, chunk_tokens, window_tokens});
          if (mode != PackMode::kBestFit) break;
        }
      }
    }
  }
  return many;
}

TEST(PackerTest, GivesTheChunksOfTheSlowReference) {
  for (const PackerOptions& options : ManyOptions()) {
    SCOPED_TRACE(Describe(options));
    for (uint64_t round = 0; round < 3; ++round) {
      const std::vector<Document> documents = RandomDocuments(round, 150, 40);
      const std::vector<Chunk> expected = ReferencePacker(options).Pack(documents);
      const std::vector<Chunk> chunks = Pack(options, documents).chunks;
      ASSERT_EQ(chunks.size(), expected.size());
      for (size_t i = 0; i < chunks.size(); ++i) ASSERT_EQ(chunks[i], expected[i]) << "chunk " << i;
    }
  }
}

std::vector<PackerOptions> ManyStrides() {
  std::vector<PackerOptions> many;
  for (const PackMode mode : {PackMode::kNone, PackMode::kBestFit}) {
    for (const auto& [chunk_tokens, stride_tokens] : std::vector<std::pair<uint32_t, uint32_t>>{
             {2, 1}, {7, 1}, {7, 3}, {32, 16}, {32, 31}, {32, 32}, {128, 5}}) {
      for (const uint64_t window_tokens : {300u, 1u << 24}) {
        many.push_back({.mode = mode,
                        .overflow = OverflowPolicy::kSplit,
                        .chunk_tokens = chunk_tokens,
                        .window_tokens = window_tokens,
                        .stride_tokens = stride_tokens});
      }
    }
  }
  return many;
}

TEST(PackerTest, WindowsWithAStrideAreThoseOfTheSlowReference) {
  for (const PackerOptions& options : ManyStrides()) {
    SCOPED_TRACE(Describe(options) + " stride " + std::to_string(options.stride_tokens));
    for (uint64_t round = 0; round < 3; ++round) {
      const std::vector<Document> documents = RandomDocuments(100 + round, 150, 40);
      const std::vector<Chunk> expected = ReferencePacker(options).Pack(documents);
      for (const size_t piece_tokens : {SIZE_MAX, size_t{1}, size_t{5}}) {
        const Packed packed = Pack(options, documents, piece_tokens);
        ASSERT_EQ(packed.chunks, expected) << "pieces of " << piece_tokens;
        uint64_t stored = 0;
        for (const Chunk& chunk : packed.chunks) {
          for (const Segment& segment : chunk.segments) {
            if ((segment.flags & kSegmentPadding) == 0) stored += segment.tokens;
          }
        }
        ASSERT_EQ(stored, packed.counts.tokens + packed.counts.tokens_repeated);
      }
    }
  }
}

TEST(PackerTest, DoesNotDependOnHowDocumentsAreCutIntoPieces) {
  const std::vector<Document> documents = RandomDocuments(7, 100, 60);
  for (const PackerOptions& options : ManyOptions()) {
    SCOPED_TRACE(Describe(options));
    const std::vector<Chunk> whole = Pack(options, documents).chunks;
    for (const size_t piece_tokens : {1, 5, 32}) {
      ASSERT_EQ(Pack(options, documents, piece_tokens).chunks, whole) << "pieces of " << piece_tokens;
    }
  }
}

TEST(PackerTest, SplitKeepsEveryTokenOnceInDocumentOrderWithItsLabel) {
  const std::vector<Document> documents = RandomDocuments(11, 400, 50);
  for (const PackerOptions& options : ManyOptions()) {
    if (options.overflow != OverflowPolicy::kSplit) continue;
    SCOPED_TRACE(Describe(options));
    // label[t]: what the chunks say follows token t; kNoId when its document ends there.
    std::map<uint32_t, uint32_t> label;
    uint64_t source_bytes = 0;
    for (const Chunk& chunk : Pack(options, documents).chunks) {
      size_t at = 0;
      for (const Segment& segment : chunk.segments) {
        if ((segment.flags & kSegmentPadding) != 0) {
          for (size_t i = 0; i < segment.tokens; ++i) ASSERT_EQ(chunk.tokens[at + i], 0u);
        } else {
          for (size_t i = 0; i < segment.tokens; ++i) {
            const uint32_t next = i + 1 < segment.tokens ? chunk.tokens[at + i + 1] : segment.next_token;
            ASSERT_TRUE(label.emplace(chunk.tokens[at + i], next).second) << "token seen twice";
          }
        }
        at += segment.tokens;
        source_bytes += segment.source_bytes;
      }
      ASSERT_EQ(at, chunk.tokens.size());
    }
    uint64_t tokens = 0;
    for (const Document& document : documents) {
      tokens += document.size();
      for (size_t i = 0; i < document.size(); ++i) {
        ASSERT_TRUE(label.contains(document[i]));
        ASSERT_EQ(label[document[i]], i + 1 < document.size() ? document[i + 1] : kNoId);
      }
    }
    ASSERT_EQ(label.size(), tokens);
    ASSERT_EQ(source_bytes, BytesOf(tokens));
  }
}

TEST(PackerTest, ChunksOfConcatAndBestFitAreExactlyFull) {
  const std::vector<Document> documents = RandomDocuments(3, 300, 90);
  for (const PackerOptions& options : ManyOptions()) {
    if (options.mode == PackMode::kNone) continue;
    SCOPED_TRACE(Describe(options));
    for (const Chunk& chunk : Pack(options, documents).chunks)
      ASSERT_EQ(chunk.tokens.size(), options.chunk_tokens);
  }
}

TEST(PackerTest, BestFitNeverCutsADocumentThatFitsAChunk) {
  const std::vector<Document> documents = RandomDocuments(5, 300, 60);
  const PackerOptions options{PackMode::kBestFit, OverflowPolicy::kSplit, 64, 1000};
  std::map<uint32_t, size_t> size_of_document_with;
  for (const Document& document : documents) {
    for (const uint32_t token : document) size_of_document_with[token] = document.size();
  }
  for (const Chunk& chunk : Pack(options, documents).chunks) {
    size_t at = 0;
    for (const Segment& segment : chunk.segments) {
      if ((segment.flags & kSegmentEndsMidDocument) != 0) {
        EXPECT_GT(size_of_document_with[chunk.tokens[at]], 64u);
      }
      at += segment.tokens;
    }
  }
}

TEST(PackerTest, CountsAddUpUnderEveryPolicy) {
  const std::vector<Document> documents = RandomDocuments(13, 500, 40);
  uint64_t tokens = 0, empty = 0, too_long = 0, beyond = 0, in_too_long = 0;
  for (const Document& document : documents) {
    tokens += document.size();
    empty += document.empty();
    if (document.size() > 32) ++too_long, beyond += document.size() - 32, in_too_long += document.size();
  }
  ASSERT_GT(too_long, 0u);
  for (const OverflowPolicy overflow :
       {OverflowPolicy::kSplit, OverflowPolicy::kTruncate, OverflowPolicy::kDrop}) {
    const PackerOptions options{PackMode::kBestFit, overflow, 32, 500};
    SCOPED_TRACE(Describe(options));
    const Packed packed = Pack(options, documents);
    uint64_t kept = 0;
    for (const Chunk& chunk : packed.chunks) {
      for (const Segment& segment : chunk.segments)
        kept += (segment.flags & kSegmentPadding) ? 0 : segment.tokens;
    }
    EXPECT_EQ(packed.counts.documents, documents.size());
    EXPECT_EQ(packed.counts.documents_empty, empty);
    EXPECT_EQ(packed.counts.tokens, tokens);
    EXPECT_EQ(packed.counts.source_bytes, BytesOf(tokens));
    EXPECT_EQ(kept + packed.counts.tokens_dropped, tokens);
    const bool truncate = overflow == OverflowPolicy::kTruncate, drop = overflow == OverflowPolicy::kDrop;
    EXPECT_EQ(packed.counts.tokens_dropped, truncate ? beyond : drop ? in_too_long : 0);
    EXPECT_EQ(packed.counts.documents_truncated, truncate ? too_long : 0);
    EXPECT_EQ(packed.counts.documents_dropped, drop ? too_long : 0);
  }
}

TEST(PackerTest, ErrorPolicyRefusesALongDocumentAndNamesTheFlags) {
  const PackerOptions options{PackMode::kBestFit, OverflowPolicy::kError, 4, 500};
  EXPECT_EQ(Pack(options, {{1, 2, 3, 4}}).chunks.size(), 1u);
  const std::string message = test::MessageOf([&] { Pack(options, {{1, 2}, {1, 2, 3, 4, 5}}); });
  EXPECT_NE(message.find("document 1"), std::string::npos) << message;
  EXPECT_NE(message.find("--overflow"), std::string::npos) << message;
  EXPECT_EQ(test::CodeOf([&] { Pack(options, {{1, 2, 3, 4, 5}}); }), ErrorCode::kBadInput);
}

TEST(PackerTest, SourceBytesOfACutDocumentAreSharedInProportionAndExactInSum) {
  for (const PackMode mode : {PackMode::kNone, PackMode::kConcat, PackMode::kBestFit}) {
    std::vector<uint64_t> shares;
    Packer packer({mode, OverflowPolicy::kSplit, 3, 100}, [&](Chunk chunk) {
      for (const Segment& segment : chunk.segments) {
        if ((segment.flags & kSegmentPadding) == 0) shares.push_back(segment.source_bytes);
      }
    });
    const Document document = {1, 2, 3, 4, 5, 6, 7};
    packer.Add({.tokens = document, .source_bytes = 20});
    packer.Finish();
    // 20 * 3 / 7 = 8.57, 20 * 6 / 7 = 17.1
    EXPECT_EQ(shares, (std::vector<uint64_t>{8, 9, 3})) << "mode " << static_cast<int>(mode);
  }
}

TEST(PackerTest, SourceBytesOfPiecesWithoutTokensAreNotLost) {
  const Document document = {1, 2};
  for (const PackMode mode : {PackMode::kNone, PackMode::kConcat, PackMode::kBestFit}) {
    uint64_t source_bytes = 0;
    Packer packer({mode, OverflowPolicy::kSplit, 2, 100}, [&](Chunk chunk) {
      for (const Segment& segment : chunk.segments) source_bytes += segment.source_bytes;
    });
    packer.Add({.tokens = {}, .begins = true, .ends = false, .source_bytes = 5});
    packer.Add({.tokens = document, .begins = false, .ends = false, .source_bytes = 7});
    packer.Add({.tokens = {}, .begins = false, .ends = true, .source_bytes = 11});
    packer.Finish();
    EXPECT_EQ(source_bytes, 23u) << "mode " << static_cast<int>(mode);
  }
}

TEST(PackerTest, WindowsLeaveLittlePaddingOnALongStream) {
  // 20,000 documents whose lengths fit each other badly inside a small window.
  const std::vector<Document> documents = RandomDocuments(17, 20000, 700);
  const PackerOptions options{PackMode::kBestFit, OverflowPolicy::kSplit, 1024, 64 * 1024};
  uint64_t padding = 0, tokens = 0;
  for (const Chunk& chunk : Pack(options, documents).chunks) {
    for (const Segment& segment : chunk.segments) {
      ((segment.flags & kSegmentPadding) != 0 ? padding : tokens) += segment.tokens;
    }
  }
  EXPECT_LT(static_cast<double>(padding), 0.01 * static_cast<double>(tokens));
}

TEST(PackerTest, AWindowEndsAt65536ItemsWhateverItsTokens) {
  uint64_t chunks = 0;
  Packer packer({PackMode::kBestFit, OverflowPolicy::kSplit, 2, uint64_t{1} << 40}, [&](Chunk) { ++chunks; });
  const Document document = {1};
  for (int i = 0; i < 65535; ++i) packer.Add({.tokens = document});
  EXPECT_EQ(chunks, 0u);
  packer.Add({.tokens = document});
  EXPECT_EQ(chunks, 32768u);
}

TEST(PackerTest, MemoryForAHugeDocumentIsOneItem) {
  // 64 M tokens in one document through a window of 1,000: chunks come out while it is still going in.
  const Document piece(1 << 16, 7);
  uint64_t chunks = 0;
  Packer packer({PackMode::kBestFit, OverflowPolicy::kSplit, 1000, 1000}, [&](Chunk) { ++chunks; });
  for (int i = 0; i < 1024; ++i) {
    packer.Add({.tokens = piece, .begins = i == 0, .ends = i == 1023, .source_bytes = 1});
    ASSERT_GE((chunks + 1) * 1000, (static_cast<uint64_t>(i) + 1) * piece.size());
  }
  packer.Finish();
  EXPECT_EQ(chunks, ((uint64_t{1} << 26) + 999) / 1000);
}

}  // namespace
}  // namespace trainwright

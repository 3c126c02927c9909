/// Documents of any length into chunks of one length: the core of `pack`.
///
/// Two stages. The first cuts a document into items of at most `chunk_tokens` tokens by the overflow policy;
/// it holds one item at a time, so a document is never held whole. The second lays items into chunks:
///   kConcat   end to end, an item is cut where a chunk ends; O(tokens), padding in the last chunk only
///   kBestFit  best-fit decreasing over a window of items: no item is cut, each goes into the chunk with the
///             least room that holds it. Chunks that are full to 1/256 leave a window while it grows, so that
///             who takes them works beside the producer. The least filled chunks of a window are split up
///             again and join the next one, so that only the end of the input is padded noticeably
///   kNone     one item a chunk, no padding
/// In sft records a document is predicted in runs; every run that an item holds becomes a segment of its
/// chunk. A contrastive record is one item, and never cut. \source best-fit packing: Ding et al. 2024, arXiv
/// 2404.10830
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/formats/shard.h"
#include "lib/formats/token_stream.h"
#include "lib/packing/contrastive_item.h"

namespace trainwright {

struct PackerOptions {
  PackMode mode = PackMode::kBestFit;
  /// What to do with a document longer than a chunk, in every mode:
  /// kSplit cuts it and keeps all, kTruncate keeps the first `chunk_tokens` tokens, kDrop keeps nothing of
  /// it, kError refuses the input.
  OverflowPolicy overflow = OverflowPolicy::kSplit;
  uint32_t chunk_tokens = 32768;  ///< in [2, 2^24]
  /// Tokens that kBestFit considers together, at least one chunk's worth; 4 bytes of memory each. A window
  /// also ends at 65,536 items.
  uint64_t window_tokens = uint64_t{1} << 24;
  /// Under kTruncate, of sft records: a document whose first `chunk_tokens` tokens hold fewer predicted ones
  /// than this loses its beginning instead: it keeps the `chunk_tokens` tokens that end with its predicted
  /// token of this number, or with its last token when it has fewer. 0: always the first ones.
  uint64_t keep_loss_tokens = 0;
  /// kContrastive: a record goes into one chunk whole. kTruncate shortens its longest texts at their ends, as
  /// ContrastiveItem says, and drops a record of too many texts; kSplit and kConcat are not for such records.
  RecordKind records = RecordKind::kLm;
  /// Under kSplit, not in kConcat: a long document is cut into windows of `chunk_tokens` tokens. Each begins
  /// this many tokens after the one before and so repeats its last `chunk_tokens` - `stride_tokens` tokens.
  /// In [1, chunk_tokens]; 0 is `chunk_tokens`: no token is repeated.
  uint32_t stride_tokens = 0;
};

/// What went in, and what did not come out.
struct PackerCounts {
  uint64_t documents = 0;  ///< begun, those without tokens included
  uint64_t tokens = 0;
  uint64_t source_bytes = 0;
  uint64_t documents_empty = 0;      ///< had no tokens: they leave no trace in the chunks
  uint64_t documents_truncated = 0;  ///< by kTruncate
  uint64_t documents_dropped = 0;    ///< by kDrop
  uint64_t tokens_repeated = 0;      ///< by windows that overlap: in the chunks beyond `tokens`
  uint64_t tokens_dropped = 0;       ///< by either of these two
  uint64_t loss_tokens = 0;          ///< of `tokens`, those with DocumentPiece::loss
  uint64_t loss_tokens_dropped = 0;  ///< of `tokens_dropped`
};

/// The chunks are a pure function of the options and the sequence of documents; how a document is cut into
/// pieces only moves source bytes between the segments of the same document (each segment gets its share of
/// the bytes of the pieces it overlaps, in proportion to tokens, exact in sum). Memory: 4 bytes times
/// (window_tokens + 2 * chunk_tokens) and 3 MiB. Not thread-safe.
class Packer {
 public:
  /// \param emit takes each finished chunk; in kConcat and kBestFit it holds exactly chunk_tokens tokens,
  /// padding
  ///             included. What it throws passes through Add and Finish
  Packer(const PackerOptions& options, std::function<void(Chunk)> emit);
  ~Packer();
  /// \throws Error{kBadInput} on a document longer than a chunk under kError
  void Add(const DocumentPiece& piece);
  /// Emits what is left; the last document must have ended. Called once, last.
  void Finish();
  const PackerCounts& counts() const { return counts_; }

 private:
  class Layout;
  class ConcatLayout;
  class BestFitLayout;
  class OneByOneLayout;

  /// A run of equal `loss` inside the item that is being filled.
  struct Run {
    uint64_t tokens = 0, source_bytes = 0;
    bool loss = true;
  };

  void AddContrastive(const DocumentPiece& piece);
  void Append(std::span<const uint32_t> tokens, uint64_t source_bytes, bool loss);
  /// Drops the item's first tokens until it fits a chunk.
  void DropFront();
  void CountDropped(uint64_t tokens, bool loss);
  /// \param next_token after the item, of a document that is cut there
  /// \param next_loss whether it is predicted
  void CompleteItem(bool ends_mid_document, uint32_t next_token, bool next_loss);
  /// The same of an item that the next one overlaps.
  void CompleteWindow(uint32_t next_token, bool next_loss);
  /// Takes the first tokens away from the runs of an item, and their share of the source bytes.
  void CutFront(uint64_t tokens, std::vector<Run>* runs, bool dropped);

  const PackerOptions options_;
  PackerCounts counts_;
  std::unique_ptr<Layout> layout_;
  std::vector<uint32_t> item_tokens_;  // the item that is being filled
  std::vector<Run> item_runs_;
  bool item_starts_mid_document_ = false;
  bool item_slides_ = false;       // the document is too long, and its beginning goes until this many
  uint64_t loss_tokens_seen_ = 0;  // of the document are enough
  bool front_dropped_ = false;     // the document has lost its beginning
  ContrastiveItem contrastive_;    // likewise, of contrastive records
  bool discarding_ = false;        // the rest of the document goes nowhere
};

}  // namespace trainwright

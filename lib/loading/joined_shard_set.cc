#include "lib/loading/joined_shard_set.h"

#include <algorithm>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/io/atomic_folder.h"

namespace trainwright {
namespace {

void RequireSameTokenizer(const NamedShardSet& first, const NamedShardSet& other) {
  const ShardSetHeader &wanted = first.set->header(), &found = other.set->header();
  if (found.tokenizer.sha256 == wanted.tokenizer.sha256) return;
  throw Error(ErrorCode::kBadInput, other.name,
              "was made with another tokenizer than " + first.name + " (sha256 " +
                  HexEncode(found.tokenizer.sha256).substr(0, 12) + ", not " +
                  HexEncode(wanted.tokenizer.sha256).substr(0, 12) + ")",
              "", "pretokenize both with the same --tokenizer");
}

void RequireAlike(const ShardSetPart& first, const ShardSetPart& other) {
  const auto refuse = [&](const std::string& problem, const std::string& hint) {
    throw Error(ErrorCode::kBadInput, other.name, problem, "", hint);
  };
  if (other.records != first.records) {
    refuse(std::string("holds ") + RecordKindName(other.records) + " records, " + first.name + " " +
               RecordKindName(first.records),
           "mix sets of one kind of records");
  }
  if (other.chunk_tokens != first.chunk_tokens) {
    refuse("has chunks of " + std::to_string(other.chunk_tokens) + " tokens, " + first.name + " of " +
               std::to_string(first.chunk_tokens) + ", so shares of chunks would not be shares of tokens",
           "pack both with the same --chunk");
  }
}

/// A set by itself. What was opened may be a copy of it, or a file without a name.
class SetOfName final : public ShardSet {
 public:
  explicit SetOfName(NamedShardSet named)
      : name_(WithoutLastSlash(std::move(named.name))), set_(std::move(named.set)) {}
  const ShardSetHeader& header() const override { return set_->header(); }
  std::string provenance_json() const override { return set_->provenance_json(); }
  const ShardTotals& totals() const override { return set_->totals(); }
  const std::vector<ShardInfo>& shards() const override { return set_->shards(); }
  uint64_t chunks() const override { return set_->chunks(); }
  std::vector<ShardSetPart> parts() const override {
    std::vector<ShardSetPart> parts = set_->parts();
    for (ShardSetPart& part : parts) part.name = name_;
    return parts;
  }
  const Sha256Digest& content_sha256() const override { return set_->content_sha256(); }
  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    return set_->ReadFrameOf(chunk, first_chunk);
  }
  void VerifyAll() const override { set_->VerifyAll(); }

 private:
  std::string name_;
  std::unique_ptr<ShardSet> set_;
};

class JoinedShardSet final : public ShardSet {
 public:
  JoinedShardSet(std::vector<NamedShardSet> sets, UnlikeSets unlike) : sets_(std::move(sets)) {
    Sha256 content;
    header_ = sets_[0].set->header();
    header_.provenance_json = "[";
    for (const NamedShardSet& named : sets_) {
      RequireSameTokenizer(sets_[0], named);
      const ShardSet& set = *named.set;
      for (ShardSetPart part : set.parts()) {
        part.name = named.name;
        part.first_chunk += totals_.chunks;
        if (unlike == UnlikeSets::kRefused && !parts_.empty()) RequireAlike(parts_.front(), part);
        header_.chunk_tokens = std::max(header_.chunk_tokens, part.chunk_tokens);
        parts_.push_back(std::move(part));
      }
      header_.provenance_json += (&named == sets_.data() ? "" : ",") + set.provenance_json();
      begins_.push_back(totals_.chunks);
      for (ShardInfo shard : set.shards()) {
        shard.shard_number = static_cast<uint32_t>(shards_.size());
        shard.first_chunk += begins_.back();
        shard.last = false;
        for (FrameEntry& frame : shard.frames) frame.first_chunk += begins_.back();
        shards_.push_back(std::move(shard));
      }
      totals_ += set.totals();
      content.Update(set.content_sha256());
    }
    header_.provenance_json += "]";
    if (!shards_.empty()) shards_.back().last = true;
    content_sha256_ = content.Digest();
  }
  const ShardSetHeader& header() const override { return header_; }
  const ShardTotals& totals() const override { return totals_; }
  const std::vector<ShardInfo>& shards() const override { return shards_; }
  uint64_t chunks() const override { return totals_.chunks; }
  std::vector<ShardSetPart> parts() const override { return parts_; }
  const Sha256Digest& content_sha256() const override { return content_sha256_; }
  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    TRAINWRIGHT_CHECK(chunk < totals_.chunks);
    // The last set that begins at or before it; empty sets begin where the next one does.
    const auto set =
        static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), chunk) - begins_.begin()) - 1;
    std::vector<Chunk> chunks = sets_[set].set->ReadFrameOf(chunk - begins_[set], first_chunk);
    *first_chunk += begins_[set];
    return chunks;
  }
  void VerifyAll() const override {
    for (const NamedShardSet& named : sets_) named.set->VerifyAll();
  }

 private:
  std::vector<NamedShardSet> sets_;
  std::vector<ShardSetPart> parts_;
  std::vector<uint64_t> begins_;  // the first chunk of each set
  ShardSetHeader header_;
  ShardTotals totals_;
  std::vector<ShardInfo> shards_;
  Sha256Digest content_sha256_{};
};

}  // namespace

std::unique_ptr<ShardSet> JoinShardSets(std::vector<NamedShardSet> sets, UnlikeSets unlike) {
  TRAINWRIGHT_CHECK(!sets.empty());
  if (sets.size() == 1) return std::make_unique<SetOfName>(std::move(sets[0]));
  return std::make_unique<JoinedShardSet>(std::move(sets), unlike);
}

void RequireAlikeParts(const ShardSet& set) {
  const std::vector<ShardSetPart> parts = set.parts();
  for (const ShardSetPart& part : parts) RequireAlike(parts.front(), part);
}

std::vector<OrderedSet> OrderedSetsOf(const ShardSet& set) {
  std::vector<OrderedSet> sets;
  for (const ShardSetPart& part : set.parts()) {
    sets.push_back({.first_chunk = part.first_chunk,
                    .chunks = part.chunks,
                    .weight = part.chunks,
                    .number = static_cast<uint32_t>(sets.size()),
                    .records = part.records,
                    .documents = part.documents});
  }
  return sets;
}

}  // namespace trainwright

#include "lib/packing/shard_set_writer.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"

namespace trainwright {
namespace {

// What a chunk and a segment take beside the tokens, in tokens.
constexpr uint64_t kTokensOfAChunk = 48, kTokensOfASegment = sizeof(Segment) / sizeof(uint32_t);

}  // namespace

ShardSetWriter::ShardSetWriter(const ShardSetHeader& header, const ShardSetWriterOptions& options,
                               ShardOutput* output)
    : header_(header),
      counts_(options.remap ? header.tokenizer.vocab_size : 0, 0),
      shard_size_bytes_(options.shard_size_bytes),
      output_(output),
      workers_(options.threads, static_cast<size_t>(options.threads) + 2,
               [this, level = options.level](int, Job job) {
                 return Done{EncodeFrame(header_, job.chunks, job.first_chunk, level), job.tokens_dropped};
               }) {
  summary_.header = header;
  summary_.header.tokenizer.model.clear();
}

void ShardSetWriter::ContinueBehind(const std::vector<ShardInfo>& shards) {
  TRAINWRIGHT_CHECK(chunks_pushed_ == 0 && counts_.empty());
  for (const ShardInfo& shard : shards) {
    summary_.AddShard(shard);
    content_.Update(shard.content_sha256);
  }
  chunks_pushed_ = chunks_written_ = summary_.totals.chunks;
}

void ShardSetWriter::Add(Chunk chunk, uint64_t tokens_dropped) {
  if (counts_.empty()) {
    AddToFrame(std::move(chunk), tokens_dropped);
    return;
  }
  for (const uint32_t token : chunk.tokens) ++counts_[token];
  held_back_tokens_ += chunk.tokens.size() + kTokensOfAChunk + kTokensOfASegment * chunk.segments.size();
  held_back_.push_back({std::move(chunk), tokens_dropped});
  if (held_back_tokens_ >= kRemapTokens) MakeCodes();
}

ShardSetSummary ShardSetWriter::Finish(uint64_t tokens_dropped) {
  if (!held_back_.empty()) MakeCodes();
  if (!chunks_.empty()) PushFrame(tokens_dropped);
  while (!workers_.empty()) WriteFrame();
  if (!shard_) return summary_;
  dropped_in_shard_ += tokens_dropped - dropped_in_frames_;
  CloseShard(/*last=*/true);
  summary_.content_sha256 = content_.Digest();
  return summary_;
}

// No frame is under way before the codes are known, so the workers may read the header.
void ShardSetWriter::MakeCodes() {
  header_.id_codes = std::make_shared<const IdCodes>(IdCodes::ForCounts(std::exchange(counts_, {})));
  summary_.header.id_codes = header_.id_codes;
  for (; !held_back_.empty(); held_back_.pop_front()) {
    AddToFrame(std::move(held_back_.front().chunk), held_back_.front().tokens_dropped);
  }
}

void ShardSetWriter::AddToFrame(Chunk chunk, uint64_t tokens_dropped) {
  chunks_.push_back(std::move(chunk));
  if (chunks_.size() == header_.chunks_per_frame) PushFrame(tokens_dropped);
}

void ShardSetWriter::PushFrame(uint64_t tokens_dropped) {
  ThrowIfStopped();
  if (workers_.full()) WriteFrame();
  const uint64_t first_chunk = chunks_pushed_;
  chunks_pushed_ += chunks_.size();
  workers_.Push({std::exchange(chunks_, {}), first_chunk, tokens_dropped - dropped_in_frames_});
  dropped_in_frames_ = tokens_dropped;
}

// A shard is closed when it is known that another follows: its index says whether it is the last.
void ShardSetWriter::WriteFrame() {
  const Done done = workers_.Pop();
  if (shard_ && shard_->totals().chunks > 0 &&
      shard_->size_bytes() + done.frame.bytes.size() > shard_size_bytes_) {
    CloseShard(/*last=*/false);
  }
  if (!shard_) {
    shard_.emplace(output_->OpenShard(), header_, static_cast<uint32_t>(summary_.shards), chunks_written_);
  }
  shard_->AddFrame(done.frame);
  chunks_written_ += done.frame.totals.chunks;
  summary_.frames_bytes += done.frame.bytes.size();
  dropped_in_shard_ += done.tokens_dropped;
}

void ShardSetWriter::CloseShard(bool last) {
  shard_->Finish(last, std::exchange(dropped_in_shard_, 0));
  output_->CommitShard(*shard_);
  summary_.totals += shard_->totals();
  summary_.size_bytes += shard_->size_bytes();
  ++summary_.shards;
  content_.Update(shard_->content_sha256());
  shard_.reset();
}

}  // namespace trainwright

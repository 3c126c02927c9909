#include "lib/loading/frame_cache.h"

#include <utility>

namespace trainwright {

DecodedFrame::DecodedFrame(const std::vector<Chunk>& chunks, uint64_t first_chunk, uint32_t vocab_size)
    : first_chunk_(first_chunk), tokens_(vocab_size) {
  size_t tokens = 0;
  for (const Chunk& chunk : chunks) tokens += chunk.tokens.size();
  tokens_.reserve(tokens);
  size_bytes_ = sizeof(*this) + tokens_.capacity_bytes();
  for (const Chunk& chunk : chunks) {
    token_begins_.push_back(tokens_.size());
    tokens_.Append(chunk.tokens);
    segments_.push_back(chunk.segments);
    size_bytes_ += sizeof(segments_.back()) + sizeof(size_t) + chunk.segments.size() * sizeof(Segment);
  }
  token_begins_.push_back(tokens_.size());
}

Chunk DecodedFrame::ChunkAt(uint64_t chunk) const {
  const size_t i = chunk - first_chunk_;
  return {.segments = segments_[i],
          .tokens = tokens_.Widened(token_begins_[i], token_begins_[i + 1] - token_begins_[i])};
}

uint64_t FrameCache::NameOf(uint64_t chunk) const {
  return LocateChunk(*set_, chunk).first_chunk;
}

std::shared_ptr<const DecodedFrame> FrameCache::FrameOf(uint64_t chunk) {
  const uint64_t name = NameOf(chunk);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kept_.find(name); found != kept_.end()) {
      uses_.splice(uses_.begin(), uses_, found->second.use);
      return found->second.frame;
    }
  }
  uint64_t first_chunk = 0;
  const std::vector<Chunk> chunks = set_->ReadFrameOf(chunk, &first_chunk);
  auto frame = std::make_shared<const DecodedFrame>(chunks, first_chunk, set_->header().tokenizer.vocab_size);
  const auto size_bytes = static_cast<int64_t>(frame->size_bytes());
  const std::lock_guard lock(mutex_);
  if (size_bytes > budget_bytes_ || kept_.contains(name)) return frame;  // another thread was faster
  while (held_bytes_ + size_bytes > budget_bytes_) {
    const auto oldest = kept_.find(uses_.back());
    held_bytes_ -= static_cast<int64_t>(oldest->second.frame->size_bytes());
    kept_.erase(oldest);
    uses_.pop_back();
  }
  uses_.push_front(name);
  kept_.emplace(name, Kept{frame, uses_.begin()});
  held_bytes_ += size_bytes;
  return frame;
}

int64_t FrameCache::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

}  // namespace trainwright

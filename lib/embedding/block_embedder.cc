#include "lib/embedding/block_embedder.h"

#include "lib/dist/shared_work.h"
#include "lib/embedding/vector_search.h"

namespace trainwright {

void BlockEmbedder::Add(std::string id, const InstructedText& text, const JsonPlace& place) {
  constexpr size_t kMostTexts = 2048;
  texts_.push_back(embedder_->Tokenize(text, place));
  ids_.push_back(std::move(id));
  if (texts_.size() == kMostTexts) Flush();
}

void BlockEmbedder::Flush() {
  if (texts_.empty()) return;
  const at::Tensor vectors = embedder_->Embed(texts_);
  DoAlike(world_, [&] {
    if (world_->is_writer()) use_(ComparedRows(vectors, embedder_->similarity()), ids_);
  });
  texts_.clear();
  ids_.clear();
}

}  // namespace trainwright

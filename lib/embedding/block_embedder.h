/// Embeds texts as they come, some thousands at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/dist/world.h"
#include "lib/embedding/text_embedder.h"

namespace trainwright {

/// Not thread-safe. All ranks give it the same texts in the same order.
class BlockEmbedder {
 public:
  /// Takes the vectors of some texts, whose dot products are their similarities (ComparedRows), and their
  /// names; called on the writer alone, in the order of the texts.
  using Use = std::function<void(const at::Tensor& rows_nd, std::span<const std::string> ids)>;

  /// \param embedder outlives this, as `world` does
  BlockEmbedder(TextEmbedder* embedder, World* world, Use use)
      : embedder_(embedder), world_(world), use_(std::move(use)) {}

  /// \throws as TextEmbedder::Tokenize and Flush
  void Add(std::string id, const InstructedText& text, const JsonPlace& place);
  /// To be called after the last text.
  /// \throws as TextEmbedder::Embed; what the use throws, on all ranks
  void Flush();

 private:
  TextEmbedder* embedder_;
  World* world_;
  Use use_;
  std::vector<TokenizedText> texts_;
  std::vector<std::string> ids_;
};

}  // namespace trainwright

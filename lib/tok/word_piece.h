/// WordPiece models of tokenizer.json files: a word is cut from left to right, each time the longest token
/// that is there; tokens after the first are written with a prefix. A word that cannot be cut so, or is too
/// long, is one unknown token.
///
/// Immutable after construction and thread-safe. Linear in the word, times the longest token.
/// \source models/wordpiece/mod.rs of Hugging Face tokenizers, v0.23
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/piece_trie.h"
#include "lib/tok/text_pipeline.h"

namespace trainwright {

class WordPiece {
 public:
  /// \param pipeline of the model kWordPiece
  explicit WordPiece(const TextPipeline& pipeline);

  /// Appends the ids of a word.
  /// \param word valid UTF-8; with ' ' for U+2581 where the pipeline folds spaces
  void Encode(std::string_view word, std::vector<uint32_t>* ids) const;

 private:
  PieceTrie first_, continuing_;
  size_t longest_word_;
  uint32_t unknown_id_;
};

}  // namespace trainwright

/// What a tokenizer.json file says about a tokenizer that is not of byte-level BPE: how it normalises a text,
/// where it cuts it, by which model it encodes what is between, and how it puts text together again.
///
/// Read are the models BPE, Unigram and WordPiece; the normalizers of text_normalizer.h; the pre-tokenizers
/// Metaspace, WhitespaceSplit, both, BertPreTokenizer, none; the decoders of text_decoder.h. All else is
/// refused by name.
/// \source the Rust sources of Hugging Face tokenizers, v0.23
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/formats/tokenizer_identity.h"
#include "lib/tok/byte_pair_merges.h"
#include "lib/tok/text_normalizer.h"

namespace trainwright {

/// A step from tokens to text, each of one list of texts to another.
struct DecoderStep {
  enum class Kind {
    kReplace,       ///< `pattern` in each text by `content`
    kByteFallback,  ///< runs of "<0x41>" by the characters of these bytes, or U+FFFD for each
    kFuse,          ///< makes one text of all
    kStrip,         ///< up to `start` and `stop` times the character `content` off the ends of each text
    kMetaspace,     ///< U+2581 by a space; of the first text, by nothing where `drops_first`
    kWordPiece      ///< a space before each text but the first and those with the prefix `content`
  };
  Kind kind = Kind::kFuse;
  std::string pattern, content;
  size_t start = 0, stop = 0;
  bool drops_first = false;
  bool cleanup = false;  ///< kWordPiece: no space before punctuation and within contractions
};

struct TextPipeline {
  enum class Model { kBpe, kUnigram, kWordPiece };
  enum class Prepend { kNever, kFirst, kAlways };
  struct Token {
    std::string text;
    uint32_t id = 0;
    double score = 0;  ///< kUnigram
  };

  std::vector<NormalizerStep> normalizer;
  bool expands = false;  ///< normalization may make several characters of one
  /// ' ' and U+2581 are the same where the text is cut: Replace, last of the normalizers, or Metaspace makes
  /// one of the other.
  bool folds_spaces = false;
  bool folds_by_normalizer = false;

  bool cut_at_white_space = false;    ///< white space is left out
  bool cut_punctuation = false;       ///< each punctuation mark is a piece
  bool cut_before_marks = false;      ///< a piece begins at each U+2581
  Prepend prepend = Prepend::kNever;  ///< U+2581 before each part that does not begin with one

  Model model = Model::kBpe;
  std::vector<Token> tokens;  ///< of the model
  uint32_t unk_id = kNoId;
  bool byte_fallback = false;  ///< there is a token for every byte

  std::vector<BytePairMerge> merges;  ///< kBpe
  bool fuse_unk = false, ignore_merges = false;

  std::string continuing_prefix;  ///< kWordPiece
  size_t longest_word = 100;      ///< kWordPiece: characters

  bool has_decoder = false;
  std::vector<DecoderStep> decoder;

  /// Whether a text is marked at its beginning.
  bool marks_start() const;
};

}  // namespace trainwright

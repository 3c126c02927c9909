#include "lib/tok/word_piece.h"

#include <deque>
#include <string>
#include <utility>

#include "lib/tok/space_marks.h"
#include "lib/tok/utf8.h"

namespace trainwright {

WordPiece::WordPiece(const TextPipeline& pipeline)
    : longest_word_(pipeline.longest_word), unknown_id_(pipeline.unk_id) {
  std::deque<std::string> texts;  // whose elements stay where they are
  std::vector<PieceTrie::Entry> first, continuing;
  // Where spaces are folded, each in a text is U+2581 to the vocabulary, and a ' ' there matches none. The
  // prefix is of no text: a ' ' in it is one in the vocabulary.
  const auto add = [&](std::string_view text, uint32_t id, std::vector<PieceTrie::Entry>* entries) {
    const bool occurs = !pipeline.folds_spaces || text.find(' ') == std::string_view::npos;
    if (!occurs || text.empty()) return;
    texts.push_back(pipeline.folds_spaces ? WithSpaces(text) : std::string(text));
    entries->push_back({texts.back(), id});
  };
  const std::string& prefix = pipeline.continuing_prefix;
  for (const TextPipeline::Token& token : pipeline.tokens) {
    const std::string_view text = token.text;
    add(text, token.id, &first);
    if (text.starts_with(prefix)) add(text.substr(prefix.size()), token.id, &continuing);
  }
  first_ = PieceTrie(std::move(first));
  continuing_ = PieceTrie(std::move(continuing));
}

void WordPiece::Encode(std::string_view word, std::vector<uint32_t>* ids) const {
  if (CountCharacters(word) > longest_word_) return ids->push_back(unknown_id_);
  const size_t old_size = ids->size();
  for (size_t at = 0; at < word.size();) {
    size_t longest = 0;
    uint32_t found = unknown_id_;
    (at == 0 ? first_ : continuing_)
        .VisitPrefixes(word.data() + at, word.data() + word.size(), [&](size_t size, uint32_t id) {
          longest = size;
          found = id;
          return true;
        });
    if (longest == 0) {
      ids->resize(old_size);
      return ids->push_back(unknown_id_);
    }
    ids->push_back(found);
    at += longest;
  }
}

}  // namespace trainwright

#include "lib/tok/word_piece.h"

#include <string>
#include <utility>

#include "lib/tok/space_marks.h"
#include "lib/tok/utf8.h"

namespace trainwright {

WordPiece::WordPiece(const TextPipeline& pipeline)
    : longest_word_(pipeline.longest_word), unknown_id_(pipeline.unk_id) {
  std::vector<std::string> texts;
  for (const TextPipeline::Token& token : pipeline.tokens) {
    texts.push_back(pipeline.folds_spaces ? WithSpaces(token.text) : token.text);
  }
  const std::string prefix =
      pipeline.folds_spaces ? WithSpaces(pipeline.continuing_prefix) : pipeline.continuing_prefix;
  std::vector<PieceTrie::Entry> first, continuing;
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool occurs = !pipeline.folds_spaces || pipeline.tokens[i].text.find(' ') == std::string::npos;
    if (!occurs || texts[i].empty()) continue;
    const std::string_view text = texts[i];
    first.push_back({text, pipeline.tokens[i].id});
    if (text.starts_with(prefix) && text.size() > prefix.size()) {
      continuing.push_back({text.substr(prefix.size()), pipeline.tokens[i].id});
    }
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

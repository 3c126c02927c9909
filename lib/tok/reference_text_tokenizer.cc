#include "lib/tok/reference_text_tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "lib/base/signals.h"
#include "lib/tok/reference_added_tokens.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/text_classes.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

std::vector<std::string> CharactersOf(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const size_t size = DecodeUtf8(text).size_bytes;
    characters.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return characters;
}

bool IsSpace(const std::string& character) {
  return (CharacterClasses()[DecodeUtf8(character).code_point] & kSpace) != 0;
}

}  // namespace

ReferenceTextTokenizer::ReferenceTextTokenizer(TokenizerJson json, const Tokenizer* original)
    : json_(std::move(json)),
      original_(*original),
      normalizer_(pipeline().normalizer),
      merges_(pipeline().merges) {
  double least = std::numeric_limits<double>::infinity();
  for (const TextPipeline::Token& token : pipeline().tokens) {
    ids_[token.text] = token.id;
    scores_[token.id] = token.score;
    least = std::min(least, token.score);
    longest_bytes_ = std::max(longest_bytes_, token.text.size());
  }
  unknown_score_ = least - 10;
  if (!pipeline().folds_by_normalizer) return;
  for (AddedToken& token : json_.added_tokens) {
    if (token.normalized) token.pattern = WithMarks(token.pattern);
  }
}

void ReferenceTextTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeFrom(text, /*continued=*/false, json_.added_tokens, ids);
}

void ReferenceTextTokenizer::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeFrom(text, /*continued=*/true, json_.added_tokens, ids);
}

void ReferenceTextTokenizer::EncodeUnmatched(std::string_view text, bool continued,
                                             std::vector<uint32_t>* ids) const {
  EncodeFrom(text, continued, {}, ids);
}

void ReferenceTextTokenizer::EncodeFrom(std::string_view text, bool continued,
                                        const std::vector<AddedToken>& added,
                                        std::vector<uint32_t>* ids) const {
  const std::string valid = ReplaceInvalidUtf8(text);
  const auto first_characters = CharactersOf(ReplaceInvalidUtf8(text.substr(0, 4)));
  const bool drops = pipeline().cut_at_white_space || normalizer_.strips_left();
  const bool after_space = continued && drops && !first_characters.empty() && IsSpace(first_characters[0]);
  const bool mark = !continued || !marks_start() || after_space;
  CutAtAddedTokens(
      valid, added, /*normalized=*/false, [&](const AddedToken& token) { ids->push_back(token.id); },
      [&](std::string_view part, bool first) {
        EncodeStretch(part, mark || !first, first, first && after_space, added, ids);
      });
}

void ReferenceTextTokenizer::EncodeStretch(std::string_view text, bool mark, bool origin, bool after_space,
                                           const std::vector<AddedToken>& added,
                                           std::vector<uint32_t>* ids) const {
  std::string normalized;
  const bool keeps_first = normalizer_.Normalize(text, mark, &normalized);
  if (pipeline().folds_by_normalizer) normalized = WithMarks(normalized);
  CutAtAddedTokens(
      normalized, added, /*normalized=*/true, [&](const AddedToken& token) { ids->push_back(token.id); },
      [&](std::string_view part, bool first) {
        const bool from_origin = origin && first && (keeps_first || after_space);
        for (const std::string& piece : PiecesOf(std::string(part), mark || !first, from_origin)) {
          EncodePiece(piece, ids);
        }
      });
}

std::vector<std::string> ReferenceTextTokenizer::PiecesOf(const std::string& text, bool mark,
                                                          bool origin) const {
  using Prepend = TextPipeline::Prepend;
  std::vector<std::string> words = {text};
  bool begins_with_word = true;
  if (pipeline().cut_at_white_space) {
    words.assign(1, "");
    for (const std::string& character : CharactersOf(text)) {
      const bool apart =
          pipeline().cut_punctuation && (TextClasses()[DecodeUtf8(character).code_point] & kPunctuation) != 0;
      if (IsSpace(character)) {
        words.emplace_back();
      } else if (apart) {
        words.insert(words.end(), {character, ""});
      } else {
        words.back() += character;
      }
    }
    begins_with_word = !words[0].empty();
    std::erase(words, "");
  }
  const bool by_metaspace = pipeline().folds_spaces && !pipeline().folds_by_normalizer;
  std::vector<std::string> pieces;
  for (std::string& word : words) {
    const bool marked = mark || &word != words.data() || !begins_with_word;
    if (by_metaspace || pipeline().prepend != Prepend::kNever) word = WithMarks(word);
    const bool asked =
        pipeline().prepend == Prepend::kAlways || (pipeline().prepend == Prepend::kFirst && origin);
    if (asked && marked && !word.starts_with(kSpaceMark)) word.insert(0, kSpaceMark);
    pieces.emplace_back();
    for (const std::string& character : CharactersOf(word)) {
      if (pipeline().cut_before_marks && character == kSpaceMark) pieces.emplace_back();
      pieces.back() += character;
    }
  }
  std::erase(pieces, "");
  return pieces;
}

void ReferenceTextTokenizer::EncodePiece(const std::string& piece, std::vector<uint32_t>* ids) const {
  ThrowIfStopped();
  switch (pipeline().model) {
    case TextPipeline::Model::kBpe:
      return EncodeBpe(piece, ids);
    case TextPipeline::Model::kUnigram:
      return EncodeUnigram(piece, ids);
    case TextPipeline::Model::kWordPiece:
      return EncodeWordPiece(piece, ids);
  }
}

bool ReferenceTextTokenizer::AppendBytes(std::string_view text, std::vector<uint32_t>* ids) const {
  if (!pipeline().byte_fallback) return false;
  for (const char byte : text) {
    char token[8];
    std::snprintf(token, sizeof(token), "<0x%02X>", static_cast<unsigned>(static_cast<uint8_t>(byte)));
    ids->push_back(ids_.at(token));
  }
  return true;
}

void ReferenceTextTokenizer::EncodeBpe(const std::string& piece, std::vector<uint32_t>* ids) const {
  if (pipeline().ignore_merges && ids_.contains(piece)) return ids->push_back(ids_.at(piece));
  std::vector<uint32_t> symbols;
  bool after_unknown = false;
  for (const std::string& character : CharactersOf(piece)) {
    const auto found = ids_.find(character);
    const bool unknown = found == ids_.end() && !pipeline().byte_fallback;
    if (found != ids_.end()) {
      symbols.push_back(found->second);
    } else if (!AppendBytes(character, &symbols) && !(pipeline().fuse_unk && after_unknown)) {
      symbols.push_back(pipeline().unk_id);
    }
    after_unknown = unknown;
  }
  merges_.Merge(&symbols);
  ids->insert(ids->end(), symbols.begin(), symbols.end());
}

void ReferenceTextTokenizer::EncodeUnigram(const std::string& piece, std::vector<uint32_t>* ids) const {
  struct Best {
    bool reached = false;
    double score = 0;
    size_t begin = 0;
    uint32_t id = 0;
  };
  std::map<size_t, Best> best;
  size_t begin = 0;
  for (const std::string& character : CharactersOf(piece)) {
    const double here = best[begin].score;
    const auto reach = [&](size_t end, uint32_t id, double score) {
      Best& place = best[end];
      if (!place.reached || here + score > place.score) place = {true, here + score, begin, id};
    };
    const size_t longest = std::min(longest_bytes_, piece.size() - begin);
    for (size_t size = 1; size <= longest; ++size) {
      const auto found = ids_.find(std::string_view(piece).substr(begin, size));
      if (found != ids_.end()) reach(begin + size, found->second, scores_.at(found->second));
    }
    if (!ids_.contains(character)) reach(begin + character.size(), pipeline().unk_id, unknown_score_);
    begin += character.size();
  }
  std::vector<std::pair<std::string, bool>> parts;  // from the last on, and whether unknown
  for (size_t end = piece.size(); end > 0; end = best[end].begin) {
    const std::string part = piece.substr(best[end].begin, end - best[end].begin);
    const bool unknown = best[end].id == pipeline().unk_id;
    if (unknown && !parts.empty() && parts.back().second) {
      parts.back().first.insert(0, part);
    } else {
      parts.emplace_back(part, unknown);
    }
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (const auto found = ids_.find(part->first); found != ids_.end()) {
      ids->push_back(found->second);
    } else if (!AppendBytes(part->first, ids)) {
      ids->push_back(pipeline().unk_id);
    }
  }
}

void ReferenceTextTokenizer::EncodeWordPiece(const std::string& piece, std::vector<uint32_t>* ids) const {
  const std::vector<std::string> characters = CharactersOf(piece);
  if (characters.size() > pipeline().longest_word) return ids->push_back(pipeline().unk_id);
  std::vector<uint32_t> found;
  for (size_t begin = 0; begin < characters.size();) {
    size_t end = characters.size();
    for (; end > begin; --end) {
      std::string part = begin == 0 ? "" : pipeline().continuing_prefix;
      for (size_t i = begin; i < end; ++i) part += characters[i];
      if (const auto token = ids_.find(part); token != ids_.end()) {
        found.push_back(token->second);
        break;
      }
    }
    if (end == begin) return ids->push_back(pipeline().unk_id);
    begin = end;
  }
  ids->insert(ids->end(), found.begin(), found.end());
}

}  // namespace trainwright

#include "lib/tok/text_tokenizer.h"

#include <algorithm>
#include <utility>

#include "lib/base/signals.h"
#include "lib/tok/reference_text_tokenizer.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/text_classes.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

bool IsSpace(uint32_t code_point) {
  return (CharacterClasses()[code_point] & kSpace) != 0;
}

bool StartsWithMark(std::string_view text) {
  return text.starts_with(' ') || text.starts_with(kSpaceMark);
}

}  // namespace

TextTokenizer::TextTokenizer(std::string content, TokenizerJson parsed)
    : JsonTokenizer("tokenizer_json", std::move(content), std::move(parsed)),
      normalizer_(pipeline().normalizer),
      raw_tokens_(json().added_tokens, false),
      normalized_tokens_(json().added_tokens, true),
      decoder_(pipeline()) {
  const TextPipeline& text = pipeline();
  const std::vector<AddedToken>& added = json().added_tokens;
  has_normalized_tokens_ =
      std::any_of(added.begin(), added.end(), [](const AddedToken& token) { return token.normalized; });
  const auto puts_mark = [](const NormalizerStep& step) {
    return step.kind == NormalizerStep::Kind::kPrepend && step.content == kSpaceMark;
  };
  only_marks_ = text.folds_by_normalizer && !has_normalized_tokens_ &&
                (text.normalizer.empty() || (text.normalizer.size() == 1 && puts_mark(text.normalizer[0])));
  switch (text.model) {
    case TextPipeline::Model::kBpe:
      bpe_ = std::make_unique<SentencePieceBpe>(text);
      for (const TextPipeline::Token& token : text.tokens) {
        const bool occurs = !text.folds_spaces || token.text.find(' ') == std::string::npos;
        if (!text.ignore_merges || !occurs) continue;
        whole_pieces_[text.folds_spaces ? WithSpaces(token.text) : token.text] = token.id;
      }
      break;
    case TextPipeline::Model::kUnigram:
      unigram_.emplace(text);
      break;
    case TextPipeline::Model::kWordPiece:
      word_piece_.emplace(text);
      break;
  }
}

TextTokenizer::~TextTokenizer() = default;

std::unique_ptr<Tokenizer> TextTokenizer::MakeReference() const {
  return std::make_unique<ReferenceTextTokenizer>(json(), this);
}

void TextTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, {}, {raw_tokens_, normalized_tokens_}, ids);
}

void TextTokenizer::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeAll(text, ContinuedStart(text), {raw_tokens_, normalized_tokens_}, ids);
}

void TextTokenizer::EncodeUnmatched(std::string_view text, bool continued, std::vector<uint32_t>* ids) const {
  EncodeAll(text, continued ? ContinuedStart(text) : Start(), {no_tokens_, no_tokens_}, ids);
}

TextTokenizer::Start TextTokenizer::ContinuedStart(std::string_view text) const {
  const bool after_space = DropsSpaceAt(text);
  return {after_space || !marks_start(), true, after_space};
}

bool TextTokenizer::DropsSpaceAt(std::string_view text) const {
  const Utf8Character first = DecodeUtf8(text);
  const bool drops = pipeline().cut_at_white_space || normalizer_.strips_left();
  return drops && first.size_bytes > 0 && IsSpace(first.code_point);
}

void TextTokenizer::EncodeAll(std::string_view text, Start start, const Matchers& matchers,
                              std::vector<uint32_t>* ids) const {
  std::string valid;
  if (FindInvalidUtf8(text) != std::string_view::npos) {
    valid = ReplaceInvalidUtf8(text);
    text = valid;
  }
  const auto worker = workers_.Borrow();
  matchers.raw.Cut(text, [&](const AddedTokenMatcher::Part& part) {
    if (part.token != nullptr) {
      ids->push_back(part.token->id);
      return;
    }
    const std::string_view stretch = text.substr(part.begin, part.end - part.begin);
    EncodeStretch(stretch, part.begin == 0 ? start : Start{true, false, false}, matchers.normalized,
                  worker.get(), ids);
  });
}

/// What is between added tokens that are looked for in text as it is.
void TextTokenizer::EncodeStretch(std::string_view text, Start start,
                                  const AddedTokenMatcher& normalized_tokens, Worker* worker,
                                  std::vector<uint32_t>* ids) const {
  if (only_marks_ && pipeline().prepend == TextPipeline::Prepend::kNever && bpe_ != nullptr &&
      whole_pieces_.empty()) {
    return bpe_->Encode(text, start.marked && !pipeline().normalizer.empty(), ids);
  }
  const bool keeps_first = normalizer_.Normalize(text, start.marked, &worker->normalized);
  if (has_normalized_tokens_ && pipeline().folds_by_normalizer) {
    worker->normalized = WithSpaces(worker->normalized);
  }
  const std::string_view normalized = worker->normalized;
  normalized_tokens.Cut(normalized, [&](const AddedTokenMatcher::Part& part) {
    if (part.token != nullptr) {
      ids->push_back(part.token->id);
      return;
    }
    Start inner{true, false, false};
    if (part.begin == 0) {
      inner = start;
      inner.at_origin = start.at_origin && (keeps_first || start.after_space);
    }
    EncodePart(normalized.substr(part.begin, part.end - part.begin), inner, worker, ids);
  });
}

/// What is between added tokens.
void TextTokenizer::EncodePart(std::string_view text, Start start, Worker* worker,
                               std::vector<uint32_t>* ids) const {
  using Prepend = TextPipeline::Prepend;
  if (pipeline().cut_at_white_space) return EncodeWords(text, start.marked, worker, ids);
  const bool asks_for_mark =
      pipeline().prepend == Prepend::kAlways || (pipeline().prepend == Prepend::kFirst && start.at_origin);
  const bool mark = asks_for_mark && start.marked && !StartsWithMark(text);
  if (bpe_ != nullptr && whole_pieces_.empty()) return bpe_->Encode(text, mark, ids);
  worker->folded.assign(mark ? " " : "");
  if (pipeline().folds_spaces) {
    AppendWithSpaces(text, &worker->folded);
  } else {
    worker->folded.append(text);
  }
  EncodeMarked(worker->folded, worker, ids);
}

/// Text of which white space is left out.
void TextTokenizer::EncodeWords(std::string_view text, bool marked, Worker* worker,
                                std::vector<uint32_t>* ids) const {
  const bool prepends = pipeline().prepend == TextPipeline::Prepend::kAlways;
  std::string& word = worker->folded;
  const auto encode = [&](std::string_view plain, bool first) {
    if (!pipeline().folds_spaces) return EncodePiece(plain, worker, ids);
    word.assign(prepends && (marked || !first) && !StartsWithMark(plain) ? " " : "");
    AppendWithSpaces(plain, &word);
    EncodeMarked(word, worker, ids);
  };
  const uint8_t* const spaces = CharacterClasses();
  const uint8_t* const classes = TextClasses();
  const bool cuts_punctuation = pipeline().cut_punctuation;
  size_t word_begin = 0;
  for (size_t at = 0, size = 0; at <= text.size(); at += size) {
    const Utf8Character character = at == text.size() ? Utf8Character{' ', 1} : Utf8CharacterAt(text, at);
    size = character.size_bytes;
    const bool space = (spaces[character.code_point] & kSpace) != 0;
    const bool apart = cuts_punctuation && (classes[character.code_point] & kPunctuation) != 0;
    if (!space && !apart) continue;
    if (word_begin < at) encode(text.substr(word_begin, at - word_begin), word_begin == 0);
    if (apart) encode(text.substr(at, size), at == 0);
    word_begin = at + size;
  }
}

/// \param text with ' ' for U+2581
void TextTokenizer::EncodeMarked(std::string_view text, Worker* worker, std::vector<uint32_t>* ids) const {
  if (!pipeline().cut_before_marks) return EncodePiece(text, worker, ids);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin + 1), text.size());
    EncodePiece(text.substr(begin, end - begin), worker, ids);
    begin = end;
  }
}

void TextTokenizer::EncodePiece(std::string_view piece, Worker* worker, std::vector<uint32_t>* ids) const {
  if (piece.size() > PieceMemo::kMaxPieceBytes) return AskModel(piece, worker, ids);
  const PieceMemo::Key key = PieceMemo::KeyOf(piece);
  if (const auto known = worker->memo.Find(key, piece); !known.empty()) {
    ids->insert(ids->end(), known.begin(), known.end());
    return;
  }
  ThrowIfStopped();
  worker->ids.clear();
  AskModel(piece, worker, &worker->ids);
  if (!worker->ids.empty()) worker->memo.Remember(key, piece, worker->ids);
  ids->insert(ids->end(), worker->ids.begin(), worker->ids.end());
}

void TextTokenizer::AskModel(std::string_view piece, Worker* worker, std::vector<uint32_t>* ids) const {
  if (unigram_) return unigram_->Encode(piece, &worker->scratch, ids);
  if (word_piece_) return word_piece_->Encode(piece, ids);
  if (!whole_pieces_.empty()) {
    if (const auto whole = whole_pieces_.find(std::string(piece)); whole != whole_pieces_.end()) {
      return ids->push_back(whole->second);
    }
  }
  bpe_->Encode(piece, /*mark=*/false, ids);
}

std::string TextTokenizer::Decode(std::span<const uint32_t> ids) const {
  std::vector<std::string> tokens;
  for (const uint32_t id : ids) {
    CheckId(id);
    const TokenizerJson::Token& token = json().tokens[id];
    if (!token.special && (token.in_model || !token.bytes.empty())) tokens.push_back(token.bytes);
  }
  return decoder_.Decode(std::move(tokens));
}

DecodedId TextTokenizer::DecodedIdOf(uint32_t id) const {
  CheckId(id);
  const TokenizerJson::Token& token = json().tokens[id];
  if (token.special || (!token.in_model && token.bytes.empty())) return {.as = DecodedAs::kNothing};
  const std::optional<char> byte = decoder_.ByteOf(token.bytes);
  return byte ? DecodedId{.as = DecodedAs::kByteOfRun, .byte = *byte} : DecodedId{};
}

}  // namespace trainwright

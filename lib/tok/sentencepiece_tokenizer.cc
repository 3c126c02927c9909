#include "lib/tok/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using sentencepiece::SentencePieceProcessor;

constexpr size_t kPartBytes = 16 << 10;
constexpr size_t kPartIds = 16 << 10;
constexpr uint32_t kSpaceMark = 0x2581;

std::unique_ptr<SentencePieceProcessor> LoadProcessor(const std::string& serialized,
                                                      const std::string& name) {
  auto processor = std::make_unique<SentencePieceProcessor>();
  const auto status = processor->LoadFromSerializedProto(serialized);
  if (!status.ok()) {
    throw Error(ErrorCode::kBadInput, name, "SentencePiece refuses this model: " + status.ToString());
  }
  return processor;
}

/// A negative id is SentencePiece's "not in this model".
uint32_t IdOrNone(int id) {
  return id < 0 ? kNoId : static_cast<uint32_t>(id);
}

void EncodePart(const SentencePieceProcessor& processor, std::string_view text, std::vector<uint32_t>* ids) {
  std::vector<int> part;
  const auto status = processor.Encode(text, &part);
  if (!status.ok()) {
    throw Error(ErrorCode::kInternal, "SentencePiece", "encoding failed: " + status.ToString());
  }
  ids->insert(ids->end(), part.begin(), part.end());
}

std::string DecodePart(const SentencePieceProcessor& processor, std::span<const uint32_t> ids) {
  std::string text;
  const auto status = processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) {
    throw Error(ErrorCode::kInternal, "SentencePiece", "decoding failed: " + status.ToString());
  }
  return text;
}

uint32_t FoldSpace(uint32_t code_point) {
  return code_point == ' ' ? kSpaceMark : code_point;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string serialized_model, const std::string& name) {
  std::string problem;
  if (!ParseSentencePieceModel(serialized_model, &model_, &problem)) {
    throw Error(
        ErrorCode::kBadInput, name, problem, "",
        "--tokenizer takes a SentencePiece .model file, a folder that holds tokenizer.model, or \"bytes\"");
  }
  whole_ = LoadProcessor(serialized_model, name);
  may_cut_ = model_.is_bpe && model_.byte_fallback && !model_.has_character_map &&
             !model_.remove_extra_whitespaces && model_.escape_whitespaces &&
             !model_.treat_whitespace_as_suffix;
  if (may_cut_ || marks_start()) {
    // In protobuf a message field that comes again is merged into the first: normalizer_spec (3) with
    // add_dummy_prefix (3) = 0.
    constexpr char kNoDummyPrefix[] = {0x1A, 0x02, 0x18, 0x00};
    continuation_ =
        LoadProcessor(serialized_model + std::string(kNoDummyPrefix, sizeof(kNoDummyPrefix)), name);
  }
  identity_.kind = "sentencepiece";
  identity_.sha256 = Sha256Of(AsBytes(serialized_model));
  identity_.vocab_size = static_cast<uint32_t>(whole_->GetPieceSize());
  identity_.bos_id = IdOrNone(whole_->bos_id());
  identity_.eos_id = IdOrNone(whole_->eos_id());
  identity_.pad_id = IdOrNone(whole_->pad_id());
  identity_.unk_id = IdOrNone(whole_->unk_id());
  identity_.model = std::move(serialized_model);
  for (const SentencePieceModel::NamedPiece& piece : model_.named_pieces) {
    const bool mark = piece.text.size() >= 3 && ((piece.text.front() == '<' && piece.text.back() == '>') ||
                                                 (piece.text.front() == '[' && piece.text.back() == ']'));
    if (!piece.user_defined || mark) special_tokens_.push_back({piece.text, piece.id, piece.user_defined});
  }
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

size_t SentencePieceTokenizer::FindCut(std::string_view text, size_t from) const {
  if (!may_cut_) return text.size();
  for (size_t offset = std::max<size_t>(from, 1); offset < text.size(); ++offset) {
    // UTF-8 synchronises itself: valid characters on both sides are read alike with and without the cut.
    const Utf8Character after = DecodeUtf8(text.substr(offset));
    if (after.size_bytes == 0) continue;
    const Utf8Character before = LastCharacter(text.substr(0, offset));
    if (before.size_bytes == 0) continue;
    const uint64_t bigram = uint64_t{FoldSpace(before.code_point)} << 32 | FoldSpace(after.code_point);
    if (!model_.inner_bigrams.contains(bigram)) return offset;
  }
  return text.size();
}

void SentencePieceTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  EncodeFrom(whole_.get(), text, ids);
}

void SentencePieceTokenizer::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  // A model that drops spaces at both ends of a text would join its first word to what is before: the mark of
  // the beginning is the space then.
  const bool space_is_dropped = model_.remove_extra_whitespaces && text.starts_with(' ');
  EncodeFrom(marks_start() && !space_is_dropped ? continuation_.get() : whole_.get(), text, ids);
}

void SentencePieceTokenizer::EncodeFrom(const sentencepiece::SentencePieceProcessor* processor,
                                        std::string_view text, std::vector<uint32_t>* ids) const {
  while (text.size() > kPartBytes) {
    const size_t cut = FindCut(text, kPartBytes);
    if (cut == text.size()) break;
    EncodePart(*processor, text.substr(0, cut), ids);
    text.remove_prefix(cut);
    processor = continuation_.get();
  }
  EncodePart(*processor, text, ids);
}

std::string SentencePieceTokenizer::Decode(std::span<const uint32_t> ids) const {
  for (const uint32_t id : ids) {
    if (id >= identity_.vocab_size) {
      throw Error(ErrorCode::kBadInput, "id " + std::to_string(id),
                  "is not in the vocabulary of " + std::to_string(identity_.vocab_size) + " ids");
    }
  }
  if (!may_cut_) return DecodePart(*whole_, ids);
  std::string text;
  const SentencePieceProcessor* processor = whole_.get();
  while (ids.size() > kPartIds) {
    // A character may be spelt by several byte pieces: cut before a piece that is none.
    size_t cut = kPartIds;
    while (cut < ids.size() && whole_->IsByte(static_cast<int>(ids[cut]))) ++cut;
    text += DecodePart(*processor, ids.first(cut));
    ids = ids.subspan(cut);
    // Until there is text, the space of the dummy prefix is still to be dropped.
    if (!text.empty()) processor = continuation_.get();
  }
  return text + DecodePart(*processor, ids);
}

}  // namespace trainwright

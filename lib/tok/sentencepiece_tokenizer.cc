#include "lib/tok/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/tok/sentencepiece_version.h"

namespace trainwright {
namespace {

using sentencepiece::SentencePieceProcessor;

constexpr size_t kPartIds = 16 << 10;
/// What an unknown character scores below the least piece.
constexpr double kUnknownPenalty = 10;

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

void EncodeByLibrary(const SentencePieceProcessor& processor, std::string_view text,
                     std::vector<uint32_t>* ids) {
  std::vector<int> part;
  const auto status = processor.Encode(text, &part);
  if (!status.ok()) {
    throw Error(
        ErrorCode::kBadInput, "the SentencePiece model", "cannot encode a text: " + status.ToString(), "",
        "its pieces contradict each other, as where a control piece is a letter: get the model again");
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

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string serialized_model, const std::string& name,
                                               Encoder encoder) {
  std::string problem;
  if (!ParseSentencePieceModel(serialized_model, &model_, &problem)) {
    throw Error(ErrorCode::kBadInput, name, problem, "", kTokenizerHint);
  }
  whole_ = LoadProcessor(serialized_model, name);  // it refuses what the suite's encoders are not made for
  if (model_.pieces.size() != static_cast<size_t>(whole_->GetPieceSize())) {
    throw Error(ErrorCode::kBadInput, name,
                "is a damaged SentencePiece model: its pieces cannot be counted for certain", "",
                "get the model again");
  }
  if (encoder == Encoder::kFastest) MakeOwnEncoder(name);
  if (marks_start()) continuation_ = LoadProcessor(WithoutDummyPrefix(serialized_model), name);
  identity_.kind = "sentencepiece";
  identity_.sha256 = Sha256Of(AsBytes(serialized_model));
  identity_.vocab_size = static_cast<uint32_t>(whole_->GetPieceSize());
  identity_.bos_id = IdOrNone(whole_->bos_id());
  identity_.eos_id = IdOrNone(whole_->eos_id());
  identity_.pad_id = IdOrNone(whole_->pad_id());
  identity_.unk_id = IdOrNone(whole_->unk_id());
  identity_.model = std::move(serialized_model);
  for (uint32_t id = 0; id < model_.pieces.size(); ++id) {
    const auto& [text, score, type] = model_.pieces[id];
    const bool user_defined = type == SentencePieceModel::PieceType::kUserDefined;
    const bool is_control = type == SentencePieceModel::PieceType::kControl;
    if (is_control && control_id_ == kNoId) control_id_ = id;
    if (is_control || (user_defined && LooksLikeMark(text))) {
      special_tokens_.push_back({text, id, user_defined, user_defined});
    }
  }
}

void SentencePieceTokenizer::TakeSpecialIds(const FolderSpecialTokens& named) {
  const auto take = [&](const std::optional<std::string>& token, uint32_t* id) {
    if (!token || token->empty()) return;
    const auto piece =
        std::find_if(model_.pieces.begin(), model_.pieces.end(),
                     [&](const SentencePieceModel::Piece& each) { return each.text == *token; });
    if (piece == model_.pieces.end()) return;
    // Checkpoints of the suite named these two whatever the model's own are; in Gemma's they are HTML.
    const bool is_usual = *token == "<s>" || *token == "</s>";
    if (is_usual && piece->type != SentencePieceModel::PieceType::kControl) return;
    *id = static_cast<uint32_t>(piece - model_.pieces.begin());
  };
  take(named.bos, &identity_.bos_id);
  take(named.eos, &identity_.eos_id);
  MakeEndsSpecial();
}

bool SentencePieceTokenizer::TakeSpecialIds(const TokenizerIdentity& recorded) {
  for (const uint32_t id : {recorded.bos_id, recorded.eos_id}) {
    if (id != kNoId && id >= identity_.vocab_size) return false;
  }
  identity_.bos_id = recorded.bos_id;
  identity_.eos_id = recorded.eos_id;
  MakeEndsSpecial();
  return true;
}

void SentencePieceTokenizer::MakeEndsSpecial() {
  for (const uint32_t id : {identity_.bos_id, identity_.eos_id}) {
    if (id == kNoId) continue;
    const auto known = std::find_if(special_tokens_.begin(), special_tokens_.end(),
                                    [id](const SpecialToken& token) { return token.id == id; });
    if (known != special_tokens_.end()) {
      known->is_word = false;
    } else {
      const auto& piece = model_.pieces[id];
      special_tokens_.push_back(
          {piece.text, id, piece.type == SentencePieceModel::PieceType::kUserDefined, false});
    }
  }
}

bool SentencePieceTokenizer::IsSilenced(uint32_t id) const {
  return control_id_ != kNoId && (id == identity_.bos_id || id == identity_.eos_id) &&
         model_.pieces[id].type != SentencePieceModel::PieceType::kControl;
}

void SentencePieceTokenizer::MakeOwnEncoder(const std::string& name) {
  if (model_.is_unigram) {
    unigram_ = std::make_unique<SentencePieceUnigram>(model_, name);
  } else {
    bpe_ = SentencePieceBpe::Make(model_, &library_reason_);
  }
  const bool normalizes =
      model_.is_unigram || model_.remove_extra_whitespaces || !model_.character_map.empty();
  if (encodes_itself() && normalizes) normalizer_ = std::make_unique<SentencePieceNormalizer>(model_, name);
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::string SentencePieceTokenizer::method() const {
  if (encodes_itself()) return "encoded by the suite itself";
  if (!library_reason_.empty()) return "encoded by libsentencepiece, since " + library_reason_;
  return model_.is_unigram && LibraryIsOlderThan022() ? "libsentencepiece (older than 0.2.2)"
                                                      : "libsentencepiece";
}

std::optional<LibraryIdentity> SentencePieceTokenizer::library() const {
  return encodes_itself() ? std::nullopt : std::optional(LoadedSentencePiece());
}

std::unique_ptr<Tokenizer> SentencePieceTokenizer::MakeReference() const {
  auto reference = std::make_unique<SentencePieceTokenizer>(identity_.model, "tokenizer", Encoder::kLibrary);
  reference->TakeSpecialIds(identity_);
  return reference;
}

bool SentencePieceTokenizer::IsTie(std::span<const uint32_t> ids,
                                   std::span<const uint32_t> reference_ids) const {
  if (encodes_itself() || !model_.is_unigram || !LibraryIsOlderThan022()) return false;
  const auto is_text = [&](uint32_t id) {
    return id < model_.pieces.size() && model_.pieces[id].type == SentencePieceModel::PieceType::kNormal;
  };
  double largest_score = 0;
  for (const SentencePieceModel::Piece& piece : model_.pieces) {
    largest_score = std::max(largest_score, std::abs(static_cast<double>(piece.score)));
  }
  double sum_before = 0;  // of magnitudes: the library's sum from the beginning of the text is no larger
  for (size_t i = 0, j = 0; i < ids.size() || j < reference_ids.size();) {
    if (i < ids.size() && j < reference_ids.size() && ids[i] == reference_ids[j]) {
      const bool known = is_text(ids[i]);
      sum_before += known ? std::abs(static_cast<double>(model_.pieces[ids[i]].score))
                          : kUnknownPenalty + largest_score;
      ++i, ++j;
      continue;
    }
    // Up to where both cuts meet again.
    size_t end = 0, reference_end = 0, pieces = 0;
    double score = 0, reference_score = 0;
    do {
      const bool own = end <= reference_end;
      if (own ? i == ids.size() : j == reference_ids.size()) return false;
      const uint32_t id = own ? ids[i++] : reference_ids[j++];
      if (!is_text(id)) return false;
      (own ? end : reference_end) += model_.pieces[id].text.size();
      (own ? score : reference_score) += static_cast<double>(model_.pieces[id].score);
      ++pieces;
    } while (end != reference_end);
    sum_before += std::max(std::abs(score), std::abs(reference_score));
    const double rounding = 0x1p-24 * sum_before * static_cast<double>(pieces);
    if (std::abs(score - reference_score) > rounding) return false;
  }
  return Decode(ids) == Decode(reference_ids);
}

void SentencePieceTokenizer::EncodeItself(std::string_view text, bool mark,
                                          std::vector<uint32_t>* ids) const {
  if (normalizer_ == nullptr) return bpe_->Encode(text, mark, ids);
  const auto worker = workers_.Borrow();
  normalizer_->Normalize(text, mark, &worker->normalized);
  if (unigram_ != nullptr) return unigram_->Encode(worker->normalized, &worker->scratch, ids);
  bpe_->Encode(worker->normalized, /*mark=*/false, ids);
}

void SentencePieceTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  if (encodes_itself()) return EncodeItself(text, /*mark=*/true, ids);
  EncodeByLibrary(*whole_, text, ids);
}

void SentencePieceTokenizer::EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const {
  // A model that drops spaces at both ends of a text would join its first word to what is before: the mark of
  // the beginning is the space then.
  const bool space_is_dropped = model_.remove_extra_whitespaces && text.starts_with(' ');
  const bool mark = !marks_start() || space_is_dropped;
  if (encodes_itself()) return EncodeItself(text, mark, ids);
  EncodeByLibrary(mark ? *whole_ : *continuation_, text, ids);
}

std::string SentencePieceTokenizer::Decode(std::span<const uint32_t> ids) const {
  for (const uint32_t id : ids) {
    if (id >= identity_.vocab_size) {
      throw Error(ErrorCode::kBadInput, "id " + std::to_string(id),
                  "is not in the vocabulary of " + std::to_string(identity_.vocab_size) + " ids");
    }
  }
  const auto is_silenced = [&](uint32_t id) { return IsSilenced(id); };
  if (std::none_of(ids.begin(), ids.end(), is_silenced)) return DecodeAll(ids);
  std::vector<uint32_t> silent(ids.begin(), ids.end());
  std::replace_if(silent.begin(), silent.end(), is_silenced, control_id_);
  return DecodeAll(silent);
}

std::string SentencePieceTokenizer::DecodeAll(std::span<const uint32_t> ids) const {
  // Of other models a part may read otherwise than within the whole.
  const bool in_parts = model_.is_bpe && model_.byte_fallback && model_.character_map.empty() &&
                        !model_.remove_extra_whitespaces && model_.escape_whitespaces &&
                        !model_.treat_whitespace_as_suffix;
  if (!in_parts) return DecodePart(*whole_, ids);
  std::string text;
  const SentencePieceProcessor* processor = whole_.get();
  while (ids.size() > kPartIds) {
    // A character may be spelt by several byte pieces: cut before a piece that is none.
    size_t cut = kPartIds;
    while (cut < ids.size() && whole_->IsByte(static_cast<int>(ids[cut]))) ++cut;
    text += DecodePart(*processor, ids.first(cut));
    ids = ids.subspan(cut);
    // Until there is text, the space of the dummy prefix is still to be dropped.
    if (!text.empty() && continuation_ != nullptr) processor = continuation_.get();
  }
  return text + DecodePart(*processor, ids);
}

DecodedId SentencePieceTokenizer::DecodedIdOf(uint32_t id) const {
  if (id >= model_.pieces.size()) return {};
  const SentencePieceModel::Piece& piece = model_.pieces[id];
  if (piece.type == SentencePieceModel::PieceType::kControl || IsSilenced(id))
    return {.as = DecodedAs::kBreak};
  if (piece.type != SentencePieceModel::PieceType::kByte) return {};
  return {.as = DecodedAs::kByte, .byte = static_cast<char>(std::stoi(piece.text.substr(3, 2), nullptr, 16))};
}

}  // namespace trainwright

#include "lib/tok/sentencepiece_bpe.h"
#include "lib/base/signals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "lib/tok/piece_lookups.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::PieceType;

/// Stands for a character, plus its code point, that is no piece: ids are below it.
constexpr uint32_t kCharacter = 1 << 24;
constexpr uint32_t kReplacement = 0xFFFD;

/// A character that is read from text, bad bytes as the library reads them.
Utf8Character NextCharacter(std::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte < 0x80) return {byte, 1};
  const Utf8Character character = DecodeUtf8(text.substr(at));
  return character.size_bytes == 0 ? Utf8Character{kReplacement, 1} : character;
}

bool IsOneCharacter(std::string_view text) {
  return !text.empty() && DecodeUtf8(text).size_bytes == text.size();
}

CharacterCuts CutsOf(const TextPipeline& pipeline) {
  std::vector<std::string_view> pieces;
  std::unordered_map<uint32_t, std::string_view> texts;
  for (const TextPipeline::Token& token : pipeline.tokens) {
    texts[token.id] = token.text;
    if (IsOneCharacter(token.text)) pieces.push_back(token.text);
  }
  for (const BytePairMerge& merge : pipeline.merges) pieces.push_back(texts.at(merge.merged));
  return CharacterCuts(
      {pipeline.folds_spaces, pipeline.fuse_unk && !pipeline.byte_fallback, pipeline.cut_before_marks},
      pieces);
}

}  // namespace

/// What is read off a model's pieces.
struct SentencePieceBpe::Vocabulary {
  std::array<uint32_t, 256> ascii_symbols{};
  std::vector<BytePairMerge> merges;
  std::unordered_map<uint32_t, uint32_t> characters;
  std::vector<AddedToken> user_defined;
  std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> unused;
  std::array<uint32_t, 256> byte_ids{};

  explicit Vocabulary(const TextPipeline& pipeline);
  Vocabulary() = default;
  uint32_t SymbolOf(uint32_t code_point) const {
    const auto found = characters.find(code_point);
    return found == characters.end() ? kCharacter + code_point : found->second;
  }

  /// \returns why the model is not for this class; empty when it is
  std::string Read(const SentencePieceModel& model);

 private:
  void ReadAscii(bool folds_spaces);
  std::string ReadMerges(const SentencePieceModel& model,
                         const std::unordered_map<std::string_view, uint32_t>& mergeable);
};

std::string SentencePieceBpe::Vocabulary::Read(const SentencePieceModel& model) {
  if (!model.is_bpe) return "it is no BPE model";
  if (model.pieces.size() >= kCharacter) return "it has too many pieces";

  std::unordered_map<std::string_view, uint32_t> mergeable;  // what merges make, and single characters
  std::vector<std::string_view> found_in_text;
  uint32_t id = 0;
  for (const Piece& piece : model.pieces) {
    if (piece.text.find('\0') != std::string::npos) return "a piece holds a NUL";
    if (std::isnan(piece.score)) return "a score is not a number";
    if (piece.type == PieceType::kUserDefined) {
      user_defined.push_back({.content = piece.text, .pattern = piece.text, .id = id});
    } else if (piece.matches_text()) {
      mergeable.emplace(piece.text, id);
      if (IsOneCharacter(piece.text)) characters.emplace(DecodeUtf8(piece.text).code_point, id);
    }
    ++id;
  }
  for (const Piece& piece : model.pieces) {
    if (!piece.matches_text() && (mergeable.contains(piece.text) || IsOneCharacter(piece.text))) {
      return "text may spell its special piece " + Quoted(piece.text);
    }
  }
  ReadAscii(model.escape_whitespaces);
  for (id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type != PieceType::kByte) continue;
    if (const std::optional<uint8_t> byte = ByteOfPiece(model.pieces[id].text)) byte_ids[*byte] = id;
  }
  return ReadMerges(model, mergeable);
}

void SentencePieceBpe::Vocabulary::ReadAscii(bool folds_spaces) {
  const uint32_t space = folds_spaces ? 0x2581 : ' ';
  for (uint32_t byte = 0; byte < 256; ++byte) {
    ascii_symbols[byte] = SymbolOf(byte == ' ' ? space : byte);
  }
}

SentencePieceBpe::Vocabulary::Vocabulary(const TextPipeline& pipeline) : merges(pipeline.merges) {
  for (const TextPipeline::Token& token : pipeline.tokens) {
    if (IsOneCharacter(token.text)) characters[DecodeUtf8(token.text).code_point] = token.id;
    if (const std::optional<uint8_t> byte = ByteOfPiece(token.text)) byte_ids[*byte] = token.id;
  }
  ReadAscii(pipeline.folds_spaces);
}

std::string SentencePieceBpe::Vocabulary::ReadMerges(
    const SentencePieceModel& model, const std::unordered_map<std::string_view, uint32_t>& mergeable) {
  const auto symbol_of = [&](std::string_view text) {
    const auto found = mergeable.find(text);
    if (found != mergeable.end()) return found->second;
    const Utf8Character character = DecodeUtf8(text);
    return character.size_bytes == text.size() ? kCharacter + character.code_point : kNoId;
  };
  std::vector<float> scores;
  for (const auto& [text, id] : mergeable) {
    const Piece& piece = model.pieces[id];
    const size_t merges_before = merges.size();
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) continue;
      const uint32_t left = symbol_of(text.substr(0, cut));
      if (left == kNoId) continue;
      const uint32_t right = symbol_of(text.substr(cut));
      if (right == kNoId) continue;
      merges.push_back({left, right, id, 0});
      if (piece.type == PieceType::kUnused) unused[id] = {left, right};
    }
    if (merges.size() == merges_before) continue;
    scores.push_back(piece.score);
    // What the library makes of such a piece may depend on any other place of the text.
    if (piece.type == PieceType::kUnused && merges.size() > merges_before + 1) {
      return "its unused piece " + Quoted(piece.text) + " can be made in several ways";
    }
  }
  if (merges.size() >= BytePairMerges::kMaxMerges) return "it has too many merges";
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  for (BytePairMerge& merge : merges) {
    const float score = model.pieces[merge.merged].score;
    const auto rank = std::lower_bound(scores.begin(), scores.end(), score, std::greater<>());
    merge.rank = static_cast<uint32_t>(rank - scores.begin());
  }
  return "";
}

std::unique_ptr<SentencePieceBpe> SentencePieceBpe::Make(const SentencePieceModel& model,
                                                         std::string* problem) {
  Vocabulary vocabulary;
  *problem = vocabulary.Read(model);
  if (!problem->empty()) return nullptr;
  return std::unique_ptr<SentencePieceBpe>(
      new SentencePieceBpe(CharacterCuts(model), std::move(vocabulary), SettingsOf(model)));
}

SentencePieceBpe::Settings SentencePieceBpe::SettingsOf(const SentencePieceModel& model) {
  Settings settings;
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == PieceType::kUnknown) settings.unknown_id = id;
  }
  settings.byte_fallback = model.byte_fallback;
  settings.has_mark = model.add_dummy_prefix;
  settings.mark_at_end = model.treat_whitespace_as_suffix;
  return settings;
}

SentencePieceBpe::SentencePieceBpe(const TextPipeline& pipeline)
    : SentencePieceBpe(CutsOf(pipeline), Vocabulary(pipeline),
                       {pipeline.unk_id, pipeline.byte_fallback, true, false, pipeline.fuse_unk}) {}

SentencePieceBpe::SentencePieceBpe(CharacterCuts cuts, Vocabulary vocabulary, const Settings& settings)
    : cuts_(std::move(cuts)),
      merges_(vocabulary.ascii_symbols, vocabulary.merges),
      characters_(std::move(vocabulary.characters)),
      user_defined_(std::move(vocabulary.user_defined)),
      user_defined_matcher_(user_defined_, /*normalized=*/false),
      unused_(std::move(vocabulary.unused)),
      byte_ids_(vocabulary.byte_ids),
      settings_(settings) {}

uint32_t SentencePieceBpe::SymbolOf(uint32_t code_point) const {
  const uint32_t folded = cuts_.Fold(code_point);
  const auto found = characters_.find(folded);
  return found == characters_.end() ? kCharacter + folded : found->second;
}

void SentencePieceBpe::Encode(std::string_view text, bool mark, std::vector<uint32_t>* ids) const {
  if (text.empty()) return;
  mark = mark && settings_.has_mark;
  const auto worker = workers_.Borrow();
  const PieceMemo& memo = worker->memo;
  PieceLookups lookups;
  const auto flush = [&] {
    ThrowIfStopped();
    lookups.Flush(memo, ids, [&](const PieceMemo::Key& key, std::string_view unit) {
      EncodeUnit(key, unit, worker.get(), ids);
    });
  };
  size_t begin = mark && !settings_.mark_at_end ? EncodeFirstUnit(text, worker.get(), ids) : 0;
  while (begin < text.size()) {
    if (lookups.room() < CharacterCuts::kBlock) flush();
    if (text.size() - begin >= CharacterCuts::kBlock + PieceMemo::kReach) {
      uint64_t ends = cuts_.AsciiCuts(text.data() + begin);
      if (ends != 0) {
        for (const char* block = text.data() + begin; ends != 0; ends &= ends - 1) {
          const char* const unit = text.data() + begin;
          const char* const end = block + std::countr_zero(ends);
          lookups.Add(memo, unit, static_cast<size_t>(end - unit), true);
          begin = static_cast<size_t>(end - text.data());
        }
        continue;
      }
    }
    const size_t end = cuts_.UnitEnd(text, begin, NextCharacter);
    if (end == text.size() && mark && settings_.mark_at_end) {
      flush();
      return EncodeLastUnit(text, begin, worker.get(), ids);
    }
    lookups.Add(memo, text.data() + begin, end - begin, text.size() - begin >= PieceMemo::kReach);
    begin = end;
  }
  flush();
}

/// \returns where the second unit begins
size_t SentencePieceBpe::EncodeFirstUnit(std::string_view text, Worker* worker,
                                         std::vector<uint32_t>* ids) const {
  const bool alone = cuts_.MayCut(' ', NextCharacter(text, 0).code_point);
  const size_t end = alone ? 0 : cuts_.UnitEnd(text, 0, NextCharacter);
  worker->marked.assign(" ").append(text.substr(0, end));
  EncodeUnit(worker->marked, worker, ids);
  return end;
}

void SentencePieceBpe::EncodeLastUnit(std::string_view text, size_t begin, Worker* worker,
                                      std::vector<uint32_t>* ids) const {
  uint32_t last = 0;
  for (size_t at = begin; at < text.size();) {
    const Utf8Character character = NextCharacter(text, at);
    last = character.code_point;
    at += character.size_bytes;
  }
  worker->marked.assign(text.substr(begin));
  if (cuts_.MayCut(last, ' ')) {
    EncodeUnit(worker->marked, worker, ids);
    worker->marked.clear();
  }
  worker->marked.push_back(' ');
  EncodeUnit(worker->marked, worker, ids);
}

void SentencePieceBpe::EncodeUnit(std::string_view unit, Worker* worker, std::vector<uint32_t>* ids) const {
  EncodeUnit(PieceMemo::KeyOf(unit), unit, worker, ids);
}

void SentencePieceBpe::EncodeUnit(const PieceMemo::Key& key, std::string_view unit, Worker* worker,
                                  std::vector<uint32_t>* ids) const {
  const bool remember = unit.size() <= PieceMemo::kMaxPieceBytes;
  if (remember) {
    if (const auto known = worker->memo.Find(key, unit); !known.empty()) {
      ids->insert(ids->end(), known.begin(), known.end());
      return;
    }
  }
  MergeUnit(unit, worker);
  if (remember) worker->memo.Remember(key, unit, worker->ids);
  ids->insert(ids->end(), worker->ids.begin(), worker->ids.end());
}

/// The ids of `unit`, in worker->ids.
void SentencePieceBpe::MergeUnit(std::string_view unit, Worker* worker) const {
  std::vector<uint32_t>& ids = worker->ids;
  ids.clear();
  bool after_unknown = false;
  const auto emit = [&] {
    for (const uint32_t symbol : worker->scratch.ids) Emit(symbol, &ids, &after_unknown);
  };
  if (user_defined_.empty()) {
    MergeCharacters(unit, worker);
    return emit();
  }
  // What is looked for is written as the model writes it.
  std::string& normalized = worker->normalized;
  normalized.clear();
  for (size_t at = 0; at < unit.size();) {
    const Utf8Character character = NextCharacter(unit, at);
    AppendUtf8(cuts_.Fold(character.code_point), &normalized);
    at += character.size_bytes;
  }
  user_defined_matcher_.Cut(normalized, [&](const AddedTokenMatcher::Part& part) {
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
      after_unknown = false;
      return;
    }
    MergeCharacters(std::string_view(normalized).substr(part.begin, part.end - part.begin), worker);
    emit();
  });
}

/// Merges the characters of `text` into symbols, in worker->scratch.ids.
void SentencePieceBpe::MergeCharacters(std::string_view text, Worker* worker) const {
  const bool ascii =
      std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<uint8_t>(byte) < 0x80; });
  if (ascii) return merges_.Encode(text, &worker->scratch);
  std::vector<uint32_t>& symbols = worker->scratch.ids;
  symbols.clear();
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = NextCharacter(text, at);
    symbols.push_back(SymbolOf(character.code_point));
    at += character.size_bytes;
  }
  merges_.Merge(&worker->scratch);
}

void SentencePieceBpe::Emit(uint32_t symbol, std::vector<uint32_t>* ids, bool* after_unknown) const {
  if (symbol < kCharacter) {
    if (!unused_.empty()) {
      if (const auto parts = unused_.find(symbol); parts != unused_.end()) {
        Emit(parts->second.first, ids, after_unknown);
        return Emit(parts->second.second, ids, after_unknown);
      }
    }
    ids->push_back(symbol);
    *after_unknown = false;
  } else if (settings_.byte_fallback) {
    std::string bytes;
    AppendUtf8(symbol - kCharacter, &bytes);
    for (const char byte : bytes) ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  } else {
    if (!*after_unknown || !settings_.fuses_unknown) ids->push_back(settings_.unknown_id);
    *after_unknown = true;
  }
}

}  // namespace trainwright

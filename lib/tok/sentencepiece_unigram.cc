#include "lib/tok/sentencepiece_unigram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/tok/piece_lookups.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::PieceType;

constexpr uint32_t kReplacement = 0xFFFD;
constexpr float kUnknownPenalty = 10, kLargestScore = 100000;
constexpr size_t kLongestPieceBytes = 8000, kLongestCharacterBytes = 4;
/// Stands for an unknown character: ids are below it.
constexpr uint32_t kUnknownCharacter = PieceTrie::kNone - 1;

/// The first id of a unit in the memo has in its highest bits which of these |S| may not exceed: 0 is none.
/// Up to twice 2^10, ..., 2^16 half the distance of floats is 2^-14, ..., 2^-8. The last leaves room for what
/// the unit may add before sums are reset.
constexpr std::array<float, 8> kLargestStart = {-1,      0x1p10F, 0x1p11F, 0x1p12F,
                                                0x1p13F, 0x1p14F, 0x1p15F, kLargestScore - 0x1p10F};
constexpr double kFirstRounding = 0x1p-14, kRoundingOfDoubles = 0x1p-30;
constexpr int kStepBits = 29;
constexpr uint32_t kIdMask = (1u << kStepBits) - 1;
constexpr double kLargestUnitScore = 1000;

/// The highest step at which the best way of a unit is certain.
uint32_t StepOf(double margin, size_t characters) {
  const double additions = 2 * static_cast<double>(characters);
  uint32_t step = 0;
  for (double rounding = kFirstRounding; step + 1 < kLargestStart.size(); ++step, rounding *= 2) {
    if (!(margin > additions * rounding + kRoundingOfDoubles)) break;
  }
  return step;
}

/// By a character's first byte, in valid UTF-8.
size_t CharacterBytes(char first) {
  return static_cast<size_t>("\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[static_cast<uint8_t>(first) >> 4]);
}

/// In valid UTF-8.
Utf8Character CharacterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >> 4 == 0xE && text.size() - at >= 3) {
    return {(lead & 0xF) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  const Utf8Character character = DecodeUtf8(text.substr(at));
  return character.size_bytes == 0 ? Utf8Character{kReplacement, 1} : character;
}

std::string ProblemOf(const Piece& piece) {
  if (!std::isfinite(piece.score)) return "a score is no finite number";
  if (piece.text.empty()) return "a piece is empty";
  if (piece.text.size() >= kLongestPieceBytes) return "a piece has 8,000 bytes or more";
  if (piece.text.find('\0') != std::string::npos) return "a piece holds a NUL";
  return "";
}

}  // namespace

SentencePieceUnigram::SentencePieceUnigram(const SentencePieceModel& model, const std::string& name)
    : cuts_(model, /*keeps_unknown_together=*/false),
      scores_(model.pieces.size()),
      byte_fallback_(model.byte_fallback),
      escapes_spaces_(model.escape_whitespaces) {
  byte_ids_.fill(PieceTrie::kNone);
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorCode::kBadInput, name, "is a damaged SentencePiece model: " + problem, "",
                kTokenizerHint);
  };
  std::vector<std::string> texts(model.pieces.size());
  std::vector<PieceTrie::Entry> entries;
  std::unordered_set<std::string_view> seen;
  float least_score = std::numeric_limits<float>::max();
  for (uint32_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    // Converters write such a piece; the library leaves it out.
    const bool is_lone_nul = piece.text == std::string_view("\0", 1);
    if (is_lone_nul && (model.byte_fallback || piece.type == PieceType::kUnused)) continue;
    if (const std::string problem = ProblemOf(piece); !problem.empty()) refuse(problem);
    ReadPiece(piece, id);
    if (piece.type == PieceType::kNormal) least_score = std::min(least_score, piece.score);
    if (!piece.matches_text()) continue;
    if (!seen.insert(piece.text).second) refuse("the piece " + Quoted(piece.text) + " is there twice");
    // Where spaces are escaped, no text has one any more when pieces are looked for.
    const bool occurs = !escapes_spaces_ || piece.text.find(' ') == std::string::npos;
    if (piece.type == PieceType::kUnused || !occurs) continue;
    texts[id] = escapes_spaces_ ? WithSpaces(piece.text) : piece.text;
    entries.push_back({texts[id], id});
  }
  if (seen.empty()) refuse("no piece is a text");
  if (unknown_id_ == PieceTrie::kNone && !byte_fallback_) refuse("no piece is the unknown one");
  const auto missing = std::find(byte_ids_.begin(), byte_ids_.end(), PieceTrie::kNone);
  if (byte_fallback_ && missing != byte_ids_.end()) refuse("it lacks pieces of bytes");
  unknown_score_ = least_score - kUnknownPenalty;
  double largest = std::abs(static_cast<double>(unknown_score_));
  for (const PieceTrie::Entry& entry : entries) {
    largest = std::max(largest, std::abs(static_cast<double>(scores_[entry.id])));
  }
  longest_unit_characters_ = static_cast<size_t>(
      std::min(static_cast<double>(PieceMemo::kMaxPieceBytes), kLargestUnitScore / largest));
  if (!byte_fallback_) scores_[unknown_id_] = unknown_score_;
  for (uint32_t byte = 0; byte < 256 && byte_fallback_; ++byte) {
    const bool begins_character = (byte & 0xC0) != 0x80;
    scores_[byte_ids_[byte]] = begins_character ? unknown_score_ : 0;
  }
  trie_ = PieceTrie(std::move(entries));
}

void SentencePieceUnigram::ReadPiece(const Piece& piece, uint32_t id) {
  scores_[id] = piece.type == PieceType::kUserDefined
                    ? static_cast<float>(0.1 * static_cast<double>(piece.text.size() - 1))
                    : piece.score;
  if (piece.type == PieceType::kUnknown) unknown_id_ = id;
  if (piece.type == PieceType::kByte) {
    if (const std::optional<uint8_t> byte = ByteOfPiece(piece.text)) byte_ids_[*byte] = id;
  }
}

void SentencePieceUnigram::Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const {
  Progress progress;
  progress.ids = ids;
  PieceLookups lookups;
  const auto flush = [&] {
    ThrowIfStopped();
    lookups.FlushEach(
        scratch->memo, [&](uint32_t* unit_ids, size_t count) { return TakeUnit(unit_ids, count, &progress); },
        [&](const PieceMemo::Key& key, std::string_view unit) { EncodeUnit(key, unit, scratch, &progress); });
  };
  for (size_t begin = 0; begin < text.size();) {
    if (lookups.room() < CharacterCuts::kBlock) flush();
    if (text.size() - begin >= CharacterCuts::kBlock + PieceMemo::kReach) {
      uint64_t ends = cuts_.AsciiCuts(text.data() + begin);
      if (ends != 0) {
        for (const char* block = text.data() + begin; ends != 0; ends &= ends - 1) {
          const char* const unit = text.data() + begin;
          const char* const end = block + std::countr_zero(ends);
          lookups.Add(scratch->memo, unit, static_cast<size_t>(end - unit), true);
          begin = static_cast<size_t>(end - text.data());
        }
        continue;
      }
    }
    const size_t end = cuts_.UnitEnd(text, begin, CharacterAt);
    lookups.Add(scratch->memo, text.data() + begin, end - begin, text.size() - begin >= PieceMemo::kReach);
    begin = end;
  }
  flush();
}

/// Appends what is remembered of a unit.
/// \returns false where the sum is too large for it
bool SentencePieceUnigram::TakeUnit(uint32_t* unit_ids, size_t count, Progress* progress) const {
  const uint32_t step = unit_ids[0] >> kStepBits;
  float score = progress->score;
  if (!(std::abs(score) <= kLargestStart[step])) return false;
  unit_ids[0] &= kIdMask;
  for (size_t i = 0; i < count; ++i) score += scores_[unit_ids[i]];
  progress->score = score;
  if (byte_fallback_) {
    progress->ids->insert(progress->ids->end(), unit_ids, unit_ids + count);
    return true;
  }
  for (size_t i = 0; i < count; ++i) {
    const bool unknown = unit_ids[i] == unknown_id_;
    if (!unknown || !progress->after_unknown) progress->ids->push_back(unit_ids[i]);
    progress->after_unknown = unknown;
  }
  return true;
}

void SentencePieceUnigram::EncodeUnit(const PieceMemo::Key& key, std::string_view unit, Scratch* scratch,
                                      Progress* progress) const {
  if (unit.size() > PieceMemo::kMaxPieceBytes || CountCharacters(unit) > longest_unit_characters_) {
    return EncodeStretches(unit, scratch, progress);
  }
  const auto known = scratch->memo.Find(key, unit);
  if (!known.empty()) {
    scratch->unit_ids.assign(known.begin(), known.end());
  } else {
    DecideUnit(unit, scratch);
    scratch->memo.Remember(key, unit, scratch->unit_ids);
  }
  if (TakeUnit(scratch->unit_ids.data(), scratch->unit_ids.size(), progress)) return;
  EncodeStretches(unit, scratch, progress);
}

/// Finds the best way through a unit, for scratch->unit_ids: the ids, with the step in the first.
void SentencePieceUnigram::DecideUnit(std::string_view unit, Scratch* scratch) const {
  constexpr double kUnreached = -std::numeric_limits<double>::infinity();
  std::vector<UnitPlace>& places = scratch->unit_places;
  places.assign(unit.size() + 1, {kUnreached, kUnreached, 0, 0});
  places[0].best = 0;
  size_t characters = 0;
  for (size_t begin = 0, character_bytes; begin < unit.size(); begin += character_bytes, ++characters) {
    const double here = places[begin].best, second_here = places[begin].second;
    const auto reach_by = [&](size_t size, uint32_t id, float piece_score) {
      UnitPlace& place = places[begin + size];
      const double candidate = here + static_cast<double>(piece_score);
      if (candidate > place.best) {
        place = {candidate, std::max(place.best, second_here + static_cast<double>(piece_score)),
                 static_cast<uint32_t>(begin), id};
      } else {
        place.second = std::max(place.second, candidate);
      }
    };
    const char* const at = unit.data() + begin;
    character_bytes = std::min(CharacterBytes(*at), unit.size() - begin);
    bool known = false;
    trie_.VisitPrefixes(at, unit.data() + unit.size(), [&](size_t size, uint32_t id) {
      reach_by(size, id, scores_[id]);
      known = known || size == character_bytes;
      return true;
    });
    if (!known) reach_by(character_bytes, kUnknownCharacter, unknown_score_);
  }
  scratch->ends.clear();
  for (auto end = static_cast<uint32_t>(unit.size()); end != 0; end = places[end].begin) {
    scratch->ends.push_back(end);
  }
  scratch->unit_ids.clear();
  for (; !scratch->ends.empty(); scratch->ends.pop_back()) {
    const UnitPlace& place = places[scratch->ends.back()];
    AppendPiece(unit.substr(place.begin, scratch->ends.back() - place.begin), place.id, &scratch->unit_ids);
  }
  const UnitPlace& last = places.back();
  scratch->unit_ids[0] |= StepOf(last.best - last.second, characters) << kStepBits;
}

/// \param id of a piece, or kUnknownCharacter
void SentencePieceUnigram::AppendPiece(std::string_view piece, uint32_t id,
                                       std::vector<uint32_t>* ids) const {
  if (id != kUnknownCharacter) return ids->push_back(id);
  if (!byte_fallback_) return ids->push_back(unknown_id_);
  const bool is_mark = escapes_spaces_ && piece == " ";
  for (const char byte : is_mark ? kSpaceMark : piece) {
    ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  }
}

/// As the library does, whatever the sum.
void SentencePieceUnigram::EncodeStretches(std::string_view text, Scratch* scratch,
                                           Progress* progress) const {
  std::vector<Place>& places = scratch->places;
  std::vector<uint32_t>& ends = scratch->ends;
  while (!text.empty()) {
    const size_t size = DecideStretch(text, &progress->score, &places);
    ends.clear();
    for (auto end = static_cast<uint32_t>(size); end != 0; end = places[end].begin) ends.push_back(end);
    for (; !ends.empty(); ends.pop_back()) {
      const auto& [score, begin, id] = places[ends.back()];
      const bool joins = id == kUnknownCharacter && !byte_fallback_ && progress->after_unknown;
      if (!joins) AppendPiece(text.substr(begin, ends.back() - begin), id, progress->ids);
      progress->after_unknown = id == kUnknownCharacter;
    }
    std::fill_n(places.begin(), size + 1, Place{});
    text.remove_prefix(size);
  }
}

/// Finds the best way to the first place of `text` that nothing reaches across.
/// \param score of the best way to its beginning, then to that place
/// \param places unreached, all; then by place, up to what is returned
size_t SentencePieceUnigram::DecideStretch(std::string_view text, float* score,
                                           std::vector<Place>* places) const {
  const char* const text_end = text.data() + text.size();
  const size_t reach = std::max(trie_.longest_bytes(), kLongestCharacterBytes);
  size_t begin = 0, frontier = 0;
  do {
    if (places->size() <= begin + reach) places->resize(2 * (begin + reach) + 1);
    Place* const from = places->data() + begin;
    float here = begin == 0 ? *score : from->score;
    if (here < -kLargestScore || here > kLargestScore) {
      for (Place* place = from; place <= places->data() + frontier; ++place) {
        if (place->begin != Place::kUnreached) place->score -= here;
      }
      here = 0;
    }
    const auto reach_by = [&](size_t size, uint32_t id, float piece_score) {
      frontier = std::max(frontier, begin + size);
      Place& place = from[size];
      const float candidate = piece_score + here;
      if (place.begin == Place::kUnreached || candidate > place.score) {
        place = {candidate, static_cast<uint32_t>(begin), id};
      }
    };
    const char* const at = text.data() + begin;
    const size_t character_bytes = std::min(CharacterBytes(*at), text.size() - begin);
    bool known = false;
    trie_.VisitPrefixes(at, text_end, [&](size_t size, uint32_t id) {
      reach_by(size, id, scores_[id]);
      known = known || size == character_bytes;
      return true;
    });
    if (!known) reach_by(character_bytes, kUnknownCharacter, unknown_score_);
    begin += character_bytes;
  } while (begin < frontier);
  *score = (*places)[begin].score;
  return begin;
}

}  // namespace trainwright

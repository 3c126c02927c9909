#include "lib/tok/sentencepiece_unigram.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <unordered_set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using Piece = SentencePieceModel::Piece;
using PieceType = SentencePieceModel::PieceType;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr float kUnknownPenalty = 10, kLargestScore = 100000;
constexpr size_t kLongestPieceBytes = 8000, kLongestCharacterBytes = 4;
/// Stands for an unknown character: ids are below it.
constexpr uint32_t kUnknownCharacter = PieceTrie::kNone - 1;
constexpr size_t kBytesBetweenStops = 1 << 16;

/// By a character's first byte, in valid UTF-8.
size_t CharacterBytes(char first) {
  return static_cast<size_t>("\1\1\1\1\1\1\1\1\1\1\1\1\2\2\3\4"[static_cast<uint8_t>(first) >> 4]);
}

/// A piece as SentencePieceNormalizer writes text.
std::string Normalized(std::string_view piece) {
  std::string text;
  for (size_t mark; (mark = piece.find(kSpaceMark)) != std::string_view::npos;
       piece.remove_prefix(mark + kSpaceMark.size())) {
    text.append(piece.substr(0, mark)).push_back(' ');
  }
  return text.append(piece);
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
    : scores_(model.pieces.size()),
      byte_fallback_(model.byte_fallback),
      escapes_spaces_(model.escape_whitespaces) {
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
    texts[id] = escapes_spaces_ ? Normalized(piece.text) : piece.text;
    entries.push_back({texts[id], id});
  }
  if (seen.empty()) refuse("no piece is a text");
  unknown_score_ = least_score - kUnknownPenalty;
  trie_ = PieceTrie(std::move(entries));
}

void SentencePieceUnigram::ReadPiece(const Piece& piece, uint32_t id) {
  scores_[id] = piece.type == PieceType::kUserDefined
                    ? static_cast<float>(0.1 * static_cast<double>(piece.text.size() - 1))
                    : piece.score;
  unsigned byte = 0;
  if (piece.type == PieceType::kUnknown) unknown_id_ = id;
  if (piece.type == PieceType::kByte && std::sscanf(piece.text.c_str(), "<0x%2X>", &byte) == 1) {
    byte_ids_[byte] = id;
  }
}

void SentencePieceUnigram::Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const {
  float score = 0;
  bool after_unknown = false;
  size_t next_stop = text.size();
  while (!text.empty()) {
    if (text.size() <= next_stop) {
      ThrowIfStopped();
      next_stop = text.size() - std::min(text.size(), kBytesBetweenStops);
    }
    const size_t size = DecideStretch(text, &score, &scratch->places);
    Emit(text.substr(0, size), scratch, &after_unknown, ids);
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

/// Appends the ids of a stretch, and makes its places unreached again.
void SentencePieceUnigram::Emit(std::string_view text, Scratch* scratch, bool* after_unknown,
                                std::vector<uint32_t>* ids) const {
  std::vector<Place>& places = scratch->places;
  std::vector<uint32_t>& ends = scratch->ends;
  ends.clear();
  for (auto end = static_cast<uint32_t>(text.size()); end != 0; end = places[end].begin) ends.push_back(end);
  for (; !ends.empty(); ends.pop_back()) {
    const auto& [score, begin, id] = places[ends.back()];
    if (id != kUnknownCharacter) {
      ids->push_back(id);
      *after_unknown = false;
    } else if (byte_fallback_) {
      const std::string_view character = text.substr(begin, ends.back() - begin);
      const bool is_mark = escapes_spaces_ && character == " ";
      for (const char byte : is_mark ? kSpaceMark : character) {
        ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
      }
    } else {
      if (!*after_unknown) ids->push_back(unknown_id_);
      *after_unknown = true;
    }
  }
  std::fill_n(places.begin(), text.size() + 1, Place{});
}

}  // namespace trainwright

#include "lib/tok/json_unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr size_t kLongestCharacterBytes = 4;
constexpr size_t kMostKeptPlaces = 1 << 16;  // from text to text
constexpr size_t kPlacesBetweenLooks = 1 << 16;
/// Stands in the memo for a word that is to be decided again.
constexpr uint32_t kUndecided = std::numeric_limits<uint32_t>::max();
/// More than 2 n 2^-33, n up to PieceMemo::kMaxPieceBytes, and than what doubles round within a word.
constexpr double kSureMargin = 1e-6;
/// No sum within a word may differ by more from that at its beginning, so that rounding is as small there.
constexpr double kLargestWordScore = JsonUnigram::kLargestStart / 2;

}  // namespace

JsonUnigram::JsonUnigram(const TextPipeline& pipeline)
    : unknown_id_(pipeline.unk_id),
      byte_fallback_(pipeline.byte_fallback),
      folds_spaces_(pipeline.folds_spaces) {
  double least = std::numeric_limits<double>::infinity();
  for (const TextPipeline::Token& token : pipeline.tokens) {
    scores_.push_back(token.score);
    least = std::min(least, token.score);
    if (const std::optional<uint8_t> byte = ByteOfPiece(token.text)) byte_ids_[*byte] = token.id;
    // Where spaces are folded, no text has one when tokens are looked for.
    const bool occurs = !folds_spaces_ || token.text.find(' ') == std::string::npos;
    if (token.text.empty() || !occurs) continue;
    const std::string text = folds_spaces_ ? WithSpaces(token.text) : token.text;
    cuts_at_spaces_ = cuts_at_spaces_ && text.find(' ', 1) == std::string::npos;
    ids_[text] = token.id;
  }
  unknown_score_ = least - kUnknownPenalty;
  double largest = std::abs(unknown_score_);
  for (const double score : scores_) largest = std::max(largest, std::abs(score));
  longest_word_ = static_cast<size_t>(
      std::min(static_cast<double>(PieceMemo::kMaxPieceBytes), kLargestWordScore / largest));
  std::vector<PieceTrie::Entry> entries;
  for (const auto& [text, id] : ids_) entries.push_back({text, id});
  trie_ = PieceTrie(std::move(entries));
}

void JsonUnigram::Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const {
  if (text.size() >= std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kBadInput, "a text without a cut", "is longer than 4 GiB");
  }
  Progress progress;
  // Whoever asks for a short text remembers it.
  if (text.size() <= PieceMemo::kMaxPieceBytes) EncodeStretches(text, text.size(), scratch, &progress, ids);
  while (progress.done < text.size()) {
    const size_t begin = progress.done;
    const size_t end = cuts_at_spaces_ ? std::min(text.find(' ', begin + 1), text.size()) : text.size();
    if (TakeWord(text, text.substr(begin, end - begin), scratch, &progress, ids)) continue;
    EncodeStretches(text, end, scratch, &progress, ids);
  }
  Flush(text, progress, ids);
  if (scratch->places.size() > kMostKeptPlaces) scratch->places = std::vector<Place>();
  if (scratch->ends.capacity() > kMostKeptPlaces) scratch->ends = std::vector<uint32_t>();
}

void JsonUnigram::Flush(std::string_view text, const Progress& progress, std::vector<uint32_t>* ids) const {
  if (progress.unknown_begin == progress.done) return;
  AppendUnknown(text.substr(progress.unknown_begin, progress.done - progress.unknown_begin), ids);
}

/// Appends the ids of a word that is decided whatever is before it.
/// \returns false where it is not
bool JsonUnigram::TakeWord(std::string_view text, std::string_view word, Scratch* scratch, Progress* progress,
                           std::vector<uint32_t>* ids) const {
  if (word.size() > longest_word_ || !(std::abs(progress->score) <= kLargestStart)) return false;
  const PieceMemo::Key key = PieceMemo::KeyOf(word);
  std::span<const uint32_t> word_ids = scratch->memo.Find(key, word);
  if (word_ids.empty()) {
    ThrowIfStopped();
    if (!DecideWord(word, scratch)) scratch->unit_ids.assign(1, kUndecided);
    scratch->memo.Remember(key, word, scratch->unit_ids);
    word_ids = scratch->unit_ids;
  }
  if (word_ids[0] == kUndecided) return false;
  Flush(text, *progress, ids);
  for (const uint32_t id : word_ids) progress->score += scores_[id];
  ids->insert(ids->end(), word_ids.begin(), word_ids.end());
  progress->done += word.size();
  progress->unknown_begin = progress->done;
  return true;
}

/// Puts the ids of a word into scratch->unit_ids.
/// \returns whether it is decided, and has no unknown characters
bool JsonUnigram::DecideWord(std::string_view word, Scratch* scratch) const {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::vector<UnitPlace>& places = scratch->unit_places;
  places.assign(word.size() + 1, {.best = kNone, .second = kNone});
  places[0].best = 0;
  for (size_t begin = 0; begin < word.size();) {
    const size_t character_bytes = std::max<size_t>(Utf8CharacterAt(word, begin).size_bytes, 1);
    const UnitPlace from = places[begin];
    const auto reach = [&](size_t size, uint32_t id, double token_score) {
      UnitPlace& place = places[begin + size];
      const double best = from.best + token_score, second = from.second + token_score;
      if (best > place.best) {
        place = {best, std::max(place.best, second), static_cast<uint32_t>(begin), id};
      } else {
        place.second = std::max(place.second, best);
      }
    };
    bool known = false;
    trie_.VisitPrefixes(word.data() + begin, word.data() + word.size(), [&](size_t size, uint32_t id) {
      reach(size, id, scores_[id]);
      known = known || size == character_bytes;
      return true;
    });
    if (!known) reach(character_bytes, unknown_id_, unknown_score_);
    begin += character_bytes;
  }
  const UnitPlace& last = places.back();
  if (!(last.best - last.second > kSureMargin)) return false;
  scratch->unit_ids.clear();
  for (size_t end = word.size(); end != 0; end = places[end].begin) {
    if (places[end].id == unknown_id_) return false;
    scratch->unit_ids.push_back(places[end].id);
  }
  std::reverse(scratch->unit_ids.begin(), scratch->unit_ids.end());
  return true;
}

/// Encodes up to a place that nothing reaches across.
void JsonUnigram::EncodeStretches(std::string_view text, size_t end, Scratch* scratch, Progress* progress,
                                  std::vector<uint32_t>* ids) const {
  std::vector<Place>& places = scratch->places;
  std::vector<uint32_t>& ends = scratch->ends;
  while (progress->done < end) {
    ThrowIfStopped();
    const size_t base = progress->done;
    const size_t size = DecideStretch(text.substr(base, end - base), &progress->score, &places);
    ends.clear();
    for (auto at = static_cast<uint32_t>(size); at != 0; at = places[at].begin) ends.push_back(at);
    for (; !ends.empty(); ends.pop_back()) {
      const uint32_t id = places[ends.back()].id;
      if (id != unknown_id_) {
        Flush(text, *progress, ids);
        ids->push_back(id);
        progress->unknown_begin = base + ends.back();
      }
      progress->done = base + ends.back();
    }
    std::fill_n(places.begin(), size + 1, Place{});
  }
}

/// Finds the best way to the first place of `text` that nothing reaches across.
/// \param score of the best way to its beginning, then to that place
/// \param places unreached, all; then by place, up to what is returned
size_t JsonUnigram::DecideStretch(std::string_view text, double* score, std::vector<Place>* places) const {
  const char* const text_end = text.data() + text.size();
  const size_t reach = std::max(trie_.longest_bytes(), kLongestCharacterBytes);
  size_t begin = 0, frontier = 0, visited = 0;
  do {
    if (++visited % kPlacesBetweenLooks == 0) ThrowIfStopped();
    if (places->size() <= begin + reach) places->resize(2 * (begin + reach) + 1);
    Place* const from = places->data() + begin;
    const double here = begin == 0 ? *score : from->score;
    const auto reach_by = [&](size_t size, uint32_t id, double token_score) {
      frontier = std::max(frontier, begin + size);
      Place& place = from[size];
      const double candidate = token_score + here;
      if (place.begin == Place::kUnreached || candidate > place.score) {
        place = {candidate, static_cast<uint32_t>(begin), id};
      }
    };
    const char* const at = text.data() + begin;
    const bool is_ascii = static_cast<uint8_t>(*at) < 0x80;
    const size_t character_bytes =
        is_ascii ? 1 : std::max<size_t>(DecodeUtf8(text.substr(begin)).size_bytes, 1);
    bool known = false;
    trie_.VisitPrefixes(at, text_end, [&](size_t size, uint32_t id) {
      reach_by(size, id, scores_[id]);
      known = known || size == character_bytes;
      return true;
    });
    if (!known) reach_by(character_bytes, unknown_id_, unknown_score_);
    begin += character_bytes;
  } while (begin < frontier);
  *score = (*places)[begin].score;
  return begin;
}

void JsonUnigram::AppendUnknown(std::string_view text, std::vector<uint32_t>* ids) const {
  if (const auto found = ids_.find(std::string(text)); found != ids_.end())
    return ids->push_back(found->second);
  if (!byte_fallback_) return ids->push_back(unknown_id_);
  for (const char byte : folds_spaces_ ? WithMarks(text) : std::string(text)) {
    ids->push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  }
}

}  // namespace trainwright

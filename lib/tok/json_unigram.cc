#include "lib/tok/json_unigram.h"

#include <algorithm>
#include <limits>
#include <optional>
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
    ids_[folds_spaces_ ? WithSpaces(token.text) : token.text] = token.id;
  }
  unknown_score_ = least - kUnknownPenalty;
  std::vector<PieceTrie::Entry> entries;
  for (const auto& [text, id] : ids_) entries.push_back({text, id});
  trie_ = PieceTrie(std::move(entries));
}

void JsonUnigram::Encode(std::string_view text, Scratch* scratch, std::vector<uint32_t>* ids) const {
  if (text.size() >= std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kBadInput, "a text without a cut", "is longer than 4 GiB");
  }
  double score = 0;
  std::vector<Place>& places = scratch->places;
  std::vector<uint32_t>& ends = scratch->ends;
  size_t unknown_begin = 0, done = 0;  // what is between is unknown
  const auto flush = [&] {
    if (unknown_begin < done) AppendUnknown(text.substr(unknown_begin, done - unknown_begin), ids);
  };
  while (done < text.size()) {
    ThrowIfStopped();
    const size_t base = done, size = DecideStretch(text.substr(base), &score, &places);
    ends.clear();
    for (auto end = static_cast<uint32_t>(size); end != 0; end = places[end].begin) ends.push_back(end);
    for (; !ends.empty(); ends.pop_back()) {
      const uint32_t id = places[ends.back()].id;
      if (id != unknown_id_) {
        flush();
        ids->push_back(id);
        unknown_begin = base + ends.back();
      }
      done = base + ends.back();
    }
    std::fill_n(places.begin(), size + 1, Place{});
  }
  flush();
  if (places.size() > kMostKeptPlaces) places = std::vector<Place>();
  if (ends.capacity() > kMostKeptPlaces) ends = std::vector<uint32_t>();
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
    const size_t character_bytes = std::max<size_t>(Utf8CharacterAt(text, begin).size_bytes, 1);
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

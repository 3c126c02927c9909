#include "lib/formats/id_codes.h"

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/tokenizer_identity.h"

namespace trainwright {
namespace {

constexpr uint32_t kFirstBytes = 256;
constexpr uint32_t kMaxThreeByte = 64;

uint32_t ThreeByteRank(uint32_t one_byte, uint32_t three_byte) {
  return one_byte + (kFirstBytes - one_byte - three_byte) * 256;
}

uint32_t CodeCount(uint32_t one_byte, uint32_t three_byte) {
  return ThreeByteRank(one_byte, three_byte) + (three_byte << 16);
}

}  // namespace

IdCodes::IdCodes(uint32_t vocab_size, const std::vector<uint32_t>& most_frequent, uint32_t one_byte,
                 uint32_t three_byte)
    : two_byte_begin_(one_byte),
      three_byte_begin_(kFirstBytes - three_byte),
      two_byte_rank_(one_byte),
      three_byte_rank_(ThreeByteRank(one_byte, three_byte)),
      rank_of_id_(vocab_size, kNoId),
      id_of_rank_(CodeCount(one_byte, three_byte), kNoId) {
  uint32_t rank = 0;
  for (const uint32_t id : most_frequent) rank_of_id_[id] = rank++;
  for (uint32_t& of_id : rank_of_id_) {
    if (of_id == kNoId) of_id = rank++;
  }
  for (uint32_t id = 0; id < vocab_size; ++id) id_of_rank_[rank_of_id_[id]] = id;

  table_.push_back(static_cast<uint8_t>(one_byte));
  table_.push_back(static_cast<uint8_t>(three_byte));
  AppendInteger(&table_, static_cast<uint32_t>(most_frequent.size()));
  for (const uint32_t id : most_frequent) AppendInteger(&table_, static_cast<uint16_t>(id));
  if (vocab_size <= 1u << 16) return;
  for (const uint32_t id : most_frequent) table_.push_back(static_cast<uint8_t>(id >> 16));
}

IdCodes IdCodes::ForCounts(std::span<const uint64_t> counts) {
  TRAINWRIGHT_CHECK(!counts.empty() && counts.size() <= kMaxVocabulary);
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < counts.size(); ++id) {
    if (counts[id] > 0) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });

  // tokens[r]: those of the first r ranks.
  std::vector<uint64_t> tokens(1, 0);
  for (const uint32_t id : ids) tokens.push_back(tokens.back() + counts[id]);
  const auto tokens_below = [&](uint32_t rank) { return tokens[std::min<size_t>(rank, ids.size())]; };
  uint64_t fewest = UINT64_MAX;
  uint32_t best_one_byte = 0, best_three_byte = 0;
  for (uint32_t three_byte = 0; three_byte <= kMaxThreeByte; ++three_byte) {
    for (uint32_t one_byte = 0; one_byte < kFirstBytes && one_byte + three_byte <= kFirstBytes; ++one_byte) {
      if (CodeCount(one_byte, three_byte) < counts.size())
        break;  // more codes of one byte leave fewer in all
      const uint64_t bytes =
          3 * tokens.back() - tokens_below(one_byte) - tokens_below(ThreeByteRank(one_byte, three_byte));
      if (bytes < fewest) {
        fewest = bytes;
        best_one_byte = one_byte;
        best_three_byte = three_byte;
      }
    }
  }
  return IdCodes(static_cast<uint32_t>(counts.size()), ids, best_one_byte, best_three_byte);
}

IdCodes IdCodes::DecodeTable(ByteSpan table, uint32_t vocab_size, const std::string& object,
                             uint64_t offset) {
  const auto corrupt = [&] {
    return BadInputAt(offset, object, "the header is corrupt: its table of codes is impossible");
  };
  ByteParser parser(table);
  const uint32_t one_byte = parser.Read<uint8_t>();
  const uint32_t three_byte = parser.Read<uint8_t>();
  const auto ranked = parser.Read<uint32_t>();
  if (vocab_size > kMaxVocabulary || three_byte > kMaxThreeByte || one_byte + three_byte > kFirstBytes ||
      CodeCount(one_byte, three_byte) < vocab_size || ranked > vocab_size) {
    throw corrupt();
  }
  std::vector<uint32_t> ids(ranked);
  for (uint32_t& id : ids) id = parser.Read<uint16_t>();
  if (vocab_size > 1u << 16) {
    for (uint32_t& id : ids) id |= static_cast<uint32_t>(parser.Read<uint8_t>()) << 16;
  }
  if (parser.failed() || parser.remaining() > 0) throw corrupt();
  std::vector<bool> seen(vocab_size, false);
  for (const uint32_t id : ids) {
    if (id >= vocab_size || seen[id]) throw corrupt();
    seen[id] = true;
  }
  return IdCodes(vocab_size, ids, one_byte, three_byte);
}

void IdCodes::AppendCodes(std::span<const uint32_t> ids, std::vector<uint8_t>* out) const {
  const size_t start = out->size();
  out->resize(start + 3 * ids.size());
  uint8_t* at = out->data() + start;
  for (const uint32_t id : ids) {
    const uint32_t rank = rank_of_id_[id];
    if (rank < two_byte_rank_) {
      *at++ = static_cast<uint8_t>(rank);
    } else if (rank < three_byte_rank_) {
      const uint32_t rest = rank - two_byte_rank_;
      *at++ = static_cast<uint8_t>(two_byte_begin_ + (rest >> 8));
      *at++ = static_cast<uint8_t>(rest);
    } else {
      const uint32_t rest = rank - three_byte_rank_;
      *at++ = static_cast<uint8_t>(three_byte_begin_ + (rest >> 16));
      *at++ = static_cast<uint8_t>(rest);
      *at++ = static_cast<uint8_t>(rest >> 8);
    }
  }
  out->resize(static_cast<size_t>(at - out->data()));
}

bool IdCodes::DecodeInto(ByteSpan codes, std::span<uint32_t> ids) const {
  const uint8_t* at = codes.data();
  const uint8_t* const end = at + codes.size();
  const uint32_t* const id_of_rank = id_of_rank_.data();
  const uint32_t two_byte_begin = two_byte_begin_, three_byte_begin = three_byte_begin_;
  size_t done = 0;
  // No branch depends on the data but that to the rare third byte: lengths are as good as random.
  for (; done < ids.size() && end - at >= 3; ++done) {
    uint16_t pair;
    std::memcpy(&pair, at, 2);
    const uint32_t first = pair & 255, second = pair >> 8;
    if (first >= three_byte_begin) {
      ids[done] =
          id_of_rank[three_byte_rank_ + ((first - three_byte_begin) << 16) + second + (uint32_t{at[2]} << 8)];
      at += 3;
      continue;
    }
    const uint32_t is_two = first >= two_byte_begin ? 1 : 0;
    const uint32_t rank = first + ((0 - is_two) & ((first - two_byte_begin) * 255 + second));
    ids[done] = id_of_rank[rank];
    at += 1 + is_two;
  }
  for (; done < ids.size() && at < end; ++done) {
    const uint32_t first = *at++;
    if (first < two_byte_begin) {
      ids[done] = id_of_rank[first];
    } else if (first < three_byte_begin && end - at >= 1) {
      ids[done] = id_of_rank[two_byte_rank_ + ((first - two_byte_begin) << 8) + *at++];
    } else {
      return false;
    }
  }
  return done == ids.size() && at == end;
}

}  // namespace trainwright

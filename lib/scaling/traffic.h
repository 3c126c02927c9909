/// What a rank sends in the collectives of c10d's engines, as they do them over a ring: Gloo always, NCCL for
/// what is large. A ring of W ranks cuts what it works on into W parts; in each of W - 1 rounds a rank sends
/// one part to the next and takes one from the one before. \source Patarasuk and Yuan 2009,
/// doi:10.1016/j.jpdc.2008.09.002
#pragma once

#include <cstdint>

#include "lib/scaling/link.h"

namespace trainwright {

/// Of one rank.
struct Traffic {
  int64_t sent_bytes = 0;
  int64_t messages = 0;  ///< one after the other, each of which waits for the one before

  double SecondsOver(const Link& link) const {
    return static_cast<double>(sent_bytes) / link.bytes_per_s +
           static_cast<double>(messages) * link.latency_s;
  }
  Traffic& operator+=(const Traffic& other) {
    sent_bytes += other.sent_bytes;
    messages += other.messages;
    return *this;
  }
  bool operator==(const Traffic&) const = default;
};

/// What each rank has a part of for every other one, or of its own for all: of equal parts, the shorter ones
/// padded or waited for with the longest.
/// \param part_bytes of the longest, at least 0
/// \param ranks at least 1; one rank sends nothing
Traffic EqualParts(int64_t part_bytes, int64_t ranks);

/// A reduce-scatter of `bytes` that each rank has, or an all-gather of as many in all.
/// \param bytes at least 0
/// \param ranks at least 1; one rank sends nothing
Traffic RingHalf(int64_t bytes, int64_t ranks);

/// A sum that all ranks get: one half after the other.
Traffic RingSum(int64_t bytes, int64_t ranks);

}  // namespace trainwright

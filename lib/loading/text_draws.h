/// Which texts of a contrastive record a step takes, and how they are laid out. The definition:
/// man/trainwright-sample-order.5.
///
/// What is drawn follows from the seed, the record's set and the number of the sample in its stream
/// (Sample::ordinal), so it is another one each time a record comes and does not depend on how a step is
/// divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/loading/packed_batch.h"
#include "lib/loading/sample_window.h"
#include "lib/loading/text_choice.h"

namespace trainwright {

/// A record as far as draws depend on it.
struct RecordShape {
  uint32_t set = 0;      ///< Sample::set
  uint64_t ordinal = 0;  ///< Sample::ordinal
  uint32_t positives = 0, negatives = 0;
};

/// Numbers of texts among the record's positives and among its negatives.
struct DrawnTexts {
  std::vector<uint32_t> positives, negatives;
  bool operator==(const DrawnTexts&) const = default;
};

/// Positives without replacement, in the order they are drawn, or all as they are stored. Negatives without
/// replacement as well, from their list repeated until it is long enough.
DrawnTexts DrawTexts(const TextChoice& choice, const RecordShape& record, uint64_t seed);

/// Numbers below `count`, `wanted` of them, drawn without replacement from the list 0, 1, ... that is
/// repeated as a whole until it has that many.
/// \param count >= 1
std::vector<uint32_t> DrawWithoutReplacement(uint32_t count, uint64_t wanted, uint64_t key);

/// XXH3-64 of ids as little-endian 32-bit numbers.
uint64_t HashOfTokens(std::span<const uint32_t> tokens);

/// Whether a sample is a row to generate, and not a record: as GenerativeCutter or ContrastiveCutter cut it.
bool IsRow(const Sample& sample);
/// Appends a record: its query, the positives that are drawn, the negatives that are drawn, each a span with
/// a note. None of their tokens is a label, and the record counts as one.
/// \param record its number in the micro-batch: of the notes
void PackRecord(const Sample& sample, const TextChoice& choice, uint64_t seed, uint32_t record,
                PackedBatch* batch);
/// Appends a row, with its labels and a note.
/// \param record number of the sample that it is, or is a companion of
void PackRow(const Sample& sample, uint32_t record, PackedBatch* batch);

}  // namespace trainwright

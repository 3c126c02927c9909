/// How many rows of logits the head makes at a time.
///
/// A slice's logits lie in memory at once, and each slice reads and writes the whole gradient of the head's
/// weights: on a GPU, where that costs as much as the GEMM, slices are as large as memory allows. Which
/// rows are together decides the order of fp32 sums, so a run keeps what it began with.
#pragma once

#include <cstdint>

namespace trainwright {

/// Logits of a slice where nothing else is said: on a CPU, and where nobody knows what memory is free.
inline constexpr int64_t kHeadSliceLogits = int64_t{1} << 25;

/// Columns of logits on devices other than the CPU are a multiple of this, as their products like it.
inline constexpr int64_t kVocabularyMultiple = 128;
/// The least multiple of `multiple` that is at least the vocabulary.
int64_t PaddedVocabulary(int64_t vocabulary, int64_t multiple);

/// Logits of a slice on a device that has this much memory free for activations and logits: an eighth of it,
/// at least kHeadSliceLogits, and no more than all rows have.
/// \param free_bytes 0: not known
/// \param vocabulary with its pads
/// \param rows of a micro-batch
int64_t HeadSliceLogits(int64_t free_bytes, int64_t vocabulary, int64_t rows, int64_t element_bytes);

/// Rows of each slice of `rows` but the last, which may have fewer: slices of about one size, of a multiple
/// of 128 rows where there are that many.
/// \param slice_logits as in HeadSliceLogits; 0: kHeadSliceLogits, in slices of 64 to 4,096 rows
int64_t HeadSliceRows(int64_t slice_logits, int64_t vocabulary, int64_t rows);

}  // namespace trainwright

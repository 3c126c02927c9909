/// The rows of a pass in which a decoder appends tokens to several sequences, and which of their hidden
/// states are wanted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/model/body.h"
#include "lib/model/device_input.h"

namespace trainwright {

/// What is appended to each sequence is a span, at the positions after the sequence's own; each row in
/// excess is one, too, of id 0 at position 0.
/// \param next none is without tokens
/// \param length_of tokens of a sequence so far
/// \param rows at least this many
/// \throws Error{kBadInput} on an id that is not in the vocabulary
DeviceInput PackContinuations(const std::vector<Continuation>& next,
                              const std::function<int64_t(int64_t sequence)>& length_of, int64_t rows,
                              int64_t vocab_size, at::Device device);

/// \param hidden_nd of the rows of PackContinuations
/// \returns [at least the sequences of `next`, D]: first of all the last row of each, in the order of `next`;
///     `hidden_nd` itself where each has one row
at::Tensor LastRowsOf(const at::Tensor& hidden_nd, const std::vector<Continuation>& next);

}  // namespace trainwright

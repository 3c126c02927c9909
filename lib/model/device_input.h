/// A micro-batch where the model computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/model/body.h"
#include "lib/nn/attention/span_table.h"

namespace trainwright {

struct DeviceInput {
  at::Tensor tokens_n;          ///< int64 [N]
  at::Tensor positions_n;       ///< int64 [N]
  at::Tensor host_positions_n;  ///< the same on the host
  SpanTable spans;
  AttentionMask mask = AttentionMask::kCausal;
  bool continues = false;  ///< as of BodyInput

  int64_t num_tokens() const { return tokens_n.numel(); }
};

/// Checks a micro-batch on the host, before any of it leaves: sizes, ids, positions, spans.
/// \throws Error{kBadInput} naming an id outside the vocabulary, or a position that is not below
/// `positions_limit`
void CheckInput(const BodyInput& input, int64_t vocab_size, int64_t positions_limit);

/// The same of labels, which the head reads.
/// \throws Error{kBadInput} naming an id outside the vocabulary
void CheckLabels(const at::Tensor& labels_n, int64_t num_tokens, int64_t vocab_size);

/// Copies what the layers read, after CheckInput; a GPU is waited for without `input.pin` only. On the CPU
/// the tensors are the input's own, and where the input is staged they are those of it.
DeviceInput ToDevice(const BodyInput& input, int64_t vocab_size, at::Device device);

}  // namespace trainwright

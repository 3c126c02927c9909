/// Micro-batches for the tests of models, and how far two results are apart.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <vector>

#include "lib/base/rng.h"
#include "lib/model/language_model.h"
#include "tests/support/relative_difference.h"
#include "tests/support/support.h"

namespace trainwright::test {

/// Documents of the given lengths with random ids; every position but a document's last has a label.
inline ModelInput RandomInput(const ModelConfig& config, const std::vector<int64_t>& lengths,
                              uint64_t stream = 0) {
  const Rng rng(TestSeed(), "input", stream);
  std::vector<at::Tensor> tokens, positions, labels;
  ModelInput input;
  input.span_starts = {0};
  uint64_t counter = 0;
  for (const int64_t length : lengths) {
    at::Tensor ids = at::full({length}, 0, at::kLong);
    for (int64_t i = 0; i < length; ++i) {
      ids.mutable_data_ptr<int64_t>()[i] = static_cast<int64_t>(rng.Bits(counter++) % config.vocab_size);
    }
    tokens.push_back(ids);
    positions.push_back(at::arange(length, at::kLong));
    labels.push_back(at::cat({ids.slice(0, 1), at::full({1}, -100, at::kLong)}));
    input.span_starts.push_back(input.span_starts.back() + static_cast<int32_t>(length));
  }
  input.tokens_n = at::cat(tokens);
  input.positions_n = at::cat(positions);
  input.labels_n = at::cat(labels);
  return input;
}

/// Document `k` of a packed input, alone.
inline ModelInput Document(const ModelInput& packed, size_t k) {
  const int64_t begin = packed.span_starts[k], length = packed.span_starts[k + 1] - begin;
  return {{packed.tokens_n.narrow(0, begin, length).clone(),
           packed.positions_n.narrow(0, begin, length).clone(),
           {0, static_cast<int32_t>(length)}},
          packed.labels_n.narrow(0, begin, length).clone()};
}

/// One document; every id but the first is a label.
inline ModelInput OneDocument(const at::Tensor& ids) {
  const int64_t length = ids.numel();
  return {{ids, at::arange(length, at::kLong), {0, static_cast<int32_t>(length)}},
          at::cat({ids.slice(0, 1), at::full({1}, -100, at::kLong)})};
}

inline double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

}  // namespace trainwright::test

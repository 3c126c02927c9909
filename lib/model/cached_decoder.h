/// The decoder of a Transformer: appends through the body's layers; only the attention differs, which reads
/// the cache of keys and values. Shapes as in body.h; M positions of the cache, B sequences.
/// Where rotary frequencies depend on the length (RopeParameters::LengthClass), a call that changes those of
/// a sequence computes all of it again, by itself: neither its bits nor those of the others depend on who is
/// appended to beside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/transformer.h"

namespace trainwright {

class CachedDecoder final : public BodyDecoder {
 public:
  /// \param body outlives it
  CachedDecoder(Transformer* body, int64_t max_tokens, int64_t sequences);

  at::Tensor AppendToEach(const std::vector<Continuation>& next, int64_t rows) override;
  void Fork(int64_t from, int64_t to, int64_t length) override;
  int64_t length(int64_t sequence) const override { return lengths_[static_cast<size_t>(sequence)]; }
  at::Tensor Prefill(int64_t sequence, const std::vector<int64_t>& tokens, AttentionMask mask) override;
  CacheTensors Export(int64_t sequence) const override;
  void Import(int64_t sequence, const CacheTensors& cache) override;

 private:
  bool depends_on_length() const;
  /// Where frequencies depend on the length: notes what is appended to a sequence.
  /// \returns whether other frequencies turned the keys in the cache; the sequence is empty then, and all of
  ///     its tokens are to be appended
  bool TurnToLength(Continuation* continuation);
  /// \returns the hidden states of the last token of each
  at::Tensor AppendToCache(const std::vector<Continuation>& next, int64_t rows);
  /// \param mask within what is appended; other than causal where all sequences are empty
  /// \returns the hidden states of all rows
  at::Tensor AppendRows(const std::vector<Continuation>& next, int64_t rows, AttentionMask mask);

  Transformer& body_;
  int64_t max_tokens_;
  std::vector<int64_t> lengths_;
  // Where frequencies depend on the length: the tokens of each sequence, and whose frequencies turned its
  // keys.
  std::vector<std::vector<int64_t>> seen_;
  std::vector<int64_t> length_classes_;
  std::vector<at::Tensor> keys_bgmk_, values_bgmk_;  // a layer each, storage type
};

}  // namespace trainwright

/// The decoder of a TEN model: of each sequence it keeps the state of the layers and no token, so that
/// neither memory nor the time of a step grows with a sequence.
///
/// An append is one packed pass in which each sequence is a span that starts from its state: a prompt is
/// scanned in parallel, a step is a pass of one row a sequence. Both give what a forward pass over the whole
/// sequence gives, up to rounding: chunks of the scan begin where an append does. A prompt of many thousand
/// tokens goes through in pieces, so that its length does not show in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/body.h"

namespace trainwright {

class Ten;

class TenDecoder final : public BodyDecoder {
 public:
  /// \param body outlives it
  TenDecoder(Ten* body, int64_t sequences);

  at::Tensor AppendToEach(const std::vector<Continuation>& next, int64_t rows) override;
  void Fork(int64_t from, int64_t to, int64_t length) override;
  int64_t length(int64_t sequence) const override { return At(sequence).now.tokens; }
  RecurrentState ExportState(int64_t sequence) const override;
  void ImportState(int64_t sequence, const RecurrentState& state) override;

 private:
  struct Sequence {
    /// With those that it can go back to: where it began, and where its last prompt ended.
    RecurrentState now, began, prompted;
  };

  const Sequence& At(int64_t sequence) const { return sequences_[static_cast<size_t>(sequence)]; }
  Sequence& At(int64_t sequence) { return sequences_[static_cast<size_t>(sequence)]; }
  /// One pass, which moves the sequences on.
  /// \returns as AppendToEach
  at::Tensor Pass(const std::vector<Continuation>& next, int64_t rows);

  Ten& body_;
  RecurrentState empty_;
  std::vector<Sequence> sequences_;
};

}  // namespace trainwright

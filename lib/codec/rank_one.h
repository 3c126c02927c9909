/// The predictor of exponents by rows and columns of a matrix: what the scale of each row and each column
/// says about an element's magnitude. Adam's second moments are nearly of rank one (Shazeer and Stern 2018,
/// arXiv:1804.04235), and their exponents nearly the sum of a row's and a column's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/codec/cpu/kernels.h"
#include "lib/codec/tensor_encoder.h"

namespace trainwright::codec {

class RankOnePredictor {
 public:
  /// The predictor for those of the matrices where an estimate says that it pays; nothing where none does.
  /// \param thorough estimate on all elements, not on a sample
  static std::optional<RankOnePredictor> Fit(const Kernels& kernels, const TensorView& tensor, bool thorough,
                                             int threads);
  /// What Serialize wrote.
  /// \throws Error{kBadInput} with `offset` in `object`
  static RankOnePredictor Parse(const Kernels& kernels, ByteSpan side, uint64_t elements,
                                const std::string& object, uint64_t offset);
  std::vector<uint8_t> Serialize(const Kernels& kernels, CodecLevel level) const;

  /// Replaces the exponents of elements [first, first + n) by their codes; elements outside the matrices
  /// stay.
  void Encode(const Kernels& kernels, uint64_t first, size_t n, uint8_t* exponents) const {
    ForRows(kernels.predict, first, n, exponents);
  }
  void Decode(const Kernels& kernels, uint64_t first, size_t n, uint8_t* exponents) const {
    ForRows(kernels.unpredict, first, n, exponents);
  }

 private:
  struct Part {
    MatrixPart matrix;
    int16_t centre = 0;            ///< of predictions, in eighths of an exponent
    std::vector<int16_t> rows;     ///< deviations in eighths, -128..127
    std::vector<int16_t> columns;  ///< the same, with `centre` added
  };
  using RowKernel = void (*)(uint8_t*, const int16_t*, int16_t, size_t);

  class PartFit;

  /// Moves what the predictions are centred on.
  static void Recentre(int centre, Part* part);
  void ForRows(RowKernel kernel, uint64_t first, size_t n, uint8_t* exponents) const;

  std::vector<Part> parts_;
};

}  // namespace trainwright::codec

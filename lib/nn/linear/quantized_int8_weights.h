/// The readers of weights in 8 bits for quantized_thin_tile.h; included where that is.

using Product = Int8Product;

template <int kColumns>
class Weights {
 public:
  Weights(const Product& p, int64_t column, int64_t end)
      : scales_(p.scales + column), ahead_bytes_(AheadBytes(kColumns * p.thin.depth)) {
    FindColumns<kColumns>(p.codes, column, end, p.thin.depth, codes_);
  }
  void Start(int64_t k, bool prefetch) const {
    if (!prefetch) return;
    for (int n = 0; n < kColumns; ++n) Prefetch(codes_[n] + k, ahead_bytes_);
  }
  Sums Read(int n, int64_t k) const { return FromInt8(codes_[n] + k); }
  Sums ReadPart(int n, int64_t k, int64_t count) const {
    int8_t part[kStep] = {};
    for (int64_t i = 0; i < count; ++i) part[i] = codes_[n][k + i];
    return FromInt8(part);
  }
  /// What the sum of a column is multiplied by.
  float Factor(int n) const { return scales_[n]; }

 private:
  const int8_t* codes_[kColumns];
  const float* scales_;
  uintptr_t ahead_bytes_;
};

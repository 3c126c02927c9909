/// The readers of weights in NF4 for quantized_thin_tile.h; included where that is.

using Product = Nf4Product;

template <int kColumns>
class Weights {
 public:
  Weights(const Product& p, int64_t column, int64_t end)
      : product_(p), ahead_bytes_(AheadBytes(kColumns * p.thin.depth / 2)) {
    FindColumns<kColumns>(p.codes, column, end, p.thin.depth / 2, codes_);
  }
  void Start(int64_t k, bool prefetch) {
    for (int n = 0; n < kColumns; ++n) {
      const uint8_t* codes = codes_[n] + k / 2;
      Scale(book_, MagnitudeOf(product_, map_, (codes - product_.codes) / (kNf4Block / 2)), books_[n]);
      if (prefetch) Prefetch(codes, ahead_bytes_);
    }
  }
  Sums Read(int n, int64_t k) const { return FromNf4(codes_[n] + k / 2, books_[n]); }
  /// Never called: the depth is a multiple of a block.
  Sums ReadPart(int n, int64_t k, int64_t /*count*/) const { return Read(n, k); }
  float Factor(int /*n*/) const { return 1; }

 private:
  const Product& product_;
  const float *book_ = Nf4CodeBook().data(), *map_ = DynamicMap().data();
  const uint8_t* codes_[kColumns];
  uintptr_t ahead_bytes_;
  alignas(64) float books_[kColumns][16];  ///< the code book times the magnitude of the block
};

/// The tile of quantized_thin_product.cc; included once an instruction set and format of weights, inside a
/// namespace that defines `Product`, Weights (readers of kColumns columns), kStep (elements of a vector of
/// fp32), Load, LoadPart and Add, and sees what thin_sums.h has, with the compiler switched to its
/// instructions.

/// kRows by kColumns dot products: each dequantised weight meets all rows of the tile. Columns from `end` on
/// are computed as the last one and dropped.
template <int kRows, int kColumns>
void Tile(const Product& p, int64_t row, int64_t column, int64_t end) {
  static_assert(kRows * kColumns == kSums);
  const ThinRows& thin = p.thin;
  const float* a = thin.a + row * thin.depth;
  Weights<kColumns> weights(p, column, end);
  Sums sums[kRows][kColumns];
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kColumns; ++n) sums[m][n] = Zero();
  }
  for (int64_t block = 0; block < thin.depth; block += kWeightBlock) {
    const int64_t block_end = block + kWeightBlock < thin.depth ? block + kWeightBlock : thin.depth;
    weights.Start(block, /*prefetch=*/row == 0);
    int64_t k = block;
    for (; k + kStep <= block_end; k += kStep) {
      Sums w[kColumns];
      for (int n = 0; n < kColumns; ++n) w[n] = weights.Read(n, k);
      for (int m = 0; m < kRows; ++m) {
        const Sums values = Load(a + m * thin.depth + k);
        for (int n = 0; n < kColumns; ++n) sums[m][n] = Add(sums[m][n], values, w[n]);
      }
    }
    if (k < block_end) {
      Sums w[kColumns];
      for (int n = 0; n < kColumns; ++n) w[n] = weights.ReadPart(n, k, block_end - k);
      for (int m = 0; m < kRows; ++m) {
        const Sums values = LoadPart(a + m * thin.depth + k, block_end - k);
        for (int n = 0; n < kColumns; ++n) sums[m][n] = Add(sums[m][n], values, w[n]);
      }
    }
  }
  float results[kSums];
  StoreSums(SumEach(&sums[0][0]), results);
  for (int m = 0; m < kRows; ++m) {
    float* out = thin.out + (row + m) * thin.out_stride + column;
    for (int n = 0; n < kColumns && column + n < end; ++n) {
      out[n] = results[m * kColumns + n] * weights.Factor(n);
    }
  }
}

/// As many of the rows from `row` on as tiles of kRows take.
/// \returns the first of the others
template <int kRows>
int64_t Rows(const Product& p, int64_t row, int64_t begin, int64_t end) {
  const int64_t tiles = (p.thin.rows - row) / kRows;
  for (int64_t column = begin; column < end; column += kSums / kRows) {
    for (int64_t i = 0; i < tiles; ++i) Tile<kRows, kSums / kRows>(p, row + i * kRows, column, end);
  }
  return row + tiles * kRows;
}

void Compute(const Product& p, int64_t begin, int64_t end) {
  // The columns of the tile with the fewest rows, the most columns: all its rows read the same weights.
  constexpr int64_t kBlock = kSums;
  for (int64_t block = begin; block < end; block += kBlock) {
    const int64_t block_end = block + kBlock < end ? block + kBlock : end;
    int64_t row = Rows<4>(p, 0, block, block_end);
    row = Rows<2>(p, row, block, block_end);
    Rows<1>(p, row, block, block_end);
  }
}

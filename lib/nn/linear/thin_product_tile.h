/// The tile of thin_product.cc; included once an instruction set and element type, inside a namespace that
/// defines Element, Vector (of elements), Sums (of fp32), kSums (sums in a tile, and in a Sums), kStep
/// (elements of a Vector), Zero, Load, LoadPart, Add, SumEach and StoreSums, with the compiler switched to
/// its instructions.

/// kRows by kColumns dot products: each loaded weight meets all rows of the tile. Columns from `end` on are
/// computed as the last one and dropped.
template <int kRows, int kColumns>
void Tile(const ThinProduct& p, int64_t row, int64_t column, int64_t end) {
  static_assert(kRows * kColumns == kSums);
  const Element* a = static_cast<const Element*>(p.a) + row * p.a_stride;
  const Element* w[kColumns];
  for (int n = 0; n < kColumns; ++n) {
    w[n] = static_cast<const Element*>(p.w) + (column + n < end ? column + n : end - 1) * p.w_stride;
  }
  // Rows of weights are too short for the processor to foresee the next: they are prefetched. Some kilobytes
  // ahead, in whole tiles.
  constexpr int64_t kAheadBytes = 4096;
  const auto tile_bytes = kColumns * p.w_stride * static_cast<int64_t>(sizeof(Element));
  const auto ahead_bytes = static_cast<uintptr_t>((kAheadBytes + tile_bytes - 1) / tile_bytes * tile_bytes);
  Sums sums[kRows][kColumns];
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kColumns; ++n) sums[m][n] = Zero();
  }
  int64_t k = 0;
  for (; k + kStep <= p.depth; k += kStep) {
    Vector weights[kColumns];
    for (int n = 0; n < kColumns; ++n) {
      weights[n] = Load(w[n] + k);
      if (row == 0) {
        _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(w[n] + k) + ahead_bytes),
                     _MM_HINT_T0);
      }
    }
    for (int m = 0; m < kRows; ++m) {
      const Vector values = Load(a + m * p.a_stride + k);
      for (int n = 0; n < kColumns; ++n) sums[m][n] = Add(sums[m][n], values, weights[n]);
    }
  }
  if (k < p.depth) {
    for (int m = 0; m < kRows; ++m) {
      const Vector values = LoadPart(a + m * p.a_stride + k, p.depth - k);
      for (int n = 0; n < kColumns; ++n) {
        sums[m][n] = Add(sums[m][n], values, LoadPart(w[n] + k, p.depth - k));
      }
    }
  }
  float results[kSums];
  StoreSums(SumEach(&sums[0][0]), results);
  if (p.accumulate || column + kColumns > end) {
    for (int m = 0; m < kRows; ++m) {
      for (int64_t n = 0; n < kColumns && column + n < end; ++n) {
        StoreOne(p, row + m, column + n, results[m * kColumns + n]);
      }
    }
  } else if (p.out_bf16) {
    uint16_t rounded[kSums];
    for (int i = 0; i < kSums; ++i) rounded[i] = ToBf16(results[i]);
    StoreRows<kRows, kColumns>(p, row, column, rounded);
  } else {
    StoreRows<kRows, kColumns>(p, row, column, results);
  }
}

/// As many of the rows from `row` on as tiles of kRows take.
/// \returns the first of the others
template <int kRows>
int64_t Rows(const ThinProduct& p, int64_t row, int64_t begin, int64_t end) {
  const int64_t tiles = (p.rows - row) / kRows;
  for (int64_t column = begin; column < end; column += kSums / kRows) {
    for (int64_t i = 0; i < tiles; ++i) Tile<kRows, kSums / kRows>(p, row + i * kRows, column, end);
  }
  return row + tiles * kRows;
}

void Compute(const ThinProduct& p, int64_t begin, int64_t end) {
  // The columns of the tile with the fewest rows, the most columns: all its rows read the same weights.
  constexpr int64_t kBlock = kSums;
  for (int64_t block = begin; block < end; block += kBlock) {
    const int64_t block_end = block + kBlock < end ? block + kBlock : end;
    int64_t row = Rows<4>(p, 0, block, block_end);
    row = Rows<2>(p, row, block, block_end);
    Rows<1>(p, row, block, block_end);
  }
}

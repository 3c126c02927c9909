/// The tile of thin_product.cc; included once an element type, inside a namespace that defines Element, Vector, kStep,
/// Load, LoadPart and Add, with the compiler switched to its instructions.

/// Sums of kRows by kColumns products: each loaded weight meets all rows of the tile.
template <int kRows, int kColumns>
void Tile(const ThinProduct& p, int64_t row, int64_t column) {
  const Element* a = static_cast<const Element*>(p.a) + row * p.a_stride;
  const Element* w = static_cast<const Element*>(p.w) + column * p.w_stride;
  __m512 sums[kRows][kColumns];
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kColumns; ++n) sums[m][n] = _mm512_setzero_ps();
  }
  int64_t k = 0;
  for (; k + kStep <= p.depth; k += kStep) {
    Vector weights[kColumns];
    for (int n = 0; n < kColumns; ++n) {
      weights[n] = Load(w + n * p.w_stride + k);
      // The tile after this one: rows of weights are too short for the processor to foresee the next.
      _mm_prefetch(reinterpret_cast<const char*>(w + (kColumns + n) * p.w_stride + k), _MM_HINT_T0);
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
        sums[m][n] = Add(sums[m][n], values, LoadPart(w + n * p.w_stride + k, p.depth - k));
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kColumns; ++n) Store(p, row + m, column + n, _mm512_reduce_add_ps(sums[m][n]));
  }
}

template <int kColumns>
void Columns(const ThinProduct& p, int64_t column) {
  int64_t row = 0;
  for (; row + 8 <= p.rows; row += 8) Tile<8, kColumns>(p, row, column);
  for (; row + 4 <= p.rows; row += 4) Tile<4, kColumns>(p, row, column);
  for (; row + 2 <= p.rows; row += 2) Tile<2, kColumns>(p, row, column);
  if (row < p.rows) Tile<1, kColumns>(p, row, column);
}

void Compute(const ThinProduct& p, int64_t begin, int64_t end) {
  int64_t column = begin;
  for (; column + 3 <= end; column += 3) Columns<3>(p, column);
  for (; column < end; ++column) Columns<1>(p, column);
}

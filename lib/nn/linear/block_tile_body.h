/// The tiles of block_tile.cc; included once an instruction set and kind of terms, in a namespace that has
/// kTerms (rows of the right operand in a step), kBlockSteps (of the terms that are added at once) and Add,
/// with the compiler switched to its instructions. Loops are unrolled: sums stay in registers.

/// out [kRows][16 kVectors] = left right over `steps`, or +=.
template <int kRows, int kVectors, typename Left>
void Tile(const Left& left, const float* right, int64_t steps, bool accumulate, float* out) {
  constexpr int64_t kStepsOfLine = 16;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  for (int64_t step = 0; step < steps;) {
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) left.Fetch(kRows + r, step);
    const int64_t end = step + kStepsOfLine < steps ? step + kStepsOfLine : steps;
    for (; step < end; ++step) {
      __m512 terms[kVectors][kTerms];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 2
        for (int t = 0; t < kTerms; ++t) {
          terms[v][t] = _mm512_loadu_ps(right + (step * kTerms + t) * kPanelColumns + v * 16);
        }
      }
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        int32_t bits;
        memcpy(&bits, left.At(r, step), sizeof(bits));
        const __m512i elements = _mm512_set1_epi32(bits);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] = Add(sums[r][v], elements, terms[v]);
      }
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* to = out + r * kPanelColumns + v * 16;
      _mm512_storeu_ps(to, accumulate ? _mm512_add_ps(_mm512_loadu_ps(to), sums[r][v]) : sums[r][v]);
    }
  }
}

/// As many rows from `row` on as tiles of kRows take, over all steps.
/// \returns the first of the others
template <int kRows, int kVectors, typename Left>
int64_t Tiles(const TileBlock& block, const Left& left, int64_t row) {
  for (; row + kRows <= block.rows; row += kRows) {
    for (int64_t step = 0; step < block.steps; step += kBlockSteps) {
      const int64_t steps = block.steps - step < kBlockSteps ? block.steps - step : kBlockSteps;
      Tile<kRows, kVectors>(left.From(row, step), block.right + step * kTerms * kPanelColumns, steps,
                            step > 0, block.out + row * kPanelColumns);
    }
  }
  return row;
}

/// The tile with as many sums as there are registers for, then smaller ones.
template <int kRows, int kVectors, typename Left>
void Rows(const TileBlock& block, const Left& left) {
  const int64_t row = Tiles<kRows, kVectors>(block, left, 0);
  Tiles<1, kVectors>(block, left, Tiles<4, kVectors>(block, left, row));
}

template <typename Left>
void Compute(const TileBlock& block, const Left& left) {
  switch ((block.columns + 15) / 16) {
    case 1:
      return Rows<16, 1>(block, left);
    case 2:
      return Rows<12, 2>(block, left);
    case 3:
      return Rows<8, 3>(block, left);
    default:
      return Rows<6, 4>(block, left);
  }
}

/// The tile of few_rows_product.cc; included once an instruction set and kind of operand, inside a namespace
/// that defines kTerms (rows of the right operand in a step), kElementBytes (of the left one), LoadStep (32
/// bits of one of its rows, in all lanes) and Add, with the compiler switched to its instructions. Loops are
/// unrolled so that sums stay in registers.

/// out [kRows][16 kVectors] = left right over `steps`, or +=. The next kRows rows of the left operand are
/// prefetched where `fetches`: they are too short for the processor to foresee the next.
template <int kRows, int kVectors>
void Tile(const uint8_t* left, int64_t left_stride_bytes, const float* right, int64_t steps, bool fetches,
          bool accumulate, float* out) {
  constexpr int64_t kStepsOfLine = 16, kStepBytes = 4;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  for (int64_t step = 0; step < steps;) {
    if (fetches) {
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        _mm_prefetch(
            reinterpret_cast<const char*>(left + (kRows + r) * left_stride_bytes + step * kStepBytes),
            _MM_HINT_T0);
      }
    }
    const int64_t end = step + kStepsOfLine < steps ? step + kStepsOfLine : steps;
    for (; step < end; ++step) {
      __m512 terms[kTerms][kVectors];
#pragma GCC unroll 2
      for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          terms[t][v] = _mm512_loadu_ps(right + (step * kTerms + t) * kPanelColumns + v * 16);
        }
      }
#pragma GCC unroll 32
      for (int r = 0; r < kRows; ++r) {
        const __m512i elements = LoadStep(left + r * left_stride_bytes + step * kStepBytes);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          __m512 column[kTerms];
#pragma GCC unroll 2
          for (int t = 0; t < kTerms; ++t) column[t] = terms[t][v];
          sums[r][v] = Add(sums[r][v], elements, column);
        }
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

/// As many rows from `row` on as tiles of kRows take, over all terms: kBlockDepth at once.
/// \returns the first of the others
template <int kRows, int kVectors>
int64_t Tiles(const FewRowsBlock& block, int64_t row) {
  constexpr int64_t kBlockSteps = kBlockDepth * kElementBytes / 4;
  for (; row + kRows <= block.rows; row += kRows) {
    for (int64_t step = 0; step < block.steps; step += kBlockSteps) {
      Tile<kRows, kVectors>(block.left + row * block.left_stride_bytes + step * 4, block.left_stride_bytes,
                            block.right + step * kTerms * kPanelColumns,
                            block.steps - step < kBlockSteps ? block.steps - step : kBlockSteps,
                            block.fetches, step > 0, block.out + row * kPanelColumns);
    }
  }
  return row;
}

/// The tile with as many sums as there are registers for, then smaller ones.
template <int kRows, int kVectors>
void Block(const FewRowsBlock& block) {
  const int64_t row = Tiles<kRows, kVectors>(block, 0);
  Tiles<1, kVectors>(block, Tiles<4, kVectors>(block, row));
}

void Compute(const FewRowsBlock& block) {
  switch ((block.columns + 15) / 16) {
    case 1:
      return Block<16, 1>(block);
    case 2:
      return Block<12, 2>(block);
    case 3:
      return Block<8, 3>(block);
    default:
      return Block<6, 4>(block);
  }
}

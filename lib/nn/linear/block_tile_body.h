/// The tiles of block_tile.cc; included once an instruction set and kind of terms, in a namespace that has
/// kTerms (rows of the right operand in a step), kBlockSteps (of the terms that are added at once) and Add,
/// with the compiler switched to its instructions. Loops are unrolled: sums stay in registers.

/// out [kRows][16 kVectors] = left right over `steps`, and what is in `former` of those before, or null.
/// \param soon is multiplied soon, or null: this tile's part of it is fetched
template <int kRows, int kVectors, typename Left>
void Tile(const Left& left, const float* right, int64_t steps, const float* soon, const float* former,
          const TileResult& out) {
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
    if (soon != nullptr) soon = FetchLines(soon);
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
      float* const to = out.data + r * out.stride + v * 16;
      __m512 sum = sums[r][v];
      if (former != nullptr) sum = _mm512_add_ps(_mm512_loadu_ps(former + r * kPanelColumns + v * 16), sum);
      _mm512_storeu_ps(to, out.adds ? _mm512_add_ps(_mm512_loadu_ps(to), sum) : sum);
    }
  }
}

/// Of a depth, as many rows from `row` on as tiles of kRows take.
/// \returns the first of the others
template <int kRows, int kVectors, typename Left>
int64_t Tiles(const TileBlock& block, const Left& left, int64_t step, int64_t row) {
  const int64_t steps = block.steps - step < kBlockSteps ? block.steps - step : kBlockSteps;
  const bool is_last = step + steps == block.steps;
  const float* const right = block.right + step * kTerms * kPanelColumns;
  const float* const soon = is_last ? block.soon : right + steps * kTerms * kPanelColumns;
  for (; row + kRows <= block.rows; row += kRows) {
    const float* const part = soon == nullptr ? nullptr : soon + PartOfTile(row / kRows, steps);
    float* const sums = block.sums + row * kPanelColumns;
    TileResult out = {.data = sums, .stride = kPanelColumns};
    if (is_last && block.result.data != nullptr) {
      out = block.result;
      out.data += row * out.stride;
    }
    Tile<kRows, kVectors>(left.From(row, step), right, steps, part, step > 0 ? sums : nullptr, out);
  }
  return row;
}

/// The tile with as many sums as there are registers for, then smaller ones: of all rows one depth after the
/// other, so that they find its part of the right operand in the second-level cache.
template <int kRows, int kVectors, typename Left>
void Rows(const TileBlock& block, const Left& left) {
  for (int64_t step = 0; step < block.steps; step += kBlockSteps) {
    const int64_t row = Tiles<kRows, kVectors>(block, left, step, 0);
    Tiles<1, kVectors>(block, left, step, Tiles<4, kVectors>(block, left, step, row));
  }
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

/// The bodies of the kernels that lay out the operands and results of GEMMs; a part of
/// kernels_body.h, included once an instruction set inside its namespace.

typedef uint32_t Lanes __attribute__((vector_size(32)));
constexpr int64_t kLanes = 8;

// Vectors are passed by pointer: how they are returned differs between instruction sets.
inline void LoadLanes(const uint32_t* from, Lanes* lanes) {
  memcpy(lanes, from, sizeof(*lanes));
}

/// Two rows of bf16 as the pairs that dot-product instructions take: the first row in the low halves.
inline void LoadPairs(const uint16_t* low_row, const uint16_t* high_row, Lanes* pairs) {
  typedef uint16_t Halves __attribute__((vector_size(16)));
  Halves low, high;
  memcpy(&low, low_row, sizeof(low));
  memcpy(&high, high_row, sizeof(high));
  *pairs = __builtin_convertvector(low, Lanes) | __builtin_convertvector(high, Lanes) << 16;
}

/// out[c * out_stride + r] = rows[r][c].
inline void StoreTransposed(const Lanes* rows, uint32_t* out, int64_t out_stride) {
  Lanes pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    quads[i] = __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    quads[i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    quads[i + 2] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    quads[i + 3] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    const Lanes low = __builtin_shufflevector(quads[i], quads[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    const Lanes high = __builtin_shufflevector(quads[i], quads[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    memcpy(out + i * out_stride, &low, sizeof(low));
    memcpy(out + (i + 4) * out_stride, &high, sizeof(high));
  }
}

/// Elements of bf16 as fp32.
inline void LoadLanes(const uint16_t* from, Lanes* lanes) {
  typedef uint16_t Halves __attribute__((vector_size(16)));
  Halves halves;
  memcpy(&halves, from, sizeof(halves));
  *lanes = __builtin_convertvector(halves, Lanes) << 16;
}
inline uint32_t Wide(uint32_t element) {
  return element;
}
inline uint32_t Wide(uint16_t element) {
  return static_cast<uint32_t>(element) << 16;
}

template <typename Element>
inline void TransposeElements(const Element* in, int64_t in_stride, int64_t rows, int64_t columns,
                              uint32_t* out, int64_t out_stride) {
  const int64_t whole_rows = rows - rows % kLanes, whole_columns = columns - columns % kLanes;
  for (int64_t r = 0; r < whole_rows; r += kLanes) {
    for (int64_t c = 0; c < whole_columns; c += kLanes) {
      Lanes block[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) LoadLanes(in + (r + i) * in_stride + c, &block[i]);
      StoreTransposed(block, out + c * out_stride + r, out_stride);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      Element element;  // a pair of bf16 may lie at any even address
      memcpy(&element, in + r * in_stride + c, sizeof(element));
      out[c * out_stride + r] = Wide(element);
    }
  }
}

void Transpose(const uint32_t* in, int64_t in_stride, int64_t rows, int64_t columns, uint32_t* out,
               int64_t out_stride) {
  TransposeElements(in, in_stride, rows, columns, out, out_stride);
}

void TransposeWidened(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t columns, uint32_t* out,
                      int64_t out_stride) {
  TransposeElements(in, in_stride, rows, columns, out, out_stride);
}

void Widen(const uint16_t* in, int64_t size, float* out) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const uint32_t bits = static_cast<uint32_t>(in[i]) << 16;
    memcpy(out + i, &bits, sizeof(bits));
  }
}

inline uint32_t Pair(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t row, int64_t column) {
  const uint32_t low = in[row * in_stride + column];
  return row + 1 < rows ? low | static_cast<uint32_t>(in[(row + 1) * in_stride + column]) << 16 : low;
}

void InterleavePairs(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t columns, uint32_t* out,
                     int64_t out_stride) {
  constexpr int64_t kRowsAhead = 32;  // parts of rows, a stride apart, are nothing that a processor foresees
  for (int64_t r = 0; r < rows; r += 2) {
    uint32_t* to = out + r / 2 * out_stride;
    for (int64_t c = 0; c < columns; c += 32) {
      __builtin_prefetch(in + (r + kRowsAhead) * in_stride + c);
      __builtin_prefetch(in + (r + kRowsAhead + 1) * in_stride + c);
    }
    int64_t c = 0;
    if (r + 1 < rows) {
      for (; c + kLanes <= columns; c += kLanes) {
        Lanes pairs;
        LoadPairs(in + r * in_stride + c, in + (r + 1) * in_stride + c, &pairs);
        memcpy(to + c, &pairs, sizeof(pairs));
      }
    }
    for (; c < columns; ++c) to[c] = Pair(in, in_stride, rows, r, c);
  }
}

void TransposePairs(const uint16_t* in, int64_t in_stride, int64_t rows, int64_t columns, uint32_t* out,
                    int64_t out_stride) {
  const int64_t whole_rows = rows - rows % (2 * kLanes), whole_columns = columns - columns % kLanes;
  for (int64_t r = 0; r < whole_rows; r += 2 * kLanes) {
    for (int64_t c = 0; c < whole_columns; c += kLanes) {
      Lanes block[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        const uint16_t* pair = in + (r + 2 * i) * in_stride + c;
        LoadPairs(pair, pair + in_stride, &block[i]);
      }
      StoreTransposed(block, out + c * out_stride + r / 2, out_stride);
    }
  }
  for (int64_t r = 0; r < rows; r += 2) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      out[c * out_stride + r / 2] = Pair(in, in_stride, rows, r, c);
    }
  }
}

void StoreTile(Codec codec, const float* tile, int64_t tile_stride, int64_t rows, int64_t columns, void* out,
               int64_t out_stride, bool accumulate) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = tile + r * tile_stride;
      auto* to = static_cast<typename C::Element*>(out) + r * out_stride;
      if (accumulate) {
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) to[c] = C::Store(C::Load(to[c]) + from[c]);
      } else {
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c) to[c] = C::Store(from[c]);
      }
    }
  });
}

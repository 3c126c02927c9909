/// The body of the kernel that reads a cache of keys and values for one new token; a part of kernels_body.h,
/// included once an instruction set inside its namespace. It is bound by memory where the cache is long: each
/// element is read once a head, straight into registers.

typedef float Floats __attribute__((vector_size(TRAINWRIGHT_VECTOR_BYTES)));
constexpr int64_t kFloats = TRAINWRIGHT_VECTOR_BYTES / sizeof(float);

// What a cache holds went through C::Store: nothing is left to round.
[[gnu::always_inline]] inline void LoadFloats(const float* from, Floats* values) {
  memcpy(values, from, sizeof(*values));
}
[[gnu::always_inline]] inline void LoadFloats(const uint16_t* from, Floats* values) {
  typedef uint16_t Halves __attribute__((vector_size(TRAINWRIGHT_VECTOR_BYTES / 2)));
  typedef uint32_t Bits __attribute__((vector_size(TRAINWRIGHT_VECTOR_BYTES)));
  Halves halves;
  memcpy(&halves, from, sizeof(halves));
  const Bits bits = __builtin_convertvector(halves, Bits) << 16;
  memcpy(values, &bits, sizeof(*values));
}

template <int... kLane>
struct LaneList {};
template <int kCount, int... kLane>
struct LaneListOf : LaneListOf<kCount - 1, kCount - 1, kLane...> {};
template <int... kLane>
struct LaneListOf<0, kLane...> {
  using Type = LaneList<kLane...>;
};

/// Of groups of kGroup lanes, first those of a, then those of b: each one's upper half added to its lower.
template <int kGroup, int... kLane>
[[gnu::always_inline]] inline Floats AddHalves(const Floats& a, const Floats& b,
                                               LaneList<kLane...> /*lanes*/) {
  constexpr int kHalf = kGroup / 2;
  return __builtin_shufflevector(a, b, (kLane / kHalf * kGroup + kLane % kHalf)...) +
         __builtin_shufflevector(a, b, (kLane / kHalf * kGroup + kLane % kHalf + kHalf)...);
}

/// sums[0] = the sums of the lanes of each of kFloats vectors, by halves.
template <int kGroup = kFloats>
[[gnu::always_inline]] inline void SumLanes(Floats* sums) {
#pragma GCC unroll 16
  for (int i = 0; i < kGroup / 2; ++i) {
    sums[i] = AddHalves<kGroup>(sums[2 * i], sums[2 * i + 1], typename LaneListOf<kFloats>::Type{});
  }
  if constexpr (kGroup > 2) SumLanes<kGroup / 2>(sums);
}

/// Asks for what is read soon: a head's keys, its values, then the next head's keys. The parts of a head are
/// too short for a processor to foresee where the next one lies.
template <typename Element>
struct CacheAhead {
  /// Of the rows [row, row + rows) of keys and values one after the other, those that are kAheadBytes later.
  [[gnu::always_inline]] inline void Fetch(int64_t row, int64_t rows) const {
    row += kAheadBytes / static_cast<int64_t>(sizeof(Element)) / size;
    const Element* from = keys + row * size;
    if (row >= 2 * length) {
      from = next_keys + (row - 2 * length) * size;
    } else if (row >= length) {
      from = values + (row - length) * size;
    }
    const char* bytes = reinterpret_cast<const char*>(from);
    for (int64_t at = 0; at < rows * size * static_cast<int64_t>(sizeof(Element)); at += 64) {
      __builtin_prefetch(bytes + at);
    }
  }

  static constexpr int64_t kAheadBytes = 4096;
  const Element *keys, *values, *next_keys;
  int64_t size, length;
};

/// scores[j] = query . keys[first + j] for kFloats keys where kAll, else for those that are left.
template <bool kAll, typename C>
[[gnu::always_inline]] inline void Scores(const float* query, const CacheAhead<typename C::Element>& cache,
                                          int64_t first, float* scores) {
  const int64_t size = cache.size, count = kAll ? kFloats : cache.length - first;
  const auto* keys = cache.keys + first * size;
  const auto place = [&](int64_t j) { return (kAll ? j : Smaller(j, count - 1)) * size; };
  // Rows are asked for vector by vector of these ones: all at once would be more than can be on its way.
  const int64_t rows_ahead = (kFloats * kFloats + size - 1) / size;
  Floats sums[kFloats];
#pragma GCC unroll 16
  for (int64_t j = 0; j < kFloats; ++j) sums[j] = Floats{};
  int64_t k = 0;
  for (int64_t ahead = first; k + kFloats <= size; k += kFloats, ahead += rows_ahead) {
    cache.Fetch(ahead, rows_ahead);
    Floats q;
    LoadFloats(query + k, &q);
#pragma GCC unroll 16
    for (int64_t j = 0; j < kFloats; ++j) {
      Floats key;
      LoadFloats(keys + place(j) + k, &key);
      sums[j] += q * key;
    }
  }
  SumLanes(sums);
  memcpy(scores, &sums[0], static_cast<size_t>(count) * sizeof(float));
  for (; k < size; ++k) {
    for (int64_t j = 0; j < count; ++j) scores[j] += query[k] * C::Load(keys[j * size + k]);
  }
}

/// out = sum_j weights[j] values[j], kVectors vectors of it.
/// \param ahead null where an earlier call has seen the rows
template <int kVectors, typename C>
[[gnu::always_inline]] inline void WeightedSum(const float* weights, const typename C::Element* values,
                                               int64_t size, int64_t length,
                                               const CacheAhead<typename C::Element>* ahead, float* out) {
  Floats sums[kVectors], more[kVectors];  // two chains of additions hide each other's latency
  for (int i = 0; i < kVectors; ++i) sums[i] = more[i] = Floats{};
  int64_t j = 0;
  for (; j + 2 <= length; j += 2) {
    if (ahead != nullptr) ahead->Fetch(length + j, 2);
    for (int i = 0; i < kVectors; ++i) {
      Floats first, second;
      LoadFloats(values + j * size + i * kFloats, &first);
      LoadFloats(values + (j + 1) * size + i * kFloats, &second);
      sums[i] += weights[j] * first;
      more[i] += weights[j + 1] * second;
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    if (j < length) {
      Floats last;
      LoadFloats(values + j * size + i * kFloats, &last);
      sums[i] += weights[j] * last;
    }
    sums[i] += more[i];
    memcpy(out + i * kFloats, &sums[i], sizeof(sums[i]));
  }
}

void AttentionDecode(Codec codec, const void* query_hk, const void* keys_gmk, const void* values_gmk,
                     int64_t head_stride, int64_t length, const AttentionShape& shape, void* out_hk,
                     float* scratch, int64_t begin, int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    using Element = typename C::Element;
    const int64_t size = shape.head_dim;
    const int64_t heads_a_group = shape.num_heads / shape.num_kv_heads;
    const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(size));
    float *query = scratch, *sum = query + size, *scores = sum + size;
    for (int64_t head = begin; head < end; ++head) {
      const auto* key = static_cast<const Element*>(keys_gmk) + head / heads_a_group * head_stride;
      const auto* value = static_cast<const Element*>(values_gmk) + head / heads_a_group * head_stride;
      LoadRow<C>(static_cast<const Element*>(query_hk) + head * size, query, size);
      const int64_t next = Smaller(head + 1, end - 1) / heads_a_group * head_stride;
      const CacheAhead<Element> ahead{key, value, static_cast<const Element*>(keys_gmk) + next, size, length};
      int64_t j = 0;
      for (; j + kFloats <= length; j += kFloats) Scores<true, C>(query, ahead, j, scores + j);
      if (j < length) Scores<false, C>(query, ahead, j, scores + j);
      float largest = -HUGE_VALF, total = 0;
#pragma omp simd reduction(max : largest)
      for (int64_t i = 0; i < length; ++i) largest = Larger(largest, scores[i]);
#pragma omp simd reduction(+ : total)
      for (int64_t i = 0; i < length; ++i) {
        scores[i] = Exp(scale * (scores[i] - largest));
        total += scores[i];
      }
      const float share = 1 / total;
#pragma omp simd
      for (int64_t i = 0; i < length; ++i) scores[i] *= share;
      int64_t k = 0;
      for (; k + 4 * kFloats <= size; k += 4 * kFloats) {
        WeightedSum<4, C>(scores, value + k, size, length, k == 0 ? &ahead : nullptr, sum + k);
      }
      for (; k + kFloats <= size; k += kFloats) {
        WeightedSum<1, C>(scores, value + k, size, length, k == 0 ? &ahead : nullptr, sum + k);
      }
      for (; k < size; ++k) {
        sum[k] = 0;
        for (int64_t i = 0; i < length; ++i) sum[k] += scores[i] * C::Load(value[i * size + k]);
      }
      StoreRow<C>(sum, static_cast<Element*>(out_hk) + head * size, size);
    }
  });
}

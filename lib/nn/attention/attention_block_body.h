/// The bodies of the element-wise kernels of block_attention.cc; a part of kernels_body.h, included once an
/// instruction set inside its namespace.

void AttentionSoftmax(Codec codec, const float* scores, int64_t stride, int64_t rows, int64_t columns,
                      int64_t first_column, int64_t seen_columns, int64_t end, float scale, float* largest,
                      float* total, float* sums, int64_t sum_columns, void* probabilities) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t r = 0; r < rows; ++r) {
      const float* x = scores + r * stride;
      auto* p = static_cast<typename C::Element*>(probabilities) + r * stride;
      const int64_t seen = Smaller(end, seen_columns + r);
      const int64_t first = Smaller(columns, Larger(int64_t{0}, first_column + r));
#pragma omp simd
      for (int64_t c = 0; c < first; ++c) p[c] = C::Store(0.0f);
      if (first >= seen) {
#pragma omp simd
        for (int64_t c = first; c < columns; ++c) p[c] = C::Store(0.0f);
        continue;
      }
      float top = x[first];
#pragma omp simd reduction(max : top)
      for (int64_t c = first; c < seen; ++c) top = Larger(top, x[c]);
      const float before = largest[r];
      top = Larger(before, scale * top);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t c = first; c < seen; ++c) {
        const float value = Exp(scale * x[c] - top);
        p[c] = C::Store(value);
        sum += value;
      }
#pragma omp simd
      for (int64_t c = seen; c < columns; ++c) p[c] = C::Store(0.0f);
      const float shrink = Exp(before - top);
      largest[r] = top;
      total[r] = total[r] * shrink + sum;
      float* s = sums + r * sum_columns;
#pragma omp simd
      for (int64_t c = 0; c < sum_columns; ++c) s[c] *= shrink;
    }
  });
}

void AttentionGradient(Codec codec, const float* scores, const float* d_probabilities, int64_t stride,
                       int64_t rows, int64_t columns, int64_t first_column, int64_t end, float scale,
                       const float* lse, const float* delta, void* probabilities, void* d_scores) {
  WithCodec(codec, [&]<typename C>() {
    using Element = typename C::Element;
    for (int64_t r = 0; r < rows; ++r) {
      const float *x = scores + r * stride, *d = d_probabilities + r * stride;
      Element *p = static_cast<Element*>(probabilities) + r * stride,
              *g = static_cast<Element*>(d_scores) + r * stride;
      const int64_t first = Smaller(columns, Larger(int64_t{0}, first_column + r));
      const int64_t last = Larger(first, Smaller(columns, end + r));
#pragma omp simd
      for (int64_t c = 0; c < first; ++c) {
        p[c] = C::Store(0.0f);
        g[c] = C::Store(0.0f);
      }
#pragma omp simd
      for (int64_t c = last; c < columns; ++c) {
        p[c] = C::Store(0.0f);
        g[c] = C::Store(0.0f);
      }
#pragma omp simd
      for (int64_t c = first; c < last; ++c) {
        const float probability = Exp(scale * x[c] - lse[c]);
        p[c] = C::Store(probability);
        g[c] = C::Store(scale * probability * (d[c] - delta[c]));
      }
    }
  });
}

void RowDots(Codec codec, const void* a, const void* b, int64_t stride, int64_t columns, int64_t rows,
             float* dots) {
  WithCodec(codec, [&]<typename C>() {
    const auto *x = static_cast<const typename C::Element*>(a),
               *y = static_cast<const typename C::Element*>(b);
    for (int64_t r = 0; r < rows; ++r) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t c = 0; c < columns; ++c) sum += C::Load(x[r * stride + c]) * C::Load(y[r * stride + c]);
      dots[r] = sum;
    }
  });
}

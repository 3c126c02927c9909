/// The bodies of the kernels of a diagonal scan, for one chunk and a range of channels; a part of
/// kernels_body.h, included once an instruction set inside its namespace. A channel is a lane, rows follow
/// one another, and the state stays in the first cache: enough channels are under way to hide that a row
/// waits for the one before.

/// What a row's state is multiplied by, or its conjugate. Numbers come and go in two parts: a structure of
/// both keeps the compiler from taking channels side by side.
template <bool kSelective, bool kConjugate>
struct RowDecay {
  const float *re, *im, *low_re, *low_im;

  RowDecay(const ScanChunk& chunk, int64_t row)
      : re(kSelective ? chunk.decay_nz + row * 2 * chunk.channels : chunk.high_z),
        im(re + chunk.channels),
        low_re(chunk.low_z),
        low_im(kSelective ? nullptr : chunk.low_z + chunk.channels) {}

  /// The real part of sum + decay x; what is small is added first.
  [[gnu::always_inline]] float Re(int64_t i, float x_re, float x_im, float sum) const {
    if constexpr (!kSelective) sum = (sum + low_re[i] * x_re) - Sign(low_im[i]) * x_im;
    return (sum + re[i] * x_re) - Sign(im[i]) * x_im;
  }
  /// Its imaginary part.
  [[gnu::always_inline]] float Im(int64_t i, float x_re, float x_im, float sum) const {
    if constexpr (!kSelective) sum = (sum + low_re[i] * x_im) + Sign(low_im[i]) * x_re;
    return (sum + re[i] * x_im) + Sign(im[i]) * x_re;
  }

 private:
  [[gnu::always_inline]] static float Sign(float imaginary) { return kConjugate ? -imaginary : imaginary; }
};

/// product_z *= decay.
template <typename Decay>
[[gnu::always_inline]] inline void MultiplyBy(const Decay& decay, int64_t channels, float* product_z,
                                              int64_t begin, int64_t end) {
  float* imaginary = product_z + channels;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float re = product_z[i], im = imaginary[i];
    product_z[i] = decay.Re(i, re, im, 0.0f);
    imaginary[i] = decay.Im(i, re, im, 0.0f);
  }
}

inline void SetToOne(int64_t channels, float* product_z, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    product_z[i] = 1;
    product_z[channels + i] = 0;
  }
}

/// Calls function.operator()<C, kSelective>().
template <typename Function>
inline void WithDecay(Codec codec, const ScanChunk& chunk, const Function& function) {
  WithCodec(codec, [&]<typename C>() {
    if (chunk.decay_nz != nullptr) {
      function.template operator()<C, true>();
    } else {
      function.template operator()<C, false>();
    }
  });
}

void ScanEnd(Codec codec, const ScanChunk& chunk, const void* b_nz, float* state_z, float* product_z,
             int64_t begin, int64_t end) {
  WithDecay(codec, chunk, [&]<typename C, bool kSelective>() {
    const int64_t channels = chunk.channels;
    float* imaginary = state_z + channels;
    if constexpr (kSelective) SetToOne(channels, product_z, begin, end);
    for (int64_t row = chunk.first; row < chunk.first + chunk.rows; ++row) {
      const RowDecay<kSelective, false> decay(chunk, row);
      const auto* b = static_cast<const typename C::Element*>(b_nz) + row * 2 * channels;
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float re = state_z[i], im = imaginary[i];
        state_z[i] = decay.Re(i, re, im, C::Load(b[i]));
        imaginary[i] = decay.Im(i, re, im, C::Load(b[channels + i]));
      }
      if constexpr (kSelective) MultiplyBy(decay, channels, product_z, begin, end);
    }
  });
}

void ScanRows(Codec codec, const ScanChunk& chunk, const void* b_nz, float* state_z, void* c_nz,
              int64_t begin, int64_t end) {
  WithDecay(codec, chunk, [&]<typename C, bool kSelective>() {
    const int64_t channels = chunk.channels;
    float* imaginary = state_z + channels;
    for (int64_t row = chunk.first; row < chunk.first + chunk.rows; ++row) {
      const RowDecay<kSelective, false> decay(chunk, row);
      const auto* b = static_cast<const typename C::Element*>(b_nz) + row * 2 * channels;
      auto* out = static_cast<typename C::Element*>(c_nz) + row * 2 * channels;
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float re = state_z[i], im = imaginary[i];
        const float c_re = decay.Re(i, re, im, C::Load(b[i])),
                    c_im = decay.Im(i, re, im, C::Load(b[channels + i]));
        state_z[i] = c_re;
        imaginary[i] = c_im;
        out[i] = C::Store(c_re);
        out[channels + i] = C::Store(c_im);
      }
    }
  });
}

void ScanCarry(const float* high_z, const float* low_z, int64_t channels, const float* state_z, float* end_z,
               int64_t begin, int64_t end) {
  const auto carry = [&](const auto& power) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float re = state_z[i], im = state_z[channels + i];
      end_z[i] = power.Re(i, re, im, end_z[i]);
      end_z[channels + i] = power.Im(i, re, im, end_z[channels + i]);
    }
  };
  const ScanChunk power{.channels = channels,
                        .decay_nz = low_z == nullptr ? high_z : nullptr,
                        .high_z = high_z,
                        .low_z = low_z};
  if (low_z == nullptr) {
    carry(RowDecay<true, false>(power, 0));
  } else {
    carry(RowDecay<false, false>(power, 0));
  }
}

void ScanBackwardEnd(Codec codec, const ScanChunk& chunk, const void* d_c_nz, float* carry_z,
                     float* product_z, int64_t begin, int64_t end) {
  WithDecay(codec, chunk, [&]<typename C, bool kSelective>() {
    const int64_t channels = chunk.channels;
    float* imaginary = carry_z + channels;
    if constexpr (kSelective) SetToOne(channels, product_z, begin, end);
    for (int64_t row = chunk.first + chunk.rows; row-- > chunk.first;) {
      const RowDecay<kSelective, true> decay(chunk, row);
      const auto* g = static_cast<const typename C::Element*>(d_c_nz) + row * 2 * channels;
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float re = carry_z[i] + C::Load(g[i]), im = imaginary[i] + C::Load(g[channels + i]);
        carry_z[i] = decay.Re(i, re, im, 0.0f);
        imaginary[i] = decay.Im(i, re, im, 0.0f);
      }
      if constexpr (kSelective) MultiplyBy(decay, channels, product_z, begin, end);
    }
  });
}

/// The states before the rows of a chunk, [rows, 2, end - begin].
template <typename C, bool kSelective>
inline void StatesBeforeRows(const ScanChunk& chunk, const ScanChunkBackward& of, float* states,
                             int64_t begin, int64_t end) {
  const int64_t channels = chunk.channels, width = end - begin;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    states[i] = of.state_z[begin + i];
    states[width + i] = of.state_z[channels + begin + i];
  }
  for (int64_t row = chunk.first; row + 1 < chunk.first + chunk.rows; ++row) {
    const RowDecay<kSelective, false> decay(chunk, row);
    const auto* b = static_cast<const typename C::Element*>(of.b_nz) + row * 2 * channels + begin;
    const float* state = states + (row - chunk.first) * 2 * width;
    float* next = states + (row - chunk.first + 1) * 2 * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const float re = state[i], im = state[width + i];
      next[i] = decay.Re(begin + i, re, im, C::Load(b[i]));
      next[width + i] = decay.Im(begin + i, re, im, C::Load(b[channels + i]));
    }
  }
}

/// Adds the fp32 sums [2, end - begin] to the fp64 ones [2 channels], and clears them.
inline void AddToDoubles(float* sums, int64_t channels, double* totals_z, int64_t begin, int64_t end) {
  const int64_t width = end - begin;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    totals_z[begin + i] += static_cast<double>(sums[i]);
    totals_z[channels + begin + i] += static_cast<double>(sums[width + i]);
    sums[i] = sums[width + i] = 0;
  }
}

/// One row backward: delta, the state's gradient before the row, and the decay's gradient: stored for a
/// selective one, added to `sums` else.
template <typename C, bool kSelective, bool kDecay>
inline void ScanRowBackward(const ScanChunk& chunk, const ScanChunkBackward& of, int64_t row,
                            const float* before, float* sums, int64_t begin, int64_t end) {
  const int64_t channels = chunk.channels, width = end - begin, at = row * 2 * channels + begin;
  const RowDecay<kSelective, true> decay(chunk, row);
  const auto* g = static_cast<const typename C::Element*>(of.d_c_nz) + at;
  auto* d_b = static_cast<typename C::Element*>(of.d_b_nz) + at;
  float* d_decay = kSelective && kDecay ? of.d_decay_nz + at : sums;
  const int64_t d_stride = kSelective ? channels : width;
  float* carry = of.carry_z + begin;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const float re = carry[i] + C::Load(g[i]), im = carry[channels + i] + C::Load(g[channels + i]);
    carry[i] = decay.Re(begin + i, re, im, 0.0f);
    carry[channels + i] = decay.Im(begin + i, re, im, 0.0f);
    d_b[i] = C::Store(re);
    d_b[channels + i] = C::Store(im);
    if constexpr (kDecay) {
      const float c_re = before[i], c_im = before[width + i];
      const float d_re = re * c_re + im * c_im, d_im = im * c_re - re * c_im;
      if constexpr (kSelective) {
        d_decay[i] = d_re;
        d_decay[d_stride + i] = d_im;
      } else {
        d_decay[i] += d_re;
        d_decay[d_stride + i] += d_im;
      }
    }
  }
}

void ScanBackwardRows(Codec codec, const ScanChunk& chunk, const ScanChunkBackward& of, int64_t begin,
                      int64_t end) {
  constexpr int64_t kRowsOfFp32Sums = 64;
  WithDecay(codec, chunk, [&]<typename C, bool kSelective>() {
    const int64_t width = end - begin, last = chunk.first + chunk.rows - 1;
    if (of.d_decay_z == nullptr && of.d_decay_nz == nullptr) {
      for (int64_t row = last; row >= chunk.first; --row) {
        ScanRowBackward<C, kSelective, false>(chunk, of, row, nullptr, nullptr, begin, end);
      }
      return;
    }
    float* states = of.scratch;
    float* sums = states + chunk.rows * 2 * width;
    StatesBeforeRows<C, kSelective>(chunk, of, states, begin, end);
    Clear(sums, 2 * width);
    for (int64_t row = last; row >= chunk.first; --row) {
      const float* before = states + (row - chunk.first) * 2 * width;
      ScanRowBackward<C, kSelective, true>(chunk, of, row, before, sums, begin, end);
      if constexpr (!kSelective) {
        const bool full = (last - row) % kRowsOfFp32Sums == kRowsOfFp32Sums - 1;
        if (full || row == chunk.first) AddToDoubles(sums, chunk.channels, of.d_decay_z, begin, end);
      }
    }
  });
}

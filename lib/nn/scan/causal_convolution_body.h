/// The bodies of the kernels of a causal convolution with silu; a part of kernels_body.h, included once an
/// instruction set inside its namespace. Channels are lanes, in groups whose sums stay in the first cache;
/// the rows that the taps read do so, too.

constexpr int64_t kConvolutionLanes = 256;

/// Calls function(from, lanes) for all channels.
template <typename Function>
inline void ForEachLaneGroup(int64_t width, const Function& function) {
  for (int64_t from = 0; from < width; from += kConvolutionLanes) {
    function(from, Smaller(width - from, kConvolutionLanes));
  }
}

/// p = sum over taps of the kernel times what is that many rows before x, for channels from `from` on.
template <typename C>
inline void ConvolveLanes(const ConvolutionWeights& of, const typename C::Element* x, int64_t from,
                          int64_t lanes, float* p) {
  const float* kernel = of.kernel_tz + from;
  const auto* in = x + from;
#pragma omp simd
  for (int64_t i = 0; i < lanes; ++i) p[i] = kernel[i] * C::Load(in[i]);
  for (int64_t tap = 1; tap < of.taps; ++tap) {
    kernel += of.width;
    in -= of.width;
#pragma omp simd
    for (int64_t i = 0; i < lanes; ++i) p[i] += kernel[i] * C::Load(in[i]);
  }
}

void Convolve(Codec codec, const ConvolutionWeights& of, const void* x, int64_t rows, void* out) {
  WithCodec(codec, [&]<typename C>() {
    float p[kConvolutionLanes];
    for (int64_t row = 0; row < rows; ++row) {
      const auto* in = static_cast<const typename C::Element*>(x) + row * of.width;
      ForEachLaneGroup(of.width, [&](int64_t from, int64_t lanes) {
        ConvolveLanes<C>(of, in, from, lanes, p);
        const float* scale = of.scale_z + from;
        auto* result = static_cast<typename C::Element*>(out) + row * of.width + from;
#pragma omp simd
        for (int64_t i = 0; i < lanes; ++i) result[i] = C::Store(scale[i] * SiluUnit::Value(p[i]));
      });
    }
  });
}

void ConvolutionBackward(Codec codec, const ConvolutionWeights& of, const void* x, const void* d_out,
                         int64_t rows, float* d_p, float* d_kernel_tz, float* d_scale_z) {
  WithCodec(codec, [&]<typename C>() {
    float p[kConvolutionLanes];
    for (int64_t row = 0; row < rows; ++row) {
      const auto* in = static_cast<const typename C::Element*>(x) + row * of.width;
      ForEachLaneGroup(of.width, [&](int64_t from, int64_t lanes) {
        ConvolveLanes<C>(of, in, from, lanes, p);
        const float* scale = of.scale_z + from;
        const auto* d = static_cast<const typename C::Element*>(d_out) + row * of.width + from;
        float* d_sum = d_p + row * of.width + from;
#pragma omp simd
        for (int64_t i = 0; i < lanes; ++i) {
          const float sigmoid = Sigmoid(p[i]);
          d_sum[i] = C::Load(d[i]) * scale[i] * SiluUnit::Slope(p[i], sigmoid);
          p[i] *= sigmoid;  // silu
        }
        if (d_scale_z != nullptr) {
          float* d_scale = d_scale_z + from;
#pragma omp simd
          for (int64_t i = 0; i < lanes; ++i) d_scale[i] += C::Load(d[i]) * p[i];
        }
        for (int64_t tap = 0; d_kernel_tz != nullptr && tap < of.taps; ++tap) {
          float* d_kernel = d_kernel_tz + tap * of.width + from;
          const auto* tapped = in + from - tap * of.width;
#pragma omp simd
          for (int64_t i = 0; i < lanes; ++i) d_kernel[i] += d_sum[i] * C::Load(tapped[i]);
        }
      });
    }
  });
}

void ConvolutionInputBackward(Codec codec, const ConvolutionWeights& of, const float* d_p, int64_t rows,
                              void* d_x) {
  WithCodec(codec, [&]<typename C>() {
    float sums[kConvolutionLanes];
    for (int64_t row = 0; row < rows; ++row) {
      ForEachLaneGroup(of.width, [&](int64_t from, int64_t lanes) {
        const float *kernel = of.kernel_tz + from, *d = d_p + row * of.width + from;
#pragma omp simd
        for (int64_t i = 0; i < lanes; ++i) sums[i] = kernel[i] * d[i];
        for (int64_t tap = 1; tap < of.taps; ++tap) {
          kernel += of.width;
          d += of.width;
#pragma omp simd
          for (int64_t i = 0; i < lanes; ++i) sums[i] += kernel[i] * d[i];
        }
        StoreRow<C>(sums, static_cast<typename C::Element*>(d_x) + row * of.width + from, lanes);
      });
    }
  });
}

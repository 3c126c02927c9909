/// The bodies of the kernels that scale the columns of rows; a part of kernels_body.h, included once an
/// instruction set inside its namespace.

void ScaleColumns(Codec codec, const void* x, const float* scale, int64_t width, void* out, int64_t begin,
                  int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* in = static_cast<const typename C::Element*>(x) + row * width;
      auto* result = static_cast<typename C::Element*>(out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) result[i] = C::Store(scale[i] * C::Load(in[i]));
    }
  });
}

void ScaleColumnsBackward(Codec codec, const void* x, const float* scale, const void* d_out, int64_t width,
                          void* d_x, float* d_scale, int64_t begin, int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    using Element = typename C::Element;
    for (int64_t row = begin; row < end; ++row) {
      const Element *in = static_cast<const Element*>(x) + row * width,
                    *d = static_cast<const Element*>(d_out) + row * width;
      Element* d_in = static_cast<Element*>(d_x) + row * width;
      if (d_scale != nullptr) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) d_scale[i] += C::Load(d[i]) * C::Load(in[i]);
      }
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) d_in[i] = C::Store(scale[i] * C::Load(d[i]));
    }
  });
}

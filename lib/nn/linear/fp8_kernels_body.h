/// The bodies of the kernels that round to fp8; a part of kernels_body.h, included once an instruction set
/// inside its namespace.

#define TRAINWRIGHT_FP8 [[gnu::always_inline]] inline
#include "lib/nn/linear/fp8_body.h"

uint32_t LargestBits(Codec codec, const void* x, int64_t begin, int64_t end) {
  uint32_t largest = 0;
  WithCodec(codec, [&]<typename C>() {
    const auto* stored = static_cast<const typename C::Element*>(x);
#pragma omp simd reduction(max : largest)
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t magnitude = FloatToBits(C::Load(stored[i])) & 0x7FFFFFFFu;
      largest = largest < magnitude ? magnitude : largest;
    }
  });
  return largest;
}

void Fp8Encode(Codec codec, Fp8Format format, const void* x, float factor, uint8_t* codes, int64_t begin,
               int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    WithFp8(format, [&]<typename Codes>() {
      const auto* stored = static_cast<const typename C::Element*>(x);
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) codes[i] = Codes::Of(C::Load(stored[i]) * factor);
    });
  });
}

void Fp8Decode(Codec codec, Fp8Format format, const uint8_t* codes, void* values, int64_t begin,
               int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    WithFp8(format, [&]<typename Codes>() {
      auto* stored = static_cast<typename C::Element*>(values);
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) stored[i] = C::Store(Codes::Value(codes[i]));
    });
  });
}

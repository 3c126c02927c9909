#include "lib/nn/update/adamw_8bit_cpu.h"

#include <algorithm>
#include <cmath>

namespace trainwright::cpu {
namespace {

void Decode(const Moments8Bit& moment, int64_t begin, int64_t count, float* values) {
  const float largest = moment.largest[begin / kMomentBlock];
  for (int64_t i = 0; i < count; ++i) values[i] = moment.map[moment.codes[begin + i]] * largest;
}

void Encode(const float* values, int64_t begin, int64_t count, const Moments8Bit& moment) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  moment.largest[begin / kMomentBlock] = largest;
  for (int64_t i = 0; i < count; ++i) moment.codes[begin + i] = EncodeMoment(moment.map, values[i], largest);
}

}  // namespace

void UpdateAdamW8Bit(const AdamWCoefficients& coefficients, const float* gradients, float* values,
                     const Moments8Bit& exp_avg, const Moments8Bit& exp_avg_sq, int64_t count) {
  const AdamWCoefficients c = coefficients;
  float first[kMomentBlock], second[kMomentBlock];
  for (int64_t begin = 0; begin < count; begin += kMomentBlock) {
    const int64_t size = std::min(kMomentBlock, count - begin);
    Decode(exp_avg, begin, size, first);
    Decode(exp_avg_sq, begin, size, second);
    const float* gradient = gradients + begin;
    float* value = values + begin;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) UpdateElement(c, gradient[i], &value[i], &first[i], &second[i]);
    Encode(first, begin, size, exp_avg);
    Encode(second, begin, size, exp_avg_sq);
  }
}

}  // namespace trainwright::cpu

/// The bodies of the kernels of kernels.h. Included once by each kernels_<set>.cc, which defines
/// TRAINWRIGHT_KERNELS (the name of the table) and TRAINWRIGHT_VECTOR_BYTES, and switches the compiler to
/// its instruction set. Plain loops that the compiler vectorises; sums are marked so that it may reorder
/// them, in a way fixed at compile time.
///
/// No inline function of the standard library is called: its out-of-line copy would be compiled for this
/// instruction set and the linker might keep it for code that runs everywhere.
#include <math.h>
#include <string.h>

#include <cstdint>

#include "lib/nn/cpu/kernels.h"

TRAINWRIGHT_BEGIN_TARGET

namespace trainwright::cpu {
namespace {

template <typename T>
inline T Smaller(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
inline T Larger(T a, T b) {
  return a < b ? b : a;
}

inline float BitsToFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t FloatToBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Round to nearest even at bit `kept_from`; a NaN stays one because its payload's top bit is set first.
[[gnu::always_inline]] inline float RoundMantissa(float value, int dropped_bits) {
  const uint32_t bits = FloatToBits(value);
  const uint32_t half = (1u << (dropped_bits - 1)) - 1;
  const uint32_t rounded = (bits + half + ((bits >> dropped_bits) & 1)) & ~((1u << dropped_bits) - 1);
  return value == value ? BitsToFloat(rounded) : BitsToFloat(bits | 0x00400000u);
}

[[gnu::always_inline]] inline float RoundToBf16(float value) {
  return RoundMantissa(value, 16);
}

[[gnu::always_inline]] inline float RoundToFp16(float value) {
  const float magnitude = __builtin_fabsf(value);
  // Below 2^-14 fp16 is a fixed-point grid of 2^-24, the spacing of fp32 in [0.5, 1).
  const float small = (magnitude + 0.5f) - 0.5f;
  const float normal = RoundMantissa(magnitude, 13);
  const float in_range = magnitude < 0x1p-14f ? small : normal;
  const float rounded = in_range > 65504.0f ? HUGE_VALF : in_range;
  return __builtin_copysignf(rounded, value);
}

struct Fp32 {
  using Element = float;
  static float Load(float value) { return value; }
  static float Store(float value) { return value; }
};
struct RoundedBf16 {
  using Element = float;
  static float Load(float value) { return RoundToBf16(value); }
  static float Store(float value) { return RoundToBf16(value); }
};
struct RoundedFp16 {
  using Element = float;
  static float Load(float value) { return RoundToFp16(value); }
  static float Store(float value) { return RoundToFp16(value); }
};
struct Bf16 {
  using Element = uint16_t;
  static float Load(uint16_t value) { return BitsToFloat(static_cast<uint32_t>(value) << 16); }
  static uint16_t Store(float value) { return static_cast<uint16_t>(FloatToBits(RoundToBf16(value)) >> 16); }
};

/// Calls function.operator()<Codec type>().
template <typename Function>
inline void WithCodec(Codec codec, const Function& function) {
  switch (codec) {
    case Codec::kFp32:
      return function.template operator()<Fp32>();
    case Codec::kRoundedBf16:
      return function.template operator()<RoundedBf16>();
    case Codec::kRoundedFp16:
      return function.template operator()<RoundedFp16>();
    case Codec::kBf16:
      return function.template operator()<Bf16>();
  }
}

/// Calls function.operator()<Codec type, the stream's>(), where the stream is fp32 or as the codec says.
template <typename Function>
inline void WithStream(Codec codec, Codec stream, const Function& function) {
  WithCodec(codec, [&]<typename C>() {
    if (stream == Codec::kFp32) return function.template operator()<C, Fp32>();
    return function.template operator()<C, C>();
  });
}

/// e^x to about 2 units in the last place; 0 below -87.3, so that a masked score vanishes. Always inlined: a
/// loop with a call in it is not vectorised.
/// \source Cephes expf (Moshier): the polynomial and the split of ln 2
[[gnu::always_inline]] inline float Exp(float x) {
  const float clamped = Smaller(x, 88.7f);
  // The low bits of a float of this size are those of its whole part, n.
  const float shifted = clamped * 1.44269504088896341f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // Times 2^n, by its exponent: from -87.3 to the clamp the result is a normal number.
  const float result = BitsToFloat(FloatToBits(p) + (FloatToBits(shifted) << 23));
  return x >= -87.3f ? result : Larger(x, 0.0f);  // of a NaN, itself
}

#include "lib/nn/linear/packing_body.h"

#include "lib/nn/attention/attention_block_body.h"

void Round(Codec codec, const float* in, void* out, int64_t begin, int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    auto* stored = static_cast<typename C::Element*>(out);
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) stored[i] = C::Store(in[i]);
  });
}

void AddNorm(Codec codec, Codec stream, const void* residual, const void* update, const float* weight,
             double epsilon, int64_t width, void* sum, void* normed, float* rstd, int64_t begin,
             int64_t end) {
  WithStream(codec, stream, [&]<typename C, typename S>() {
    const auto* updates = static_cast<const typename C::Element*>(update);
    auto* outputs = static_cast<typename C::Element*>(normed);
    for (int64_t row = begin; row < end; ++row) {
      const auto* x = static_cast<const typename S::Element*>(residual) + row * width;
      float squares = 0;
      if (updates != nullptr) {
        const auto* u = updates + row * width;
        auto* s = static_cast<typename S::Element*>(sum) + row * width;
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < width; ++i) {
          const auto stored = S::Store(S::Load(x[i]) + C::Load(u[i]));
          s[i] = stored;
          const float value = S::Load(stored);
          squares += value * value;
        }
        x = s;
      } else {
#pragma omp simd reduction(+ : squares)
        for (int64_t i = 0; i < width; ++i) squares += S::Load(x[i]) * S::Load(x[i]);
      }
      const float scale =
          1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + static_cast<float>(epsilon));
      rstd[row] = scale;
      auto* out = outputs + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] = C::Store(weight[i] * (S::Load(x[i]) * scale));
    }
  });
}

void NormAgain(Codec codec, Codec stream, const void* x, const float* rstd, const float* weight,
               int64_t width, void* normed, int64_t begin, int64_t end) {
  WithStream(codec, stream, [&]<typename C, typename S>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* in = static_cast<const typename S::Element*>(x) + row * width;
      auto* out = static_cast<typename C::Element*>(normed) + row * width;
      const float scale = rstd[row];
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) out[i] = C::Store(weight[i] * (S::Load(in[i]) * scale));
    }
  });
}

void NormBackward(Codec codec, Codec stream, const void* d_normed, const void* x, const float* rstd,
                  const float* weight, int64_t width, void* d_x, float* d_weight, int64_t begin,
                  int64_t end) {
  WithStream(codec, stream, [&]<typename C, typename S>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* dy = static_cast<const typename C::Element*>(d_normed) + row * width;
      const auto* in = static_cast<const typename S::Element*>(x) + row * width;
      auto* dx = static_cast<typename S::Element*>(d_x) + row * width;
      const float scale = rstd[row];
      float projection = 0;
#pragma omp simd reduction(+ : projection)
      for (int64_t i = 0; i < width; ++i) {
        const float gradient = C::Load(dy[i]), value = S::Load(in[i]);
        projection += gradient * weight[i] * value;
        d_weight[i] += gradient * (value * scale);
      }
      // d x = rstd (w dy - xhat mean(w dy xhat)), xhat = x rstd
      const float shared = projection * scale * scale / static_cast<float>(width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        const float own = weight[i] * C::Load(dy[i]) - S::Load(in[i]) * shared;
        dx[i] = S::Store(S::Load(dx[i]) + scale * own);
      }
    }
  });
}

void Rope(Codec codec, void* qkv, const int64_t* positions, const float* cosines, const float* sines,
          int64_t half, const AttentionShape& shape, float sign, int64_t begin, int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    using Element = typename C::Element;
    const auto round = [](Element* values, int64_t count) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) values[i] = C::Store(C::Load(values[i]));
    };
    const int64_t rotated = shape.num_heads + shape.num_kv_heads;
    for (int64_t row = begin; row < end; ++row) {
      auto* heads = static_cast<Element*>(qkv) + row * shape.row();
      const float* cosine = cosines + positions[row] * half;
      const float* sine = sines + positions[row] * half;
      for (int64_t head = 0; head < rotated; ++head) {
        auto* first = heads + head * shape.head_dim;
        auto* second = first + half;
#pragma omp simd
        for (int64_t i = 0; i < half; ++i) {
          const float a = C::Load(first[i]), b = C::Load(second[i]), s = sign * sine[i];
          first[i] = C::Store(a * cosine[i] - b * s);
          second[i] = C::Store(b * cosine[i] + a * s);
        }
        round(first + 2 * half, shape.head_dim - 2 * half);
      }
      round(heads + rotated * shape.head_dim, shape.num_kv_heads * shape.head_dim);
    }
  });
}

/// Blocks of sums keep the fp32 error of a long row small.
template <typename C>
double Sum(const typename C::Element* x, int64_t size) {
  double total = 0;
  for (int64_t block = 0; block < size; block += 4096) {
    const int64_t block_end = Smaller(size, block + 4096);
    float partial = 0;
#pragma omp simd reduction(+ : partial)
    for (int64_t i = block; i < block_end; ++i) partial += C::Load(x[i]);
    total += partial;
  }
  return total;
}

/// Where the exponentials of a row of logits are kept for its gradient: in its place, or where that is too
/// narrow in `scratch`.
inline float* KeptExponentials(float* row, float* /*scratch*/) {
  return row;
}
inline float* KeptExponentials(uint16_t* /*row*/, float* scratch) {
  return scratch;
}

/// The sum of e^(x[i] - largest), whose terms are kept where `kept` is not null: x itself, or apart from it.
/// Blocks of sums keep the fp32 error of a long vocabulary small.
template <typename C>
double SumOfExponentials(const typename C::Element* x, int64_t size, float largest, float* kept) {
  double total = 0;
  for (int64_t block = 0; block < size; block += 4096) {
    const int64_t block_end = Smaller(size, block + 4096);
    float partial = 0;
    if (kept == nullptr) {
#pragma omp simd reduction(+ : partial)
      for (int64_t i = block; i < block_end; ++i) partial += Exp(C::Load(x[i]) - largest);
    } else {
#pragma omp simd reduction(+ : partial)
      for (int64_t i = block; i < block_end; ++i) {
        const float exponential = Exp(C::Load(x[i]) - largest);
        kept[i] = exponential;
        partial += exponential;
      }
    }
    total += partial;
  }
  return total;
}

void CrossEntropy(Codec codec, void* logits, const int64_t* labels, int64_t vocabulary,
                  const LossTerms& terms, float scale, bool gradients, double* losses_n3, float* scratch,
                  int64_t begin, int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t row = begin; row < end; ++row) {
      auto* x = static_cast<typename C::Element*>(logits) + row * vocabulary;
      if (labels[row] < 0) {
        losses_n3[3 * row] = losses_n3[3 * row + 1] = losses_n3[3 * row + 2] = 0;
        for (int64_t i = 0; gradients && i < vocabulary; ++i) x[i] = C::Store(0);
        continue;
      }
      float largest = C::Load(x[0]);
#pragma omp simd reduction(max : largest)
      for (int64_t i = 0; i < vocabulary; ++i) largest = Larger(largest, C::Load(x[i]));
      const float at_label = C::Load(x[labels[row]]);
      const double sum_of_logits = terms.label_smoothing != 0 ? Sum<C>(x, vocabulary) : 0;
      float* const kept = gradients ? KeptExponentials(x, scratch) : nullptr;
      const double total = SumOfExponentials<C>(x, vocabulary, largest, kept);
      const double log_z = log(total) + static_cast<double>(largest), z_loss = terms.z_loss;
      double* losses = losses_n3 + 3 * row;
      losses[0] = log_z - static_cast<double>(at_label);
      losses[1] = 0;
      losses[2] = z_loss * log_z * log_z;
      if (terms.label_smoothing != 0) {
        const double mean = sum_of_logits / static_cast<double>(vocabulary);
        losses[1] = static_cast<double>(terms.label_smoothing) * (static_cast<double>(at_label) - mean);
      }
      if (!gradients) continue;
      // d log^2 Z / d x_i = 2 log Z p_i. Without terms the three constants are those of softmax - onehot,
      // exactly.
      const float factor = scale * static_cast<float>(1.0 + 2.0 * z_loss * log_z) / static_cast<float>(total);
      const float shared = scale * terms.label_smoothing / static_cast<float>(vocabulary);
      const float of_label = scale * (1.0f - terms.label_smoothing) + shared;
      const float at_label_gradient = kept[labels[row]] * factor - of_label;
#pragma omp simd
      for (int64_t i = 0; i < vocabulary; ++i) x[i] = C::Store(kept[i] * factor - shared);
      x[labels[row]] = C::Store(at_label_gradient);
    }
  });
}

void EmbeddingBackward(Codec stream, const void* d_x, const int64_t* tokens, int64_t num_tokens,
                       int64_t width, float* table_gradient, int64_t begin, int64_t end) {
  WithCodec(stream, [&]<typename S>() {
    for (int64_t row = 0; row < num_tokens; ++row) {
      float* to = table_gradient + tokens[row] * width;
      const auto* from = static_cast<const typename S::Element*>(d_x) + row * width;
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) to[i] += S::Load(from[i]);
    }
  });
}

float Largest(const float* values, int64_t begin, int64_t end, bool* has_nan) {
  float largest = -HUGE_VALF;
  int nans = 0;
#pragma omp simd reduction(max : largest) reduction(| : nans)
  for (int64_t i = begin; i < end; ++i) {
    largest = Larger(largest, values[i]);
    nans |= values[i] != values[i];
  }
  *has_nan = nans != 0;
  return largest;
}

double ExpWeights(const float* x, float largest, float factor, float* weights, int64_t begin, int64_t end) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = begin; i < end; ++i) {
    weights[i] = Exp((x[i] - largest) * factor);
    sum += static_cast<double>(weights[i]);
  }
  return sum;
}

void WeighScores(const float* largest, const float* weights, float row_largest, float row_weight,
                 float factor, float* scores, int64_t begin, int64_t end) {
  if (row_weight == 0) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) scores[i] = weights[i] * Exp((scores[i] - largest[i]) * factor);
    return;
  }
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float of_column = weights[i] * Exp((scores[i] - largest[i]) * factor);
    scores[i] = of_column + row_weight * Exp((scores[i] - row_largest) * factor);
  }
}

double SumOfSquares(const float* values, int64_t begin, int64_t end) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = begin; i < end; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

inline float Dot(const float* a, const float* b, int64_t size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}
inline void AddScaled(float factor, const float* from, float* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] += factor * from[i];
}
inline void Clear(float* values, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) values[i] = 0;
}
template <typename C>
inline void LoadRow(const typename C::Element* from, float* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = C::Load(from[i]);
}
template <typename C>
inline void StoreRow(const float* from, typename C::Element* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = C::Store(from[i]);
}

/// The first row of a span that its row `i` attends to.
inline int64_t FirstSeen(const AttentionShape& shape, int64_t i) {
  return shape.window == 0 ? 0 : Larger(int64_t{0}, i + 1 - shape.window);
}
/// The last one.
inline int64_t LastSeen(const AttentionShape& shape, int64_t i, int64_t length) {
  if (shape.mask == AttentionMask::kCausal) return i;
  return shape.window == 0 ? length - 1 : Smaller(length - 1, i + shape.window - 1);
}

void Attention(Codec codec, const void* qkv, const AttentionShape& shape, const AttentionTask& task,
               void* out_nhk, float* lse_hn, float* scratch) {
  WithCodec(codec, [&]<typename C>() {
    const int64_t length = task.end - task.begin, size = shape.head_dim, row = shape.row();
    const int64_t heads_a_group = shape.num_heads / shape.num_kv_heads;
    const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(size));
    float *keys = scratch, *values = keys + length * size, *query = values + length * size,
          *sum = query + size, *scores = sum + size;
    const auto* base = static_cast<const typename C::Element*>(qkv) + task.begin * row;
    for (int64_t j = 0; j < length; ++j) {
      LoadRow<C>(base + j * row + (shape.num_heads + task.group) * size, &keys[j * size], size);
      LoadRow<C>(base + j * row + (shape.num_heads + shape.num_kv_heads + task.group) * size,
                 &values[j * size], size);
    }
    for (int64_t head = task.group * heads_a_group; head < (task.group + 1) * heads_a_group; ++head) {
      for (int64_t i = 0; i < length; ++i) {
        LoadRow<C>(base + i * row + head * size, query, size);
        const int64_t first = FirstSeen(shape, i), last = LastSeen(shape, i, length);
        float largest = -HUGE_VALF;
        for (int64_t j = first; j <= last; ++j) {
          scores[j] = scale * Dot(query, &keys[j * size], size);
          largest = Larger(largest, scores[j]);
        }
        float total = 0;
#pragma omp simd reduction(+ : total)
        for (int64_t j = first; j <= last; ++j) {
          scores[j] = Exp(scores[j] - largest);
          total += scores[j];
        }
        Clear(sum, size);
        for (int64_t j = first; j <= last; ++j) AddScaled(scores[j] / total, &values[j * size], sum, size);
        StoreRow<C>(
            sum,
            static_cast<typename C::Element*>(out_nhk) + ((task.begin + i) * shape.num_heads + head) * size,
            size);
        lse_hn[head * shape.num_tokens + task.begin + i] = largest + logf(total);
      }
    }
  });
}

void AttentionBackward(Codec codec, const void* d_out_nhk, const void* qkv, const void* out_nhk,
                       const float* lse_hn, const AttentionShape& shape, const AttentionTask& task,
                       void* d_qkv, float* scratch) {
  WithCodec(codec, [&]<typename C>() {
    using Element = typename C::Element;
    const int64_t length = task.end - task.begin, size = shape.head_dim, row = shape.row();
    const int64_t heads_a_group = shape.num_heads / shape.num_kv_heads;
    const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(size));
    float *keys = scratch, *values = keys + length * size, *d_keys = values + length * size,
          *d_values = d_keys + length * size, *query = d_values + length * size, *d_query = query + size,
          *d_out = d_query + size, *out = d_out + size;
    Clear(d_keys, 2 * length * size);
    const auto* base = static_cast<const Element*>(qkv) + task.begin * row;
    auto* d_base = static_cast<Element*>(d_qkv) + task.begin * row;
    const int64_t key_column = (shape.num_heads + task.group) * size;
    const int64_t value_column = key_column + shape.num_kv_heads * size;
    for (int64_t j = 0; j < length; ++j) {
      LoadRow<C>(base + j * row + key_column, &keys[j * size], size);
      LoadRow<C>(base + j * row + value_column, &values[j * size], size);
    }
    for (int64_t head = task.group * heads_a_group; head < (task.group + 1) * heads_a_group; ++head) {
      for (int64_t i = 0; i < length; ++i) {
        const int64_t out_row = ((task.begin + i) * shape.num_heads + head) * size;
        LoadRow<C>(base + i * row + head * size, query, size);
        LoadRow<C>(static_cast<const Element*>(d_out_nhk) + out_row, d_out, size);
        LoadRow<C>(static_cast<const Element*>(out_nhk) + out_row, out, size);
        const float lse = lse_hn[head * shape.num_tokens + task.begin + i];
        const float delta = Dot(d_out, out, size);
        Clear(d_query, size);
        const int64_t last = LastSeen(shape, i, length);
        for (int64_t j = FirstSeen(shape, i); j <= last; ++j) {
          const float probability = Exp(scale * Dot(query, &keys[j * size], size) - lse);
          const float d_score = scale * probability * (Dot(d_out, &values[j * size], size) - delta);
          AddScaled(probability, d_out, &d_values[j * size], size);
          AddScaled(d_score, query, &d_keys[j * size], size);
          AddScaled(d_score, &keys[j * size], d_query, size);
        }
        StoreRow<C>(d_query, d_base + i * row + head * size, size);
      }
    }
    for (int64_t j = 0; j < length; ++j) {
      StoreRow<C>(&d_keys[j * size], d_base + j * row + key_column, size);
      StoreRow<C>(&d_values[j * size], d_base + j * row + value_column, size);
    }
  });
}

#include "lib/nn/attention/attention_decode_body.h"

/// The mean of a row, then 1 / sqrt of its variance plus epsilon: two passes, because the difference of
/// the mean square and the squared mean loses what little variance a row far from zero has.
template <typename S>
inline void RowStatistics(const typename S::Element* x, int64_t width, double epsilon, float* mean,
                          float* rstd) {
  float total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < width; ++i) total += S::Load(x[i]);
  const float center = total / static_cast<float>(width);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < width; ++i) squares += (S::Load(x[i]) - center) * (S::Load(x[i]) - center);
  *mean = center;
  *rstd = 1.0f / __builtin_sqrtf(squares / static_cast<float>(width) + static_cast<float>(epsilon));
}

template <typename C, typename S>
inline void NormalizeRow(const typename S::Element* x, float mean, float rstd, const float* weight,
                         const float* bias, int64_t width, typename C::Element* out) {
  if (bias == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = C::Store((S::Load(x[i]) - mean) * rstd * weight[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i)
      out[i] = C::Store((S::Load(x[i]) - mean) * rstd * weight[i] + bias[i]);
  }
}

void AddLayerNorm(Codec codec, Codec stream, const void* residual, const void* update,
                  const float* update_bias, const float* weight, const float* bias, double epsilon,
                  int64_t width, void* sum, void* normed, float* mean, float* rstd, int64_t begin,
                  int64_t end) {
  WithStream(codec, stream, [&]<typename C, typename S>() {
    const auto* updates = static_cast<const typename C::Element*>(update);
    auto* outputs = static_cast<typename C::Element*>(normed);
    for (int64_t row = begin; row < end; ++row) {
      const auto* x = static_cast<const typename S::Element*>(residual) + row * width;
      if (updates != nullptr) {
        const auto* u = updates + row * width;
        auto* s = static_cast<typename S::Element*>(sum) + row * width;
        if (update_bias == nullptr) {
#pragma omp simd
          for (int64_t i = 0; i < width; ++i) s[i] = S::Store(S::Load(x[i]) + C::Load(u[i]));
        } else {
#pragma omp simd
          for (int64_t i = 0; i < width; ++i)
            s[i] = S::Store(S::Load(x[i]) + (C::Load(u[i]) + update_bias[i]));
        }
        x = s;
      }
      RowStatistics<S>(x, width, epsilon, &mean[row], &rstd[row]);
      NormalizeRow<C, S>(x, mean[row], rstd[row], weight, bias, width, outputs + row * width);
    }
  });
}

void LayerNormAgain(Codec codec, Codec stream, const void* x, const float* mean, const float* rstd,
                    const float* weight, const float* bias, int64_t width, void* normed, int64_t begin,
                    int64_t end) {
  WithStream(codec, stream, [&]<typename C, typename S>() {
    const auto* inputs = static_cast<const typename S::Element*>(x);
    auto* outputs = static_cast<typename C::Element*>(normed);
    for (int64_t row = begin; row < end; ++row) {
      NormalizeRow<C, S>(inputs + row * width, mean[row], rstd[row], weight, bias, width,
                         outputs + row * width);
    }
  });
}

void LayerNormBackward(Codec codec, Codec stream, const void* d_normed, const void* x, const float* mean,
                       const float* rstd, const float* weight, int64_t width, void* d_x, float* d_weight,
                       float* d_bias, int64_t begin, int64_t end) {
  WithStream(codec, stream, [&]<typename C, typename S>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* dy = static_cast<const typename C::Element*>(d_normed) + row * width;
      const auto* in = static_cast<const typename S::Element*>(x) + row * width;
      auto* dx = static_cast<typename S::Element*>(d_x) + row * width;
      const float center = mean[row], scale = rstd[row];
      float total = 0, projection = 0;
#pragma omp simd reduction(+ : total, projection)
      for (int64_t i = 0; i < width; ++i) {
        const float gradient = C::Load(dy[i]), normal = (S::Load(in[i]) - center) * scale;
        total += gradient * weight[i];
        projection += gradient * weight[i] * normal;
        d_weight[i] += gradient * normal;
      }
      if (d_bias != nullptr) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) d_bias[i] += C::Load(dy[i]);
      }
      // d x = rstd (w dy - mean(w dy) - xhat mean(w dy xhat)), xhat = (x - mean) rstd
      const float shift = total / static_cast<float>(width);
      const float shared = projection / static_cast<float>(width);
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        const float normal = (S::Load(in[i]) - center) * scale;
        const float own = weight[i] * C::Load(dy[i]) - shift - normal * shared;
        dx[i] = S::Store(S::Load(dx[i]) + scale * own);
      }
    }
  });
}

#include "lib/nn/activation/activation_body.h"

void AddBias(Codec codec, void* x, const float* bias, int64_t width, int64_t stride, int64_t begin,
             int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t row = begin; row < end; ++row) {
      auto* values = static_cast<typename C::Element*>(x) + row * stride;
      if (bias == nullptr) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) values[i] = C::Store(C::Load(values[i]));
      } else {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) values[i] = C::Store(C::Load(values[i]) + bias[i]);
      }
    }
  });
}

void ColumnSums(Codec codec, const void* x, int64_t width, int64_t stride, float* sums, int64_t begin,
                int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* values = static_cast<const typename C::Element*>(x) + row * stride;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) sums[i] += C::Load(values[i]);
    }
  });
}

void Embed(Codec stream, const float* table, const int64_t* indices, int64_t width, void* out, int64_t begin,
           int64_t end) {
  WithCodec(stream, [&]<typename S>() {
    for (int64_t row = begin; row < end; ++row) {
      StoreRow<S>(table + indices[row] * width, static_cast<typename S::Element*>(out) + row * width, width);
    }
  });
}

void AddEmbedding(Codec stream, const float* table, const int64_t* indices, int64_t width, void* out,
                  int64_t begin, int64_t end) {
  WithCodec(stream, [&]<typename S>() {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = table + indices[row] * width;
      auto* to = static_cast<typename S::Element*>(out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) to[i] = S::Store(S::Load(to[i]) + from[i]);
    }
  });
}

#include "lib/nn/scan/selective_decay_body.h"

#include "lib/nn/scan/diagonal_scan_body.h"

#include "lib/nn/scan/causal_convolution_body.h"

#include "lib/nn/scan/channel_scale_body.h"

#include "lib/nn/linear/fp8_kernels_body.h"

}  // namespace

const Kernels TRAINWRIGHT_KERNELS = {TRAINWRIGHT_KERNELS_NAME,
                                     Round,
                                     AddNorm,
                                     NormAgain,
                                     NormBackward,
                                     Rope,
                                     Swiglu,
                                     SwigluBackward,
                                     Silu,
                                     SiluBackward,
                                     SigmoidGate,
                                     SigmoidGateBackward,
                                     CrossEntropy,
                                     EmbeddingBackward,
                                     Largest,
                                     ExpWeights,
                                     SumOfSquares,
                                     Attention,
                                     AttentionBackward,
                                     AttentionDecode,
                                     AddLayerNorm,
                                     LayerNormAgain,
                                     LayerNormBackward,
                                     Gelu,
                                     GeluBackward,
                                     AddBias,
                                     ColumnSums,
                                     Embed,
                                     AddEmbedding,
                                     Transpose,
                                     InterleavePairs,
                                     TransposePairs,
                                     Widen,
                                     TransposeWidened,
                                     StoreTile,
                                     AttentionSoftmax,
                                     AttentionGradient,
                                     RowDots,
                                     WeighScores,
                                     DecayRows,
                                     DecayRowsBackward,
                                     ScanEnd,
                                     ScanRows,
                                     ScanCarry,
                                     ScanBackwardEnd,
                                     ScanBackwardRows,
                                     Convolve,
                                     ConvolutionBackward,
                                     ConvolutionInputBackward,
                                     ScaleColumns,
                                     ScaleColumnsBackward,
                                     LargestBits,
                                     Fp8Encode,
                                     Fp8Decode};

}  // namespace trainwright::cpu

TRAINWRIGHT_END_TARGET

/// The bodies of the kernels of activations and gates; a part of kernels_body.h, included once an instruction
/// set inside its namespace.

#define TRAINWRIGHT_GELU [[gnu::always_inline]]
#include "lib/nn/activation/gelu_body.h"
#undef TRAINWRIGHT_GELU

[[gnu::always_inline]] inline float Sigmoid(float x) {
  return 1.0f / (1.0f + Exp(-x));
}

/// Silu: x sigmoid(x).
struct SiluUnit {
  [[gnu::always_inline]] static float Value(float x) { return x / (1.0f + Exp(-x)); }
  [[gnu::always_inline]] static float Derivative(float x) { return Slope(x, Sigmoid(x)); }
  /// The derivative, with the sigmoid of x at hand.
  [[gnu::always_inline]] static float Slope(float x, float sigmoid) {
    return sigmoid + x * sigmoid * (1.0f - sigmoid);
  }
};

/// x[i] + bias[i], where there is a bias.
template <bool kBias>
[[gnu::always_inline]] inline float Biased(float x, const float* bias, int64_t i) {
  if constexpr (kBias) x += bias[i];
  return x;
}

/// Calls function.operator()<C, kBias>().
template <typename Function>
inline void WithBias(Codec codec, const float* bias, const Function& function) {
  WithCodec(codec, [&]<typename C>() {
    if (bias == nullptr) {
      function.template operator()<C, false>();
    } else {
      function.template operator()<C, true>();
    }
  });
}

/// out = activation(in + bias) for rows of `width`; bias may be null.
template <typename Activation>
inline void Activate(Codec codec, const void* in, const float* bias, int64_t width, void* out, int64_t begin,
                     int64_t end) {
  WithBias(codec, bias, [&]<typename C, bool kBias>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* x = static_cast<const typename C::Element*>(in) + row * width;
      auto* result = static_cast<typename C::Element*>(out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        result[i] = C::Store(Activation::Value(Biased<kBias>(C::Load(x[i]), bias, i)));
      }
    }
  });
}

/// Overwrites `in` with its gradient.
template <typename Activation>
inline void ActivateBackward(Codec codec, void* in, const float* bias, const void* d_out, int64_t width,
                             int64_t begin, int64_t end) {
  WithBias(codec, bias, [&]<typename C, bool kBias>() {
    for (int64_t row = begin; row < end; ++row) {
      auto* x = static_cast<typename C::Element*>(in) + row * width;
      const auto* d = static_cast<const typename C::Element*>(d_out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        x[i] = C::Store(C::Load(d[i]) * Activation::Derivative(Biased<kBias>(C::Load(x[i]), bias, i)));
      }
    }
  });
}

void Gelu(Codec codec, GeluKind kind, const void* in, const float* bias, int64_t width, void* out,
          int64_t begin, int64_t end) {
  if (kind == GeluKind::kErf) {
    Activate<GeluErf>(codec, in, bias, width, out, begin, end);
  } else {
    Activate<GeluTanh>(codec, in, bias, width, out, begin, end);
  }
}

void GeluBackward(Codec codec, GeluKind kind, void* in, const float* bias, const void* d_out, int64_t width,
                  int64_t begin, int64_t end) {
  if (kind == GeluKind::kErf) {
    ActivateBackward<GeluErf>(codec, in, bias, d_out, width, begin, end);
  } else {
    ActivateBackward<GeluTanh>(codec, in, bias, d_out, width, begin, end);
  }
}

void Silu(Codec codec, const void* in, int64_t width, void* out, int64_t begin, int64_t end) {
  Activate<SiluUnit>(codec, in, nullptr, width, out, begin, end);
}

void SiluBackward(Codec codec, void* in, const void* d_out, int64_t width, int64_t begin, int64_t end) {
  ActivateBackward<SiluUnit>(codec, in, nullptr, d_out, width, begin, end);
}

void Swiglu(Codec codec, const void* gate_up, int64_t width, void* out, int64_t begin, int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* gate = static_cast<const typename C::Element*>(gate_up) + row * 2 * width;
      const auto* up = gate + width;
      auto* result = static_cast<typename C::Element*>(out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        result[i] = C::Store(SiluUnit::Value(C::Load(gate[i])) * C::Load(up[i]));
      }
    }
  });
}

void SwigluBackward(Codec codec, void* gate_up, const void* d_out, int64_t width, int64_t begin,
                    int64_t end) {
  WithCodec(codec, [&]<typename C>() {
    for (int64_t row = begin; row < end; ++row) {
      auto* gate = static_cast<typename C::Element*>(gate_up) + row * 2 * width;
      auto* up = gate + width;
      const auto* d_result = static_cast<const typename C::Element*>(d_out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        const float g = C::Load(gate[i]), u = C::Load(up[i]), d = C::Load(d_result[i]);
        const float sigmoid = Sigmoid(g);
        gate[i] = C::Store(d * u * SiluUnit::Slope(g, sigmoid));
        up[i] = C::Store(d * (g * sigmoid));
      }
    }
  });
}

void SigmoidGate(Codec codec, const void* gate, const float* bias, const void* value, int64_t width,
                 void* out, int64_t begin, int64_t end) {
  WithBias(codec, bias, [&]<typename C, bool kBias>() {
    for (int64_t row = begin; row < end; ++row) {
      const auto* g = static_cast<const typename C::Element*>(gate) + row * width;
      const auto* v = static_cast<const typename C::Element*>(value) + row * width;
      auto* result = static_cast<typename C::Element*>(out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        result[i] = C::Store(Sigmoid(Biased<kBias>(C::Load(g[i]), bias, i)) * C::Load(v[i]));
      }
    }
  });
}

void SigmoidGateBackward(Codec codec, void* gate, const float* bias, void* value, const void* d_out,
                         int64_t width, int64_t begin, int64_t end) {
  WithBias(codec, bias, [&]<typename C, bool kBias>() {
    for (int64_t row = begin; row < end; ++row) {
      auto* g = static_cast<typename C::Element*>(gate) + row * width;
      auto* v = static_cast<typename C::Element*>(value) + row * width;
      const auto* d_result = static_cast<const typename C::Element*>(d_out) + row * width;
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) {
        const float d = C::Load(d_result[i]), sigmoid = Sigmoid(Biased<kBias>(C::Load(g[i]), bias, i));
        g[i] = C::Store(d * C::Load(v[i]) * sigmoid * (1.0f - sigmoid));
        v[i] = C::Store(d * sigmoid);
      }
    }
  });
}

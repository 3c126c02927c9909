/// The bodies of the kernels of activations and gates; a part of kernels_body.h, included once an instruction
/// set inside its namespace.

/// Gelu, exact: x Phi(x), within 3e-7 max(1, |x|); its derivative Phi(x) + x phi(x) within 1e-6. The
/// normal distribution's upper tail is exp(-a^2 / 2) t P(t) with t = 1 / (1 + 0.3 a), which shares its
/// exponential with the density phi. \source the form of Abramowitz and Stegun 7.1.26; P of degree 7
/// fitted by least squares reweighted towards the smallest maximum of the relative error, 1.7e-7 for a in
/// [0, 14.5]
struct GeluErf {
  [[gnu::always_inline]] static float Tail(float x, float density) {
    const float t = 1.0f / (1.0f + 0.3f * __builtin_fabsf(x));
    float p = 3.542371094e-02f;
    p = p * t - 1.561583579e-01f;
    p = p * t + 2.045566291e-01f;
    p = p * t - 5.203389376e-02f;
    p = p * t + 1.276917160e-01f;
    p = p * t + 1.001759619e-01f;
    p = p * t + 1.207121313e-01f;
    p = p * t + 1.196320057e-01f;
    const float tail = p * t * density;
    return x < 0.0f ? tail : 1.0f - tail;
  }
  [[gnu::always_inline]] static float Value(float x) { return x * Tail(x, Exp(-0.5f * x * x)); }
  [[gnu::always_inline]] static float Derivative(float x) {
    const float density = Exp(-0.5f * x * x);
    return Tail(x, density) + x * density * 0.398942280f;
  }
};

/// Gelu by tanh: x (1 + tanh u) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3), within 3e-7
/// max(1, |x|); its derivative within 1e-6. \source Hendrycks and Gimpel 2016, arXiv:1606.08415
struct GeluTanh {
  static constexpr float kTwice = 1.59576912f, kCubic = 0.044715f;  // 2 sqrt(2 / pi)
  /// Beyond 10 the sigmoid is 0 or 1 in fp32, and the cube of a huge x would overflow.
  [[gnu::always_inline]] static float Inner(float x) { return Smaller(Larger(x, -10.0f), 10.0f); }
  /// exp(-2 u)
  [[gnu::always_inline]] static float Odds(float inner) {
    return Exp(-kTwice * inner * (1.0f + kCubic * inner * inner));
  }
  [[gnu::always_inline]] static float Value(float x) { return x / (1.0f + Odds(Inner(x))); }
  [[gnu::always_inline]] static float Derivative(float x) {
    const float inner = Inner(x), odds = Odds(inner), sigmoid = 1.0f / (1.0f + odds);
    const float slope = kTwice * (1.0f + 3.0f * kCubic * inner * inner);
    return sigmoid + inner * slope * (odds * sigmoid) * sigmoid;
  }
};

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

/// The Gaussian error linear units; included by those who compute them, for each instruction set of a CPU and
/// for a GPU, inside their namespaces. They define TRAINWRIGHT_GELU, which comes before each function, and
/// Exp, Smaller and Larger.

/// Gelu, exact: x Phi(x), within 3e-7 max(1, |x|); its derivative Phi(x) + x phi(x) within 1e-6. The
/// normal distribution's upper tail is exp(-a^2 / 2) t P(t) with t = 1 / (1 + 0.3 a), which shares its
/// exponential with the density phi. \source the form of Abramowitz and Stegun 7.1.26; P of degree 7
/// fitted by least squares reweighted towards the smallest maximum of the relative error, 1.7e-7 for a in
/// [0, 14.5]
struct GeluErf {
  TRAINWRIGHT_GELU static float Tail(float x, float density) {
    const float t = 1.0f / (1.0f + 0.3f * fabsf(x));
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
  TRAINWRIGHT_GELU static float Value(float x) { return x * Tail(x, Exp(-0.5f * x * x)); }
  TRAINWRIGHT_GELU static float Derivative(float x) {
    const float density = Exp(-0.5f * x * x);
    return Tail(x, density) + x * density * 0.398942280f;
  }
};

/// Gelu by tanh: x (1 + tanh u) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3), within 3e-7
/// max(1, |x|); its derivative within 1e-6. \source Hendrycks and Gimpel 2016, arXiv:1606.08415
struct GeluTanh {
  static constexpr float kTwice = 1.59576912f, kCubic = 0.044715f;  // 2 sqrt(2 / pi)
  /// Beyond 10 the sigmoid is 0 or 1 in fp32, and the cube of a huge x would overflow.
  TRAINWRIGHT_GELU static float Inner(float x) { return Smaller(Larger(x, -10.0f), 10.0f); }
  /// exp(-2 u)
  TRAINWRIGHT_GELU static float Odds(float inner) {
    return Exp(-kTwice * inner * (1.0f + kCubic * inner * inner));
  }
  TRAINWRIGHT_GELU static float Value(float x) { return x / (1.0f + Odds(Inner(x))); }
  TRAINWRIGHT_GELU static float Derivative(float x) {
    const float inner = Inner(x), odds = Odds(inner), sigmoid = 1.0f / (1.0f + odds);
    const float slope = kTwice * (1.0f + 3.0f * kCubic * inner * inner);
    return sigmoid + inner * slope * (odds * sigmoid) * sigmoid;
  }
};

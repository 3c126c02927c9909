/// The bodies of the kernels of selective decay, for a range of rows; a part of kernels_body.h, included once
/// an instruction set inside its namespace. Channels are taken side by side.

/// The sine of x and a number of quarter turns, within 1e-7 for |x| up to 8192; beyond it stays that of 8192.
/// \source Cephes sinf, cosf (Moshier): the polynomials and the split of pi / 2
template <int kQuarterTurns>
[[gnu::always_inline]] inline float TurnedSine(float x) {
  const float angle = Smaller(Larger(x, -8192.0f), 8192.0f);
  const float n = (angle * 0.636619772f + 12582912.0f) - 12582912.0f;
  const float r = ((angle - n * 1.5703125f) - n * 4.837512969970703125e-4f) - n * 7.54978995489188216e-8f;
  const float z = r * r;
  const float sine = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
  const float cosine =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * (z * z) - 0.5f * z +
      1.0f;
  const int32_t turns = static_cast<int32_t>(n) + kQuarterTurns;
  const float value = (turns & 1) != 0 ? cosine : sine;
  return (turns & 2) != 0 ? -value : value;
}

/// e^-2|x|, of which the hyperbolic tangent and its derivative are made.
[[gnu::always_inline]] inline float TanhOdds(float x) {
  return Exp(-2.0f * __builtin_fabsf(x));
}
[[gnu::always_inline]] inline float Tanh(float x, float odds) {
  return __builtin_copysignf((1.0f - odds) / (1.0f + odds), x);
}
[[gnu::always_inline]] inline float TanhSlope(float odds) {
  return 4.0f * odds / ((1.0f + odds) * (1.0f + odds));
}

constexpr float kReachOfLevel = static_cast<float>(kLevelReach),
                kReachOfAngle = static_cast<float>(kAngleReach);

/// A row's decay in a channel, from what tanh adds to the two trained numbers. "Level" is log |lambda| before
/// it is clamped, or the number that the modulus is the sigmoid of. Each number has a function of its own: a
/// structure of several keeps the compiler from taking channels side by side.
struct LruDecay {
  static constexpr float kLargestLog = static_cast<float>(kLargestLogModulus),
                         kLeastLog = static_cast<float>(kLeastLogModulus);
  [[gnu::always_inline]] static float Level(float level, float shift) {
    return Larger(level * Exp(shift), kLeastLog);
  }
  [[gnu::always_inline]] static float Modulus(float level) { return Exp(Smaller(level, kLargestLog)); }
  [[gnu::always_inline]] static bool Clamped(float level) { return level > kLargestLog; }
  /// d log |lambda| / d a.
  [[gnu::always_inline]] static float LevelSlope(float level) { return level; }
  /// By how much the channel's angle grows: the angle times e^shift - 1, which for shifts up to kAngleReach
  /// these terms of its series are in fp32.
  [[gnu::always_inline]] static float Turn(float angle, float shift) {
    const float p =
        1.0f + shift * (0.5f + shift * (1.0f / 6.0f + shift * (1.0f / 24.0f + shift * (1.0f / 120.0f))));
    return angle * (shift * p);
  }
  /// d angle / d w.
  [[gnu::always_inline]] static float AngleSlope(float angle, float turn) { return angle + turn; }
};

struct CompatDecay {
  static constexpr float kLargestModulus = static_cast<float>(1 + kLargestLogModulus);
  [[gnu::always_inline]] static float Level(float level, float shift) { return level + shift; }
  [[gnu::always_inline]] static float Modulus(float level) {
    return Smaller(Sigmoid(level), kLargestModulus);
  }
  [[gnu::always_inline]] static bool Clamped(float level) { return Sigmoid(level) > kLargestModulus; }
  /// 1 - sigmoid.
  [[gnu::always_inline]] static float LevelSlope(float level) { return Sigmoid(-level); }
  [[gnu::always_inline]] static float Turn(float, float shift) { return shift; }
  [[gnu::always_inline]] static float AngleSlope(float, float) { return 1.0f; }
};

/// Calls function.operator()<C, D>().
template <typename Function>
inline void WithDecayKind(Codec codec, TenInit init, const Function& function) {
  WithCodec(codec, [&]<typename C>() {
    if (init == TenInit::kLru) {
      function.template operator()<C, LruDecay>();
    } else {
      function.template operator()<C, CompatDecay>();
    }
  });
}

void DecayRows(Codec codec, const DecayChannels& of, const void* s_nz, float* lambda_nz, int64_t begin,
               int64_t end) {
  WithDecayKind(codec, of.init, [&]<typename C, typename D>() {
    const int64_t channels = of.channels;
    const float *levels = of.level_k, *angles = of.angle_k, *cosines = of.cosine_k, *sines = of.sine_k;
    for (int64_t row = begin; row < end; ++row) {
      const auto* s1 = static_cast<const typename C::Element*>(s_nz) + row * 2 * channels;
      const auto* s2 = s1 + channels;
      float *re = lambda_nz + row * 2 * channels, *im = re + channels;
#pragma omp simd
      for (int64_t i = 0; i < channels; ++i) {
        const float of_level = C::Load(s1[i]), of_angle = C::Load(s2[i]);
        const float level = D::Level(levels[i], kReachOfLevel * Tanh(of_level, TanhOdds(of_level)));
        const float turn = D::Turn(angles[i], kReachOfAngle * Tanh(of_angle, TanhOdds(of_angle)));
        const float modulus = D::Modulus(level), cosine = TurnedSine<1>(turn), sine = TurnedSine<0>(turn);
        re[i] = modulus * (cosines[i] * cosine - sines[i] * sine);
        im[i] = modulus * (sines[i] * cosine + cosines[i] * sine);
      }
    }
  });
}

/// One row backward.
/// \param s1 and, `channels` after it, s2: overwritten
/// \param sums_z those of a, then of w
template <typename C, typename D, bool kSums>
inline void DecayRowBackward(const DecayChannels& of, const float* d_re, typename C::Element* s1,
                             float* sums_z) {
  const int64_t channels = of.channels;
  const float *levels = of.level_k, *angles = of.angle_k, *cosines = of.cosine_k, *sines = of.sine_k;
  const float* d_im = d_re + channels;
  auto* s2 = s1 + channels;
#pragma omp simd
  for (int64_t i = 0; i < channels; ++i) {
    const float of_level = C::Load(s1[i]), of_angle = C::Load(s2[i]);
    const float level_odds = TanhOdds(of_level), angle_odds = TanhOdds(of_angle);
    const float level = D::Level(levels[i], kReachOfLevel * Tanh(of_level, level_odds));
    const float turn = D::Turn(angles[i], kReachOfAngle * Tanh(of_angle, angle_odds));
    const float modulus = D::Modulus(level), cosine = TurnedSine<1>(turn), sine = TurnedSine<0>(turn);
    const float re = modulus * (cosines[i] * cosine - sines[i] * sine),
                im = modulus * (sines[i] * cosine + cosines[i] * sine);
    const float d_log_modulus = D::Clamped(level) ? 0.0f : d_re[i] * re + d_im[i] * im;
    const float d_a = d_log_modulus * D::LevelSlope(level);
    const float d_w = (d_im[i] * re - d_re[i] * im) * D::AngleSlope(angles[i], turn);
    s1[i] = C::Store(d_a * (kReachOfLevel * TanhSlope(level_odds)));
    s2[i] = C::Store(d_w * (kReachOfAngle * TanhSlope(angle_odds)));
    if constexpr (kSums) {
      sums_z[i] += d_a;
      sums_z[channels + i] += d_w;
    }
  }
}

void DecayRowsBackward(Codec codec, const DecayChannels& of, const float* d_lambda_nz, void* s_nz,
                       float* sums_z, int64_t begin, int64_t end) {
  WithDecayKind(codec, of.init, [&]<typename C, typename D>() {
    const int64_t width = 2 * of.channels;
    for (int64_t row = begin; row < end; ++row) {
      auto* s = static_cast<typename C::Element*>(s_nz) + row * width;
      const float* d_lambda = d_lambda_nz + row * width;
      if (sums_z == nullptr) {
        DecayRowBackward<C, D, false>(of, d_lambda, s, nullptr);
      } else {
        DecayRowBackward<C, D, true>(of, d_lambda, s, sums_z);
      }
    }
  });
}

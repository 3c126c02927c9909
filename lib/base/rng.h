/// Counter-based random numbers: a value is a pure function of (seed, stream name, counter).
///
/// Nothing is carried between calls, so a resumed run needs no generator state for data order, and every host
/// computes the same values. No std::*_distribution is used: those differ between standard libraries.
/// \source SplitMix64 finaliser (Steele, Lea, Flood 2014); Feistel networks with cycle walking
///         (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains").
#pragma once

#include <cstdint>
#include <string_view>

namespace trainwright {

/// Mixes 64 bits into 64 bits, bijectively.
uint64_t Mix64(uint64_t value);

/// A named stream of random numbers. Immutable and thread-safe.
class Rng {
 public:
  /// Streams with different names, or different `index` (an epoch, say), are independent.
  Rng(uint64_t seed, std::string_view stream, uint64_t index = 0);
  uint64_t key() const { return key_; }
  /// 64 random bits for a counter.
  uint64_t Bits(uint64_t counter) const { return BitsOf(key_, counter); }
  /// The same of a stream's key alone.
  static uint64_t BitsOf(uint64_t key, uint64_t counter) {
    return Mix64(Mix64(key + counter * 0x9E3779B97F4A7C15u) ^ key);
  }
  /// Uniform in [0, 1), 53 bits.
  double Uniform(uint64_t counter) const { return static_cast<double>(Bits(counter) >> 11) * 0x1p-53; }
  /// Standard normal by Box-Muller; the counters 2k and 2k+1 share one pair of uniform numbers.
  double Normal(uint64_t counter) const;
  /// out[i] = deviation * Normal(begin + i), rounded to fp32, in half the time.
  void FillNormal(uint64_t begin, uint64_t count, double deviation, float* out) const;

 private:
  struct Pair {
    double even, odd;
  };
  Pair NormalPair(uint64_t pair) const;

  uint64_t key_;
};

/// A keyed permutation of [0, size): O(1) memory, O(1) expected time, integer arithmetic only, so the same on
/// every host. Immutable and thread-safe.
class KeyedPermutation {
 public:
  /// \param size number of elements, >= 1
  KeyedPermutation(uint64_t size, uint64_t key);
  /// Where element `index` < size goes.
  uint64_t operator()(uint64_t index) const;
  /// Which element goes to `place` < size.
  uint64_t InverseOf(uint64_t place) const;
  uint64_t size() const { return size_; }

 private:
  uint64_t Encrypt(uint64_t value) const;
  uint64_t Decrypt(uint64_t value) const;
  uint64_t size_, key_;
  int half_bits_;
};

}  // namespace trainwright

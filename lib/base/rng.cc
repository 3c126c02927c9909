#include "lib/base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "lib/base/checksum.h"
#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr int kRounds = 8;  // of a keyed permutation

}  // namespace

uint64_t Mix64(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

Rng::Rng(uint64_t seed, std::string_view stream, uint64_t index)
    : key_(Mix64(Xxh3(AsBytes(stream), seed) ^ Mix64(index))) {}

Rng::Pair Rng::NormalPair(uint64_t pair) const {
  const double u1 = 1.0 - Uniform(2 * pair);  // (0, 1]: the logarithm stays finite
  const double angle = 2.0 * std::numbers::pi * Uniform(2 * pair + 1);
  const double radius = std::sqrt(-2.0 * std::log(u1));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double Rng::Normal(uint64_t counter) const {
  const Pair pair = NormalPair(counter / 2);
  return counter % 2 == 0 ? pair.even : pair.odd;
}

void Rng::FillNormal(uint64_t begin, uint64_t count, double deviation, float* out) const {
  uint64_t i = 0;
  if (begin % 2 == 1 && count > 0) out[i++] = static_cast<float>(deviation * Normal(begin));
  for (; i + 1 < count; i += 2) {
    const Pair pair = NormalPair((begin + i) / 2);
    out[i] = static_cast<float>(deviation * pair.even);
    out[i + 1] = static_cast<float>(deviation * pair.odd);
  }
  if (i < count) out[i] = static_cast<float>(deviation * Normal(begin + i));
}

KeyedPermutation::KeyedPermutation(uint64_t size, uint64_t key) : size_(size), key_(key) {
  TRAINWRIGHT_CHECK(size >= 1);
  const int bits = size > 1 ? 64 - std::countl_zero(size - 1) : 1;
  half_bits_ = (bits + 1) / 2;
}

uint64_t KeyedPermutation::Encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t mixed = Mix64(right ^ Mix64(key_ + static_cast<uint64_t>(round))) & mask;
    const uint64_t next = left ^ mixed;
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

uint64_t KeyedPermutation::Decrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (int round = kRounds - 1; round >= 0; --round) {
    const uint64_t mixed = Mix64(left ^ Mix64(key_ + static_cast<uint64_t>(round))) & mask;
    const uint64_t before = right ^ mixed;
    right = left;
    left = before;
  }
  return left << half_bits_ | right;
}

uint64_t KeyedPermutation::operator()(uint64_t index) const {
  TRAINWRIGHT_CHECK(index < size_);
  uint64_t value = Encrypt(index);
  while (value >= size_) value = Encrypt(value);  // cycle walking; the domain is at most 4x size, so short
  return value;
}

uint64_t KeyedPermutation::InverseOf(uint64_t place) const {
  TRAINWRIGHT_CHECK(place < size_);
  uint64_t value = Decrypt(place);
  while (value >= size_) value = Decrypt(value);  // the walk back passes the same values outside
  return value;
}

}  // namespace trainwright

/// The mixing of lib/base/rng.h, shared by kernels of every instruction set and of a GPU. Torch-free.
#pragma once

#include <cstdint>

#include "lib/nn/host_device.h"

namespace trainwright {

// Internal linkage: a copy that was compiled for one instruction set must not serve code that runs
// everywhere.

/// trainwright::Mix64, bijective.
[[gnu::always_inline]] TRAINWRIGHT_HOST_DEVICE static inline uint64_t MixBits64(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/// Rng::BitsOf.
[[gnu::always_inline]] TRAINWRIGHT_HOST_DEVICE static inline uint64_t CounterBits(uint64_t key,
                                                                                  uint64_t counter) {
  return MixBits64(MixBits64(key + counter * 0x9E3779B97F4A7C15u) ^ key);
}

}  // namespace trainwright

/// Hashes of the suite: XXH3-64 for integrity of blocks and streams, XXH3-128 and SHA-256 for identity of
/// files, CRC-32C where a foreign format asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/bytes.h"

namespace trainwright {

/// XXH3-64 of a byte string, seeded.
uint64_t Xxh3(ByteSpan bytes, uint64_t seed = 0);

/// XXH3-64 of bytes that arrive in pieces. One per thread; movable.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  void Update(ByteSpan bytes);
  /// The hash of everything so far; may be called at any time.
  uint64_t Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using Xxh128Digest = std::array<uint8_t, 16>;

/// XXH3-128 of bytes that arrive in pieces, in the canonical form that xxh128sum prints. One per thread;
/// movable.
class Xxh128Stream {
 public:
  Xxh128Stream();
  ~Xxh128Stream();
  Xxh128Stream(Xxh128Stream&&) noexcept;
  Xxh128Stream& operator=(Xxh128Stream&&) noexcept;
  void Update(ByteSpan bytes);
  /// The digest of everything so far; may be called at any time.
  Xxh128Digest Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

using Sha256Digest = std::array<uint8_t, 32>;

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces. One per thread; movable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Update(ByteSpan bytes);
  /// The digest of everything so far; may be called at any time.
  Sha256Digest Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(ByteSpan bytes);

/// CRC-32C (Castagnoli), as of RFC 3720, appendix B.4.
uint32_t Crc32c(ByteSpan bytes);

}  // namespace trainwright

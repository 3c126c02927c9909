#include "lib/base/checksum.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <cstring>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// The remainder of each byte value, for the reflected polynomial.
constexpr std::array<uint32_t, 256> kCrc32cTable = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82f63b78u : 0u);
    table[byte] = remainder;
  }
  return table;
}();

}  // namespace

uint64_t Xxh3(ByteSpan bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Xxh3Stream::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(state_->xxh);
}
Xxh3Stream::~Xxh3Stream() = default;
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;
void Xxh3Stream::Update(ByteSpan bytes) {
  XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size());
}
uint64_t Xxh3Stream::Digest() const {
  return XXH3_64bits_digest(state_->xxh);
}

struct Xxh128Stream::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Xxh128Stream::Xxh128Stream() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh);
}
Xxh128Stream::~Xxh128Stream() = default;
Xxh128Stream::Xxh128Stream(Xxh128Stream&&) noexcept = default;
Xxh128Stream& Xxh128Stream::operator=(Xxh128Stream&&) noexcept = default;
void Xxh128Stream::Update(ByteSpan bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}
Xxh128Digest Xxh128Stream::Digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh));
  Xxh128Digest digest;
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  TRAINWRIGHT_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(ByteSpan bytes) {
  TRAINWRIGHT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::Digest() const {
  const State copy;
  Sha256Digest digest;
  TRAINWRIGHT_CHECK(EVP_MD_CTX_copy_ex(copy.context, state_->context) == 1);
  TRAINWRIGHT_CHECK(EVP_DigestFinal_ex(copy.context, digest.data(), nullptr) == 1);
  return digest;
}

Sha256Digest Sha256Of(ByteSpan bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Digest();
}

uint32_t Crc32c(ByteSpan bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) crc = crc >> 8 ^ kCrc32cTable[(crc ^ byte) & 0xff];
  return ~crc;
}

}  // namespace trainwright

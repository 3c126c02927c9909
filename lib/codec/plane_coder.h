/// Coding of one byte plane of a block: as it is, as one value, as a zstd frame, or by rANS with tables that
/// change along the plane. man/trainwright-codec.5, section PLANES.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/codec/cpu/kernels.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/codec/tensor_encoder.h"

namespace trainwright::codec {

/// Tables change at multiples of this many symbols.
inline constexpr size_t kRunUnit = 4096;

struct EncodedPlane {
  PlaneMode mode = PlaneMode::kRaw;
  uint32_t size_bytes = 0;
};

/// Encodes planes, one after another. Holds the scratch memory; one per thread.
class PlaneEncoder {
 public:
  PlaneEncoder();
  ~PlaneEncoder();
  /// \param out room for the plane as it is
  /// \param plane at most 2^20 bytes, not empty
  EncodedPlane Encode(const Kernels& kernels, ByteSpan plane, CodecLevel level, uint8_t* out);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

/// Bits that Encode would need, about, without trying zstd.
uint64_t EstimatePlaneBits(const Kernels& kernels, ByteSpan plane);

/// Decodes a plane from its start to its end. Holds the scratch memory; one per plane and thread.
class PlaneDecoder {
 public:
  PlaneDecoder();
  ~PlaneDecoder();
  /// \param size of the decoded plane; memory grows with it only
  /// \param coded must outlive the reads
  /// \throws Error{kBadInput} with `offset` in `object`
  void Open(const Kernels& kernels, PlaneMode mode, ByteSpan coded, size_t size, const std::string& object,
            uint64_t offset);
  /// The next `n` bytes, valid until the next call; n <= kRunUnit, and equal but for the last.
  /// \param writable in memory that the caller may change
  const uint8_t* Read(size_t n);
  uint8_t* ReadWritable(size_t n);
  /// Checks that nothing is left over.
  /// \throws Error{kBadInput}
  void Close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainwright::codec

/// What a compressed checkpoint says about itself, in both of its forms:
/// man/trainwright-compressed-checkpoint.5.
///
/// A compressed checkpoint holds a safetensors file as one coded tensor (lib/codec/tensor_encoder.h) for each
/// of its tensors, in the order of their data. As a container it is a safetensors file itself; as a stream it
/// can be written to, and read from, a pipe. Both hold the same coded tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/codec/tensor_encoder.h"
#include "lib/formats/safetensors.h"

namespace trainwright {

enum class CompressedForm { kSafetensors, kStream };

/// The problem of a safetensors file that is taken for a compressed one.
inline constexpr char kNotCompressed[] = "is not compressed: it is a plain safetensors file";

/// What is known before the first tensor is read.
struct CompressedHead {
  CodecLevel level = CodecLevel::kDefault;
  std::string writer;                     ///< tool and version, "ckpt-compress 0.1.0"
  std::string source_header;              ///< the JSON text of the source, byte by byte
  uint64_t source_header_hash = 0;        ///< XXH3 of that
  SafetensorsHeader source;               ///< the same, parsed
  std::optional<Xxh128Digest> base_hash;  ///< of the whole base

  /// What ties a coded tensor to its place: BlockDecoder's identity.
  uint64_t Identity(const std::string& tensor_name) const;
  uint64_t SourceBytes() const { return source.data_offset + source.data_bytes(); }
  /// The first bytes of the source.
  std::vector<uint8_t> SourceHead() const;
};

/// What is known after the last.
struct CompressedTail {
  Xxh128Digest source_hash{};         ///< of the whole source file
  std::vector<uint64_t> coded_bytes;  ///< sizes of the coded tensors, as source.entries
};

/// Parses the first bytes of a safetensors file into a head.
/// \throws Error{kBadInput}
CompressedHead HeadOf(ByteSpan source_head, const std::string& path);

/// "fast", "default", "max".
std::string NameOf(CodecLevel level);

/// A coded tensor whose prologue claims to be larger is none: side information grows with rows and columns,
/// which are fewer than elements.
uint64_t MostPrologueBytes(const SafetensorsEntry& entry);

/// What is left of a damaged head of either form: the original's header, and the base's hash if it is
/// readable. Both may have changed; whether the header has, the identities of the coded tensors show.
struct FoundHead {
  CompressedHead head;
  uint64_t end = 0;  ///< where the original's header ends in the file
};
/// \param bytes of the file from its beginning on, as many as a head may have
/// \returns nothing where the original's header is not there, or is no header
std::optional<FoundHead> FindHead(ByteSpan bytes, const std::string& path);

// Containers.

/// Size of the container's header with its 8 bytes of length; it depends on the head alone, so that the
/// header can be written last.
/// \throws Error{kUsage} when it would exceed the limit of the format
uint64_t ContainerHeadBytes(const CompressedHead& head);
std::vector<uint8_t> EncodeContainerHead(const CompressedHead& head, const CompressedTail& tail);
/// Whether a safetensors file is a container; one that is not sound is one, too.
bool IsContainer(const SafetensorsHeader& header);
/// \param bytes the first SafetensorsHeadBytes() bytes
/// \throws Error{kBadInput}
void ParseContainerHead(ByteSpan bytes, const std::string& path, CompressedHead* head, CompressedTail* tail);

// Streams.

inline constexpr size_t kStreamPrefixBytes = 16;
inline constexpr size_t kStreamTrailerBytes = 24;

/// Whether a file of these first 8 bytes (or more) is a stream.
bool IsStream(ByteSpan prefix);
std::vector<uint8_t> EncodeStreamHead(const CompressedHead& head);
/// Size of the head of which these are the first kStreamPrefixBytes.
/// \throws Error{kBadInput}
uint64_t StreamHeadBytes(ByteSpan prefix, const std::string& path);
CompressedHead ParseStreamHead(ByteSpan bytes, const std::string& path);
/// What follows the coded tensors: footer and trailer.
std::vector<uint8_t> EncodeStreamEnd(const CompressedHead& head, const CompressedTail& tail);
uint64_t StreamEndBytes(const CompressedHead& head);
/// \param bytes exactly StreamEndBytes()
/// \param offset where they are, for messages
CompressedTail ParseStreamEnd(ByteSpan bytes, const CompressedHead& head, const std::string& path,
                              uint64_t offset);

}  // namespace trainwright

/// Reading and writing of safetensors files (the Hugging Face format: u64 header size, JSON header, raw
/// tensors). Torch-free: data is bytes. \source https://huggingface.co/docs/safetensors (format section)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< "F32", "BF16", "F16", "F64", "I64", "I32", "U8", "F4", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< byte range inside the data part
};

/// Bits of one element of a dtype name: 4, 6, or whole bytes; 0 when unknown.
uint64_t SafetensorsElementBits(const std::string& dtype);

/// What a file's header says. Entries are in data order.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  uint64_t data_offset = 0;                     ///< where the data part starts in the file
  uint64_t data_bytes() const { return entries.empty() ? 0 : entries.back().end; }
  const SafetensorsEntry* Find(const std::string& name) const;
};

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;  ///< the reference library's limit

/// Size of the header whose first 8 bytes (or more) these are, with these 8.
/// \throws Error{kBadInput}
uint64_t SafetensorsHeadBytes(ByteSpan prefix, const std::string& path);

/// The 8 bytes of its length, and the text of a header.
std::vector<uint8_t> JoinSafetensorsHead(std::string_view text);

/// Parses and checks a file's header by every rule of the format that does not need the size of the file.
/// \param head the first SafetensorsHeadBytes() bytes
/// \throws Error{kBadInput} naming `path`
SafetensorsHeader ParseSafetensorsHead(ByteSpan head, const std::string& path);

/// Parses and checks a whole file's header by every rule of the format: sizes, ranges without gaps or overlap
/// that cover the data part, known dtypes, no duplicate names.
/// \throws Error{kBadInput} naming `path`
SafetensorsHeader ParseSafetensors(ByteSpan file, const std::string& path);

/// One tensor to write; the bytes are only read during WriteSafetensors, or made then, one tensor at a time.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  ByteSpan data;
  std::function<std::vector<uint8_t>()> make = {};  ///< where set, gives the bytes instead of `data`
  /// Where set, hands them to `write` part after part instead; for WriteSafetensors alone.
  std::function<void(const std::function<void(ByteSpan part)>& write)> stream = {};
};

/// What WriteSafetensors writes in front of the data.
std::vector<uint8_t> EncodeSafetensorsHead(const std::vector<SafetensorsTensor>& tensors,
                                           const std::map<std::string, std::string>& metadata);

/// Writes header and data. Same input, same bytes: keys sorted, header padded with spaces to 8 bytes, tensors
/// in the given order.
void WriteSafetensors(ByteSink* sink, const std::vector<SafetensorsTensor>& tensors,
                      const std::map<std::string, std::string>& metadata);

}  // namespace trainwright

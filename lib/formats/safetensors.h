/// Reading and writing of safetensors files (the Hugging Face format: u64 header size, JSON header, raw
/// tensors). Torch-free: data is bytes. \source https://huggingface.co/docs/safetensors (format section)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< "F32", "BF16", "F16", "F64", "I64", "I32", "U8", ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< byte range inside the data part
};

/// Bytes of one element of a dtype name; 0 when unknown.
uint64_t SafetensorsElementBytes(const std::string& dtype);

/// What a file's header says. Entries are in data order.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  uint64_t data_offset = 0;                     ///< where the data part starts in the file
  const SafetensorsEntry* Find(const std::string& name) const;
};

/// Parses and checks a whole file's header by every rule of the format: sizes, ranges without gaps or overlap
/// that cover the data part, known dtypes, no duplicate names. \throws Error{kBadInput} naming `path`
SafetensorsHeader ParseSafetensors(ByteSpan file, const std::string& path);

/// One tensor to write; the bytes are only read during WriteSafetensors, or made then, one tensor at a time.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  ByteSpan data;
  std::function<std::vector<uint8_t>()> make = {};  ///< where set, gives the bytes instead of `data`
};

/// Writes header and data. Same input, same bytes: keys sorted, header padded with spaces to 8 bytes, tensors
/// in the given order.
void WriteSafetensors(ByteSink* sink, const std::vector<SafetensorsTensor>& tensors,
                      const std::map<std::string, std::string>& metadata);

}  // namespace trainwright

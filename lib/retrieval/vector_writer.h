/// Writing files of vectors: .npy, raw float32 under a header, and JSON lines. The layouts are in
/// man/trainwright-vectors.5.
///
/// A vector is a row of `columns` fp32 numbers. Names of rows ("ids") lie beside .npy and raw files, in
/// NAME.ids, one a line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

enum class VectorFormat { kNpy, kRaw, kJsonl };

/// "npy", "raw" and "jsonl"; "auto" goes by how the path ends: .npy, .f32, .jsonl.
/// \throws Error{kUsage} naming --format
VectorFormat VectorFormatOf(const std::string& name, const std::string& path);
const char* NameOf(VectorFormat format);

/// Where the names of a file's rows are.
std::string IdsPathOf(const std::string& path);

struct VectorFileInfo {
  VectorFormat format = VectorFormat::kNpy;
  uint32_t columns = 0;         ///< at least 1
  bool normalized = false;      ///< whether each row has the length 1; raw files record it
  Sha256Digest model_sha256{};  ///< of the weights that made them; raw files record it
};

/// Writes rows as they come. Of .npy and raw files the beginning holds their number and is written last.
class VectorWriter {
 public:
  /// \param sink takes the rows; not owned
  /// \param beginning the same sink where the file has a beginning to write last; null of JSON lines
  /// \param rows that the sink has already, from a run that this one continues: then nothing is written here
  VectorWriter(const VectorFileInfo& info, ByteSink* sink, OverwritableSink* beginning, uint64_t rows = 0);

  /// \param values [n, columns], finite
  /// \param ids [n], or empty: then JSON lines have the rows' numbers, and the others need none
  /// \throws Error{kNonFinite} naming the row; what the sink throws
  void Add(std::span<const float> values, std::span<const std::string> ids);
  uint64_t rows() const { return rows_; }
  /// Writes the beginning. Does not commit the sink.
  void Finish();

 private:
  void AddLines(std::span<const float> values, std::span<const std::string> ids);

  VectorFileInfo info_;
  ByteSink* sink_;
  OverwritableSink* beginning_;
  uint64_t rows_;
};

/// The bytes before the first row of a .npy or raw file of this many rows; as many for every number.
std::vector<uint8_t> VectorFileBeginning(const VectorFileInfo& info, uint64_t rows);

}  // namespace trainwright

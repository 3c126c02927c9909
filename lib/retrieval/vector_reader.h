/// Reading files of vectors in any format that VectorWriter knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trainwright {

/// Reads rows from the first to the last. Not thread-safe.
class VectorReader {
 public:
  virtual ~VectorReader() = default;
  virtual uint32_t columns() const = 0;
  /// Whether the rows have names; else Read gives their numbers, from 0.
  virtual bool has_ids() const = 0;
  /// Replaces both by the next rows, at most `most_rows` > 0 of them.
  /// \param values [n, columns]
  /// \returns n; 0 after the last
  /// \throws Error{kBadInput} naming the place: a number that is not finite, other columns, more or fewer
  ///     names than rows, a file that was written to meanwhile; Error{kIo}
  virtual size_t Read(size_t most_rows, std::vector<float>* values, std::vector<std::string>* ids) = 0;
  /// Of the file's bytes, without those of its names, in hexadecimal; reads the file once more.
  virtual std::string Sha256() const = 0;
};

/// Opens a file of one of the three formats, which its first bytes identify.
/// \param path of a regular file
/// \throws Error{kBadInput} on what is not one of them, .npy of other than two dimensions of little-endian
///     float32 in C order, a size that is not that of its rows, no row at all; Error{kIo}
std::unique_ptr<VectorReader> OpenVectors(const std::string& path);

/// All rows at once.
/// \param ids null: not wanted
std::vector<float> ReadAllVectors(VectorReader* reader, std::vector<std::string>* ids);

}  // namespace trainwright

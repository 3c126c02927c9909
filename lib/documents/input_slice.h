/// One of n parts of the inputs, for as many machines or processes.
///
/// The files lie end to end on a line of their stored bytes, which is cut into n parts of equal length; a
/// record belongs to the part in which its first byte lies. In a compressed file the stored position of a
/// record is interpolated from its place in the decompressed data, and that of a row of a parquet file from
/// its number. So every record is in exactly one part, the parts are contiguous, and their documents one
/// after the other are those of the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/documents/document_reader.h"

namespace trainwright {

struct InputSlice {
  uint64_t number = 1, count = 1;  ///< 1 <= number <= count
};

/// "3/8".
/// \throws Error{kUsage} naming --slice
InputSlice ParseInputSlice(const std::string& text);

/// What of the inputs lies in the slice. A compressed file that a boundary cuts is decompressed once to
/// measure it.
/// \throws Error{kUsage} for inputs that are no regular files; Error{kIo}, Error{kBadInput}
std::vector<DocumentInput> SliceOf(const std::vector<DocumentInput>& inputs, const InputSlice& slice);

/// The bytes of the records that begin in [begin, end) of a file's decompressed bytes, delimiters included.
/// \param stored_bytes_read counts what is read of the file
/// \param stored_hash where not null, takes it in
std::unique_ptr<ByteSource> OpenRecordRange(const DocumentInput& input, uint64_t* stored_bytes_read,
                                            Sha256* stored_hash = nullptr);

}  // namespace trainwright

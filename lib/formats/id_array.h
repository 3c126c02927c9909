/// Token ids in arrays of other programs: NumPy's .npy and raw memory, integers of 1 to 8 bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/io/byte_source.h"

namespace trainwright {

/// The type of an array's elements.
struct IntegerType {
  int bytes = 2;  ///< 1, 2, 4 or 8; little-endian
  bool is_signed = false;
};

struct NpyHeader {
  IntegerType type;             ///< of floating-point numbers that of their bits
  std::vector<uint64_t> shape;  ///< rows first; their product fits into 63 bits
  bool is_truth = false;        ///< one byte each, 0 or 1: a mask, no ids
  bool by_columns = false;      ///< column-major, which of one dimension means nothing
  uint64_t float_one = 0;       ///< of floating-point numbers, as of MaskType: a mask, no ids
};

/// The label that libraries write where nothing is predicted.
inline constexpr int64_t kNoLabel = -100;

/// What an array holds, for messages.
struct ArrayMeaning {
  const char *one, *many;
  bool may_be_floats = false;  ///< floating-point numbers are read, too
  bool may_be_none = false;    ///< kNoLabel is, and stands for no id: kNoId
};
inline constexpr ArrayMeaning kTokenIds = {"token id", "ids"}, kRowLengths = {"length of a row", "lengths"},
                              kMaskValues = {"value of a mask", "values of a mask", true},
                              kLabelValues = {"label", "labels", false, true};

/// Reads the header of a .npy file up to its data.
/// \throws Error{kBadInput}: not one, not of integers (or floating-point numbers, where they may be),
///     big-endian, of a negative size
NpyHeader ReadNpyHeader(BufferedReader* reader, const ArrayMeaning& meaning = kTokenIds);

/// The data of an array row by row. A column-major one of two dimensions is held in memory.
/// \param reader at the data, after the header
/// \throws Error{kBadInput}: column-major data that is cut, goes on after the array, or is larger than 1 GiB
std::unique_ptr<BufferedReader> ByRows(const NpyHeader& header, std::unique_ptr<BufferedReader> reader);

/// Reads `count` integers.
/// \throws Error{kBadInput} when the data ends before, or one is no id: negative, or above 2^32 - 2
void ReadIds(IntegerType type, size_t count, BufferedReader* reader, std::vector<uint32_t>* ids,
             const ArrayMeaning& meaning = kTokenIds);

/// How the values of a mask are written.
struct MaskType {
  IntegerType bits;        ///< numbers from 0 on, or truth values, unless:
  uint64_t float_one = 0;  ///< of floating-point numbers, which are 0 and 1 alone, the bits of 1
};

/// Reads `count` values of a mask, of which those that are not 0 keep an id.
/// \throws Error{kBadInput} as ReadIds, and on a floating-point number that is neither 0 nor 1
void ReadMask(MaskType type, size_t count, BufferedReader* reader, std::vector<uint32_t>* mask);

/// Reads an id for each value of `mask`, and keeps those whose value is not 0. The others are padding, which
/// may be any numbers.
/// \throws Error{kBadInput} as ReadIds, of what is kept
void ReadKeptIds(IntegerType type, std::span<const uint32_t> mask, BufferedReader* reader,
                 std::vector<uint32_t>* ids);

/// The same of labels, which are ids, or kNoLabel where nothing is predicted: kNoId.
void ReadKeptLabels(IntegerType type, std::span<const uint32_t> mask, BufferedReader* reader,
                    std::vector<uint32_t>* labels);

}  // namespace trainwright

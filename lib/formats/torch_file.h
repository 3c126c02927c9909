/// Reading what `torch.save` writes, as data: a zip archive of tensors and a pickle that says how they are
/// nested.
///
/// A pickle is a program for a small stack machine that may call any function of Python. This reader runs
/// none: of the machine it has the instructions that lists, tuples, dictionaries, texts, numbers, truth
/// values and tensors of numbers or truth values need, knows the handful of names that PyTorch spells those
/// tensors with, and refuses every other name and instruction by name. \source PyTorch 2.11,
/// torch/serialization.py (layout of the archive); Python 3, pickletools (instructions)
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/formats/id_array.h"
#include "lib/formats/zip_archive.h"

namespace trainwright {

/// A row-major tensor of numbers or truth values.
struct TorchTensor {
  IntegerType type;  ///< of floating-point numbers that of their bits
  std::vector<uint64_t> shape;
  std::string storage;        ///< its entry in the archive
  uint64_t offset_bytes = 0;  ///< of the first element in the storage
  bool is_truth = false;      ///< one byte each, 0 or 1: a mask, no ids
  uint64_t float_one = 0;     ///< of floating-point numbers, as of MaskType: a mask, no ids
  std::string storage_type;   ///< as PyTorch names it: "torch.LongStorage"
};

/// A value of a pickle.
struct TorchValue {
  enum class Kind { kOther, kInteger, kTruth, kFloat, kText, kTensor, kList, kDictionary };
  Kind kind = Kind::kOther;  ///< kOther: none
  int64_t integer = 0;       ///< of kInteger; of kTruth 0 or 1
  double number = 0;         ///< of kFloat
  std::string text;
  std::unique_ptr<TorchTensor> tensor;   ///< of kTensor
  std::vector<const TorchValue*> items;  ///< of lists and tuples; values of dictionaries; never nullptr
  std::vector<std::string> keys;         ///< of dictionaries, one a value
  /// The value of a key, or nullptr.
  const TorchValue* Find(const std::string& key) const;
};

/// Values may hold each other in circles: do not follow them without end.
struct TorchTree {
  std::deque<TorchValue> values;
  const TorchValue* root = nullptr;
};

/// Memory: of the pickle, which has at most 256 MiB, some 16 times as much where it describes tensors,
/// 6 times where of numbers in lists; some 10 GiB whatever else it holds. Tensors stay in the archive.
/// \throws Error{kBadInput}: not such an archive; a name, instruction, type or layout that is not read
TorchTree ReadTorchFile(const ZipArchive& archive);

}  // namespace trainwright

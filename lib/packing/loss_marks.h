/// Which ids of a row are predicted, as files of fine-tuning data say it beside the ids: by labels, which are
/// the ids themselves or -100 where nothing is predicted, and by masks, which are 0 there. Where a file has
/// several, those ids are predicted that all of them have so.
/// \source transformers, DataCollatorForSeq2Seq (labels of -100); TRL, DataCollatorForLanguageModeling
/// (completion_mask, assistant_masks, seq_lengths)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/id_array.h"
#include "lib/formats/torch_file.h"
#include "lib/io/byte_source.h"

namespace trainwright {

inline constexpr char kLabelsName[] = "labels";
inline constexpr const char* kLossMaskNames[] = {"completion_mask", "assistant_masks"};

/// Refuses arrays beside the ids that mark what is predicted or where documents begin, and are not read.
/// \param has whether there is an array, or a key, of a name
/// \throws Error{kBadInput} naming it
void RefuseUnreadMarks(const std::string& object, const std::function<bool(const std::string&)>& has);

/// Of ids in arrays, read along with these. Not thread-safe.
class LossArrays {
 public:
  /// \param labels of as many elements as there are ids
  void SetLabels(std::unique_ptr<BufferedReader> labels, IntegerType type);
  /// \param mask likewise
  void AddMask(std::unique_ptr<BufferedReader> mask, MaskType type);
  bool any() const { return labels_ || !masks_.empty(); }
  /// Reads what belongs to the next ids.
  /// \param kept of each of them, 0 where it is padding
  /// \param ids those that are kept
  /// \param predicted gets 1 or 0 for each of these
  /// \throws Error{kBadInput} on labels that are other ids; as ReadIds and ReadMask
  void Read(std::span<const uint32_t> kept, std::span<const uint32_t> ids, std::vector<uint8_t>* predicted);
  /// The arrays, to see whether they are at their end.
  std::vector<BufferedReader*> Readers() const;

 private:
  struct Mask {
    std::unique_ptr<BufferedReader> values;
    MaskType type;
  };
  std::unique_ptr<BufferedReader> labels_;
  IntegerType labels_type_;
  std::vector<Mask> masks_;
  std::vector<uint32_t> scratch_;
};

/// Of ids in a dictionary of a pickle, as they lie there; refers to its values.
struct ListedMarks {
  const TorchValue* labels = nullptr;
  std::vector<const TorchValue*> masks = {};

  bool any() const { return labels != nullptr || !masks.empty(); }
  /// Those of one row of a list of rows.
  /// \throws Error{kBadInput} where they are no lists of as many rows
  ListedMarks OfRow(size_t row, size_t rows, const std::string& object) const;
};

ListedMarks MarksIn(const TorchValue& dictionary);

/// Labels beside ids that they are not.
Error LabelsOfOtherIds(const std::string& object);

}  // namespace trainwright

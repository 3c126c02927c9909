#include "lib/packing/loss_marks.h"

#include <utility>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {
namespace {

struct UnreadMark {
  const char *name, *reason, *hint;
};

constexpr UnreadMark kUnreadMarks[] = {
    {"loss_mask",
     "which some programs place beside the id that is predicted and some beside the one in front of it",
     "save it as completion_mask, beside the ids that are predicted, or leave it out"},
    {"seq_lengths", "so its rows hold several documents, which are not told apart",
     "save a document a row, or leave it out where each row is one"},
};

}  // namespace

void RefuseUnreadMarks(const std::string& object, const std::function<bool(const std::string&)>& has) {
  for (const UnreadMark& mark : kUnreadMarks) {
    if (!has(mark.name)) continue;
    throw Error(ErrorCode::kBadInput, object, std::string("has ") + mark.name + ", " + mark.reason, "",
                mark.hint);
  }
}

void LossArrays::SetLabels(std::unique_ptr<BufferedReader> labels, IntegerType type) {
  labels_ = std::move(labels);
  labels_type_ = type;
}

void LossArrays::AddMask(std::unique_ptr<BufferedReader> mask, MaskType type) {
  masks_.push_back({std::move(mask), type});
}

void LossArrays::Read(std::span<const uint32_t> kept, std::span<const uint32_t> ids,
                      std::vector<uint8_t>* predicted) {
  predicted->assign(ids.size(), 1);
  if (labels_) {
    ReadKeptLabels(labels_type_, kept, labels_.get(), &scratch_);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (scratch_[i] != kNoId && scratch_[i] != ids[i]) throw LabelsOfOtherIds(labels_->name());
      if (scratch_[i] == kNoId) (*predicted)[i] = 0;
    }
  }
  for (const Mask& mask : masks_) {
    ReadMask(mask.type, kept.size(), mask.values.get(), &scratch_);
    size_t id = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] == 0) continue;
      if (scratch_[i] == 0) (*predicted)[id] = 0;
      ++id;
    }
  }
}

std::vector<BufferedReader*> LossArrays::Readers() const {
  std::vector<BufferedReader*> readers;
  if (labels_) readers.push_back(labels_.get());
  for (const Mask& mask : masks_) readers.push_back(mask.values.get());
  return readers;
}

ListedMarks ListedMarks::OfRow(size_t row, size_t rows, const std::string& object) const {
  const auto of_row = [&](const TorchValue* value) {
    if (value->kind == TorchValue::Kind::kList && value->items.size() == rows) return value->items[row];
    throw Error(ErrorCode::kBadInput, object,
                "has a list of rows of ids, and labels or a mask of what is predicted that are no list of as "
                "many rows");
  };
  ListedMarks marks;
  if (labels != nullptr) marks.labels = of_row(labels);
  for (const TorchValue* mask : masks) marks.masks.push_back(of_row(mask));
  return marks;
}

ListedMarks MarksIn(const TorchValue& dictionary) {
  ListedMarks marks = {.labels = dictionary.Find(kLabelsName)};
  for (const char* name : kLossMaskNames) {
    if (const TorchValue* mask = dictionary.Find(name)) marks.masks.push_back(mask);
  }
  return marks;
}

Error LabelsOfOtherIds(const std::string& object) {
  return {ErrorCode::kBadInput, object, "has labels that are neither -100 nor the ids beside them", "",
          "a label is at the place of its own id, as in transformers: write those that are shifted, or of "
          "masked words, so"};
}

}  // namespace trainwright

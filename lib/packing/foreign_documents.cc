#include "lib/packing/foreign_documents.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/id_array.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/formats/torch_file.h"
#include "lib/formats/zip_archive.h"
#include "lib/io/byte_source.h"
#include "lib/packing/loss_marks.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

// The ids of one file, row by row; a row is a document, or several with the end-of-text id between them.
class ForeignDocuments::Rows {
 public:
  virtual ~Rows() = default;
  /// Some of the ids of a row, which may be none.
  /// \returns false at the end
  [[nodiscard]] virtual bool Next(Run* run) = 0;
  /// Whether the file says which ids are predicted.
  virtual bool marked() const { return false; }
  /// \throws Error{kBadInput} when the file was written to since it was opened
  virtual void ThrowIfWritten() const {}
};

namespace {

using Rows = ForeignDocuments::Rows;
using Run = ForeignDocuments::Run;

constexpr size_t kRunIds = 1 << 16;
constexpr uint32_t kLlmCMagic16 = 20240520, kLlmCMagic32 = 20240801;
constexpr size_t kLlmCHeaderBytes = 1024;
constexpr char kMegatronMagic[] = "MMIDIDX";  // and two zeros
constexpr size_t kMegatronHeaderBytes = 34;
constexpr char kNpyMagic[] = "\x93NUMPY";
constexpr uint32_t kGpt2Vocabulary = 50257, kGpt2EndOfText = 50256;
constexpr uint32_t kLlama3Vocabulary = 128256, kLlama3BeginOfText = 128000;
constexpr const char* kIdNames[] = {"input_ids", "tokens", "ids"};
constexpr const char* kLengthNames[] = {"sequence_lengths", "lengths"};
constexpr char kMaskName[] = "attention_mask";

// One row of `count` integers.
class FlatRow final : public Rows {
 public:
  FlatRow(std::unique_ptr<ByteSource> source, IntegerType type, uint64_t count)
      : reader_(std::move(source)), type_(type), left_(count) {}
  bool Next(Run* run) override {
    if (left_ == 0) return false;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(left_, kRunIds));
    ReadIds(type_, count, &reader_, &run->ids);
    left_ -= count;
    run->row_ends = left_ == 0;
    return true;
  }

 private:
  BufferedReader reader_;
  const IntegerType type_;
  uint64_t left_;
};

// What tells the ids of a padded row from its padding. Where there is a mask, lengths only agree with it.
struct Padding {
  std::unique_ptr<BufferedReader> lengths, mask;
  IntegerType lengths_type;
  MaskType mask_type;
  std::optional<uint32_t> length;  // of the only row, in place of `lengths`
};

Error LengthIsNotOfMask(const std::string& name, uint64_t row, uint64_t length, uint64_t kept) {
  return {ErrorCode::kBadInput, name,
          "says that row " + std::to_string(row) + " has " + std::to_string(length) + " ids, and its " +
              kMaskName + " keeps " + std::to_string(kept)};
}

Error LengthIsNotOfRow(const std::string& name, uint64_t row, uint64_t length, uint64_t columns) {
  return {ErrorCode::kBadInput, name,
          "says that row " + std::to_string(row) + " has " + std::to_string(length) + " ids, and rows have " +
              std::to_string(columns)};
}

class MatrixRows final : public Rows {
 public:
  MatrixRows(std::unique_ptr<BufferedReader> ids, IntegerType type, uint64_t rows, uint64_t columns,
             Padding padding, LossArrays marks)
      : ids_(std::move(ids)),
        type_(type),
        rows_(rows),
        columns_(columns),
        padding_(std::move(padding)),
        marks_(std::move(marks)) {}

  bool Next(Run* run) override {
    if (row_ == rows_) return RequireEnds(), false;
    if (column_ == 0) StartRow();
    const size_t count = static_cast<size_t>(std::min<uint64_t>(columns_ - column_, kRunIds));
    if (padding_.mask || length_ || marks_.any()) {
      ReadKept(count);
      ReadKeptIds(type_, scratch_, ids_.get(), &run->ids);
      kept_ += run->ids.size();
      if (marks_.any()) marks_.Read(scratch_, run->ids, &run->predicted);
    } else {
      ReadIds(type_, count, ids_.get(), &run->ids);
    }
    column_ += count;
    run->row_ends = column_ == columns_;
    if (run->row_ends) EndRow();
    return true;
  }

 private:
  void StartRow() {
    kept_ = 0;
    length_ = padding_.length;
    if (padding_.lengths) {
      ReadIds(padding_.lengths_type, 1, padding_.lengths.get(), &scratch_, kRowLengths);
      length_ = scratch_[0];
    }
    if (length_ && *length_ > columns_) throw LengthIsNotOfRow(LengthsName(), row_, *length_, columns_);
  }
  /// Which of the next ids are no padding.
  void ReadKept(size_t count) {
    if (padding_.mask) return ReadMask(padding_.mask_type, count, padding_.mask.get(), &scratch_);
    const uint64_t left = length_ ? *length_ - std::min<uint64_t>(*length_, column_) : count;
    scratch_.assign(count, 0);
    std::fill_n(scratch_.begin(), std::min<uint64_t>(count, left), 1u);
  }
  void EndRow() {
    if (padding_.mask && length_ && *length_ != kept_) {
      throw LengthIsNotOfMask(LengthsName(), row_, *length_, kept_);
    }
    column_ = 0;
    ++row_;
  }
  const std::string& LengthsName() const {
    return padding_.lengths ? padding_.lengths->name() : ids_->name();
  }

  /// An array ends with its entry of the archive, whose end checks the CRC-32 of the whole.
  void RequireEnds() const {
    BufferedReader* const lengths = rows_ > 0 ? padding_.lengths.get() : nullptr;  // else never read
    std::vector<BufferedReader*> readers = marks_.Readers();
    readers.insert(readers.end(), {ids_.get(), lengths, padding_.mask.get()});
    for (BufferedReader* reader : readers) {
      if (reader == nullptr || reader->Peek(1).empty()) continue;
      throw BadInputAt(reader->position(), reader->name(), "is corrupt: it goes on after its array");
    }
  }

  std::unique_ptr<BufferedReader> ids_;
  const IntegerType type_;
  const uint64_t rows_, columns_;
  Padding padding_;
  LossArrays marks_;
  uint64_t row_ = 0, column_ = 0, kept_ = 0;
  std::optional<uint32_t> length_;  // of the row
  std::vector<uint32_t> scratch_;
};

void RefuseTruthAsLengths(bool is_truth, const std::string& name) {
  if (is_truth) throw Error(ErrorCode::kBadInput, name, "holds truth values, which are no lengths of rows");
}

std::unique_ptr<Rows> RowsOfArray(std::unique_ptr<BufferedReader> ids, const NpyHeader& header,
                                  Padding padding, LossArrays marks) {
  const std::vector<uint64_t>& shape = header.shape;
  if (header.is_truth) throw Error(ErrorCode::kBadInput, ids->name(), "holds truth values, which are no ids");
  if (shape.empty() || shape.size() > 2) {
    throw Error(ErrorCode::kBadInput, ids->name(),
                "has " + std::to_string(shape.size()) + " dimensions; ids have one, or two: rows of ids");
  }
  const uint64_t rows = shape.size() == 1 ? 1 : shape[0];
  const uint64_t columns = shape.back();
  return std::make_unique<MatrixRows>(std::move(ids), header.type, columns == 0 ? 0 : rows, columns,
                                      std::move(padding), std::move(marks));
}

class LlmCRows final : public Rows {
 public:
  explicit LlmCRows(const std::string& path) : file_(path) {
    const ByteSpan bytes = file_.bytes();
    if (bytes.size() < kLlmCHeaderBytes) throw CutShortAt(bytes.size(), path, "llm.c file");
    ByteParser parser(bytes);
    const auto magic = parser.Read<uint32_t>();
    const auto version = parser.Read<uint32_t>();
    const auto count = parser.Read<uint32_t>();
    wide_ = magic == kLlmCMagic32;
    if (!wide_ && magic != kLlmCMagic16)
      throw BadInputAt(0, path, "is no llm.c file: its magic number is another");
    if (version != (wide_ ? 7u : 1u)) {
      throw BadInputAt(4, path,
                       "is an llm.c file of version " + std::to_string(version) +
                           "; this program reads 1 (16-bit ids) and 7 (32-bit ids)");
    }
    const uint64_t expected = kLlmCHeaderBytes + uint64_t{count} * (wide_ ? 4 : 2);
    if (bytes.size() != expected) {
      throw BadInputAt(8, path,
                       "is corrupt or cut: its header promises " + std::to_string(expected) +
                           " bytes, and it has " + std::to_string(bytes.size()));
    }
    rows_ = std::make_unique<FlatRow>(MemorySource(bytes.subspan(kLlmCHeaderBytes), path),
                                      IntegerType{wide_ ? 4 : 2, false}, count);
  }
  bool wide() const { return wide_; }
  bool Next(Run* run) override { return rows_->Next(run); }
  void ThrowIfWritten() const override { file_.ThrowIfWritten(); }

 private:
  MappedFile file_;
  bool wide_ = false;
  std::unique_ptr<Rows> rows_;
};

class NanoGptRows final : public Rows {
 public:
  explicit NanoGptRows(const std::string& path) : file_(path) {
    const uint64_t size = file_.bytes().size();
    if (size % 2 != 0) throw CutShortAt(size, path, "file of 16-bit ids");
    rows_ = std::make_unique<FlatRow>(MemorySource(file_.bytes(), path), IntegerType{2, false}, size / 2);
  }
  bool Next(Run* run) override { return rows_->Next(run); }
  void ThrowIfWritten() const override { file_.ThrowIfWritten(); }

 private:
  MappedFile file_;
  std::unique_ptr<Rows> rows_;
};

// A path with another ending.
std::string WithEnding(const std::string& path, const std::string& ending) {
  return path.substr(0, path.size() - 4) + ending;
}

class MegatronRows final : public Rows {
 public:
  explicit MegatronRows(const std::string& path)
      : index_file_(WithEnding(path, ".idx")), ids_file_(WithEnding(path, ".bin")) {
    const ByteSpan index = index_file_.bytes();
    if (index.size() < kMegatronHeaderBytes)
      throw CutShortAt(index.size(), index_file_.path(), "Megatron index");
    ByteParser parser(index);
    const ByteSpan magic = parser.ReadBytes(9);
    const auto version = parser.Read<uint64_t>();
    const auto type = parser.Read<uint8_t>();
    sequences_ = parser.Read<uint64_t>();
    const auto boundaries = parser.Read<uint64_t>();
    if (AsText(magic) != std::string(kMegatronMagic) + std::string(2, '\0') || version != 1) {
      throw Refuse(0, "is no Megatron index of version 1");
    }
    switch (type) {
      case 1:
        type_ = {1, false};
        break;
      case 2:
        type_ = {1, true};
        break;
      case 3:
        type_ = {2, true};
        break;
      case 4:
        type_ = {4, true};
        break;
      case 5:
        type_ = {8, true};
        break;
      case 8:
        type_ = {2, false};
        break;
      default:
        throw Refuse(17, "has elements of type " + std::to_string(type) + ", which is not of integers");
    }
    const uint64_t left = index.size() - kMegatronHeaderBytes;
    if (boundaries == 0 || sequences_ > left / 12 || boundaries > (left - sequences_ * 12) / 8) {
      throw Refuse(18, "is corrupt or cut: " + std::to_string(sequences_) + " sequences and " +
                           std::to_string(boundaries) + " boundaries do not fit into it");
    }
    documents_ = boundaries - 1;
    lengths_ = index.subspan(kMegatronHeaderBytes, sequences_ * 4);
    offsets_ = index.subspan(kMegatronHeaderBytes + sequences_ * 4, sequences_ * 8);
    boundaries_ = index.subspan(kMegatronHeaderBytes + sequences_ * 12, boundaries * 8);
    if (At<uint64_t>(boundaries_, 0) != 0 || At<uint64_t>(boundaries_, documents_) != sequences_) {
      throw Refuse(kMegatronHeaderBytes + sequences_ * 12,
                   "is corrupt: its documents do not cover its sequences");
    }
  }

  bool Next(Run* run) override {
    if (document_ == documents_) return false;
    const auto begin = At<uint64_t>(boundaries_, document_), end = At<uint64_t>(boundaries_, document_ + 1);
    if (begin > end || end > sequences_)
      throw Refuse(0, "is corrupt: document " + std::to_string(document_) + " ends before it begins");
    run->ids.clear();
    if (!reader_ && sequence_ < end) OpenSequence();
    if (reader_) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(left_, kRunIds));
      ReadIds(type_, count, reader_.get(), &run->ids);
      left_ -= count;
      if (left_ == 0) {
        reader_.reset();
        ++sequence_;
      }
    }
    run->row_ends = !reader_ && sequence_ == end;
    if (run->row_ends) ++document_;
    return true;
  }
  void ThrowIfWritten() const override {
    index_file_.ThrowIfWritten();
    ids_file_.ThrowIfWritten();
  }

 private:
  template <typename Integer>
  static Integer At(ByteSpan array, uint64_t i) {
    Integer value;
    std::memcpy(&value, array.data() + i * sizeof(Integer), sizeof(Integer));
    return value;
  }
  Error Refuse(uint64_t offset, const std::string& why) const {
    return BadInputAt(offset, index_file_.path(), why);
  }

  void OpenSequence() {
    const auto length = At<int32_t>(lengths_, sequence_);
    const auto offset = At<uint64_t>(offsets_, sequence_);
    const ByteSpan ids = ids_file_.bytes();
    const uint64_t bytes =
        length < 0 ? UINT64_MAX : static_cast<uint64_t>(length) * static_cast<uint64_t>(type_.bytes);
    if (offset > ids.size() || bytes > ids.size() - offset) {
      throw Refuse(kMegatronHeaderBytes + sequences_ * 4 + sequence_ * 8,
                   "is corrupt, or its .bin is cut: sequence " + std::to_string(sequence_) +
                       " ends after byte " + std::to_string(ids.size()) + ", where " + ids_file_.path() +
                       " ends");
    }
    reader_ = std::make_unique<BufferedReader>(MemorySource(ids.subspan(offset, bytes), ids_file_.path()));
    left_ = static_cast<uint64_t>(length);
  }

  MappedFile index_file_, ids_file_;
  IntegerType type_;
  uint64_t sequences_ = 0, documents_ = 0;
  ByteSpan lengths_, offsets_, boundaries_;
  uint64_t document_ = 0, sequence_ = 0, left_ = 0;
  std::unique_ptr<BufferedReader> reader_;
};

using Shapes = std::vector<std::vector<uint64_t>>;

// What shapes the lengths of ids of this shape may have: one number a row.
Shapes LengthShapes(const std::vector<uint64_t>& ids) {
  return ids.size() == 2 ? Shapes{{ids[0]}} : Shapes{{1}, {}};
}

template <typename Names>
std::string Listed(const Names& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "nothing" : list;
}

class NpzRows final : public Rows {
 public:
  explicit NpzRows(const std::string& path) : file_(path), archive_(file_.bytes(), path) {
    const ZipEntry* ids = nullptr;
    for (const char* name : kIdNames) ids = ids != nullptr ? ids : archive_.Find(std::string(name) + ".npy");
    if (ids == nullptr && archive_.entries().size() == 1) ids = &archive_.entries()[0];
    if (ids == nullptr) {
      std::vector<std::string> names;
      for (const ZipEntry& entry : archive_.entries()) names.push_back(entry.name);
      throw Error(ErrorCode::kBadInput, path, "holds no array of ids: it has " + Listed(names), "",
                  "name it input_ids, tokens or ids");
    }
    auto reader = std::make_unique<BufferedReader>(archive_.Open(*ids));
    const NpyHeader header = ReadNpyHeader(reader.get());
    reader = ByRows(header, std::move(reader));
    Padding padding;
    NpyHeader of_lengths, of_mask;
    for (const char* name : kLengthNames) {
      if (!padding.lengths)
        padding.lengths = OpenArray(name, LengthShapes(header.shape), kRowLengths, &of_lengths);
    }
    padding.lengths_type = of_lengths.type;
    padding.mask = OpenArray(kMaskName, {header.shape}, kMaskValues, &of_mask);
    padding.mask_type = {of_mask.type, of_mask.float_one};
    LossArrays marks = OpenMarks(header.shape);
    marked_ = marks.any();
    rows_ = RowsOfArray(std::move(reader), header, std::move(padding), std::move(marks));
  }
  bool marked() const override { return marked_; }
  bool Next(Run* run) override { return rows_->Next(run); }
  void ThrowIfWritten() const override { file_.ThrowIfWritten(); }

 private:
  LossArrays OpenMarks(const std::vector<uint64_t>& shape) {
    RefuseUnreadMarks(archive_.name(),
                      [&](const std::string& name) { return archive_.Find(name + ".npy") != nullptr; });
    LossArrays marks;
    NpyHeader header;
    if (auto labels = OpenArray(kLabelsName, {shape}, kLabelValues, &header)) {
      marks.SetLabels(std::move(labels), header.type);
    }
    for (const char* name : kLossMaskNames) {
      if (auto mask = OpenArray(name, {shape}, kMaskValues, &header)) {
        marks.AddMask(std::move(mask), {header.type, header.float_one});
      }
    }
    return marks;
  }
  std::unique_ptr<BufferedReader> OpenArray(const std::string& name, const Shapes& shapes,
                                            const ArrayMeaning& meaning, NpyHeader* header) {
    const ZipEntry* entry = archive_.Find(name + ".npy");
    if (entry == nullptr) return nullptr;
    auto reader = std::make_unique<BufferedReader>(archive_.Open(*entry));
    *header = ReadNpyHeader(reader.get(), meaning);
    if (std::find(shapes.begin(), shapes.end(), header->shape) == shapes.end())
      throw Error(ErrorCode::kBadInput, reader->name(), "has another shape than the ids");
    RefuseTruthAsLengths(header->is_truth && &meaning == &kRowLengths, reader->name());
    return ByRows(*header, std::move(reader));
  }

  MappedFile file_;
  ZipArchive archive_;
  bool marked_ = false;
  std::unique_ptr<Rows> rows_;
};

// Ids that a pickle holds one by one.
class ListedIds final : public Rows {
 public:
  /// \param mask of as many numbers or truth values, 0 or false beside padding; or nullptr
  /// \param row its number, for messages
  ListedIds(const TorchValue* list, const TorchValue* mask, ListedMarks marks, std::optional<uint32_t> length,
            uint64_t row, std::string name)
      : list_(list),
        mask_(mask),
        marks_(std::move(marks)),
        length_(length),
        row_(row),
        name_(std::move(name)) {
    if (length_ && *length_ > list_->items.size()) {
      throw LengthIsNotOfRow(name_, row_, *length_, list_->items.size());
    }
    if (mask_ != nullptr) RequireAsLong(*mask_, "a mask that is");
    for (const TorchValue* of_loss : marks_.masks) RequireAsLong(*of_loss, "a mask that is");
    if (marks_.labels != nullptr) RequireAsLong(*marks_.labels, "labels that are");
  }
  bool Next(Run* run) override {
    if (done_) return false;
    run->ids.clear();
    run->predicted.clear();
    for (size_t i = 0; i < list_->items.size(); ++i) {
      const bool real = mask_ != nullptr ? Keeps(mask_->items[i]) : !length_ || i < *length_;
      if (!real) continue;
      run->ids.push_back(IdOf(list_->items[i]));
      if (marks_.any()) run->predicted.push_back(IsPredicted(i, run->ids.back()) ? 1 : 0);
    }
    if (length_ && *length_ != run->ids.size()) {
      throw LengthIsNotOfMask(name_, row_, *length_, run->ids.size());
    }
    run->row_ends = done_ = true;
    return true;
  }

 private:
  /// \param what "a mask that is"
  void RequireAsLong(const TorchValue& value, const std::string& what) const {
    if (value.kind == TorchValue::Kind::kList && value.items.size() == list_->items.size()) return;
    throw Error(ErrorCode::kBadInput, name_, "has " + what + " no list of as many numbers as there are ids");
  }
  bool IsPredicted(size_t i, uint32_t id) const {
    bool predicted = true;
    if (marks_.labels != nullptr) {
      const TorchValue& label = *marks_.labels->items[i];
      const bool is_integer = label.kind == TorchValue::Kind::kInteger;
      predicted = is_integer && label.integer == id;
      if (!predicted && !(is_integer && label.integer == kNoLabel)) throw LabelsOfOtherIds(name_);
    }
    for (const TorchValue* mask : marks_.masks) predicted = Keeps(mask->items[i]) && predicted;
    return predicted;
  }
  bool Keeps(const TorchValue* item) const {
    if (item->kind == TorchValue::Kind::kFloat) {
      if (item->number == 0 || item->number == 1) return item->number == 1;
      throw Error(ErrorCode::kBadInput, name_,
                  "has a mask of floating-point numbers, one of which is neither 0 nor 1");
    }
    const bool is_number = item->kind == TorchValue::Kind::kInteger && item->integer >= 0;
    if (!is_number && item->kind != TorchValue::Kind::kTruth) {
      throw Error(ErrorCode::kBadInput, name_,
                  "has a mask with something else in it than truth values and numbers from 0 on");
    }
    return item->integer != 0;
  }
  uint32_t IdOf(const TorchValue* item) const {
    if (item->kind != TorchValue::Kind::kInteger || item->integer < 0 || item->integer >= kNoId) {
      throw Error(ErrorCode::kBadInput, name_, "holds a list of ids with something else in it");
    }
    return static_cast<uint32_t>(item->integer);
  }

  const TorchValue *list_, *mask_;
  const ListedMarks marks_;
  const std::optional<uint32_t> length_;
  const uint64_t row_;
  const std::string name_;
  bool done_ = false;
};

// Rows of several parts, which are opened one after another.
class RowsInTurn final : public Rows {
 public:
  using OpenPart = std::function<std::unique_ptr<Rows>(size_t part)>;
  RowsInTurn(size_t parts, OpenPart open) : parts_(parts), open_(std::move(open)) {}
  bool Next(Run* run) override {
    while (true) {
      if (rows_ && rows_->Next(run)) return true;
      if (part_ == parts_) return false;
      rows_ = open_(part_++);
    }
  }

 private:
  const size_t parts_;
  const OpenPart open_;
  size_t part_ = 0;
  std::unique_ptr<Rows> rows_;
};

class TorchRows final : public Rows {
 public:
  explicit TorchRows(const std::string& path)
      : file_(path), archive_(file_.bytes(), path), tree_(ReadTorchFile(archive_)) {
    const TorchValue* root = tree_.root;
    const bool list_of_parts = root->kind == TorchValue::Kind::kList && !root->items.empty() &&
                               root->items[0]->kind != TorchValue::Kind::kInteger;
    marked_ = MarksOf(list_of_parts ? *root->items[0] : *root).any();
    rows_ = std::make_unique<RowsInTurn>(list_of_parts ? root->items.size() : 1,
                                         [this, root, list_of_parts](size_t part) {
                                           return RowsOf(list_of_parts ? *root->items[part] : *root);
                                         });
  }
  bool Next(Run* run) override { return rows_->Next(run); }
  void ThrowIfWritten() const override { file_.ThrowIfWritten(); }

  bool marked() const override { return marked_; }

 private:
  using Kind = TorchValue::Kind;

  /// What a part says of what is predicted.
  static ListedMarks MarksOf(const TorchValue& part) {
    return part.kind == Kind::kDictionary ? MarksIn(part) : ListedMarks();
  }

  std::unique_ptr<Rows> RowsOf(const TorchValue& value) {
    const ListedMarks marks = MarksOf(value);
    if (marks.any() != marked_) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "marks which ids are predicted in some of its parts, and not in others");
    }
    if (value.kind == Kind::kTensor) return RowsOfTensor(value, {}, {});
    if (value.kind == Kind::kList && (value.items.empty() || value.items[0]->kind == Kind::kInteger)) {
      return std::make_unique<ListedIds>(&value, nullptr, marks, std::nullopt, 0, archive_.name());
    }
    if (value.kind == Kind::kList) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "nests lists of ids too deep: a list of tensors is read");
    }
    if (value.kind != Kind::kDictionary) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "holds neither tensors nor lists or dictionaries of them");
    }
    RefuseUnreadMarks(archive_.name(), [&](const std::string& name) { return value.Find(name) != nullptr; });
    const TorchValue *ids = nullptr, *lengths = nullptr;
    for (const char* name : kIdNames) ids = ids != nullptr ? ids : value.Find(name);
    for (const char* name : kLengthNames) lengths = lengths != nullptr ? lengths : value.Find(name);
    if (ids == nullptr) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "holds no ids: its dictionary has " + Listed(value.keys), "",
                  "name them input_ids, tokens or ids");
    }
    if (lengths != nullptr && lengths->kind == Kind::kTensor) {
      RefuseTruthAsLengths(lengths->tensor->is_truth, archive_.name());
      RefuseFloats(*lengths->tensor, kRowLengths);
    }
    const TorchValue* mask = value.Find(kMaskName);
    if (ids->kind == Kind::kDictionary)
      throw Error(ErrorCode::kBadInput, archive_.name(), "nests dictionaries");
    if (ids->kind == Kind::kList) return RowsOfList(*ids, mask, marks, lengths);
    if (ids->kind != Kind::kTensor) {
      throw Error(ErrorCode::kBadInput, archive_.name(), "has ids that are neither tensors nor lists");
    }
    Padding padding;
    const std::vector<uint64_t>& shape = ids->tensor->shape;
    if (shape.size() == 2) {
      padding.lengths = OpenTensor(lengths, {shape[0]}, &padding.lengths_type);
    } else {
      padding.length = OnlyLength(lengths);
    }
    padding.mask = OpenMask(mask, shape, &padding.mask_type);
    return RowsOfTensor(*ids, std::move(padding), OpenMarks(marks, shape));
  }

  /// Ids of a dictionary that are a list: of numbers, or of rows, as those of a batch of texts.
  std::unique_ptr<Rows> RowsOfList(const TorchValue& ids, const TorchValue* mask, const ListedMarks& marks,
                                   const TorchValue* lengths) {
    const size_t rows = ids.items.size();
    if (rows == 0 || (ids.items[0]->kind != Kind::kList && ids.items[0]->kind != Kind::kTensor)) {
      return std::make_unique<ListedIds>(&ids, mask, marks, OnlyLength(lengths), 0, archive_.name());
    }
    if (mask != nullptr && (mask->kind != Kind::kList || mask->items.size() != rows)) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "has a list of rows of ids and a mask that is no list of as many rows");
    }
    return std::make_unique<RowsInTurn>(
        rows, [this, &ids, mask, marks, rows, of_rows = LengthsOfRows(lengths, rows)](size_t row) {
          const auto length = of_rows.empty() ? std::nullopt : std::optional<uint32_t>(of_rows[row]);
          return ListedRow(*ids.items[row], mask == nullptr ? nullptr : mask->items[row],
                           marks.OfRow(row, rows, archive_.name()), length, row);
        });
  }
  std::unique_ptr<Rows> ListedRow(const TorchValue& ids, const TorchValue* mask, const ListedMarks& marks,
                                  std::optional<uint32_t> length, uint64_t row) {
    if (ids.kind == Kind::kList) {
      return std::make_unique<ListedIds>(&ids, mask, marks, length, row, archive_.name());
    }
    if (ids.kind != Kind::kTensor || ids.tensor->shape.size() != 1) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "has a list of rows of ids with something else in it than lists and tensors of one "
                  "dimension");
    }
    Padding padding;
    padding.length = length;
    padding.mask = OpenMask(mask, ids.tensor->shape, &padding.mask_type);
    return RowsOfTensor(ids, std::move(padding), OpenMarks(marks, ids.tensor->shape));
  }
  /// Of rows in a list: a list of as many numbers, or a tensor of them; empty where there is none.
  std::vector<uint32_t> LengthsOfRows(const TorchValue* value, size_t rows) {
    std::vector<uint32_t> lengths;
    if (value == nullptr) return lengths;
    if (value->kind == Kind::kTensor && value->tensor->shape == std::vector<uint64_t>{rows}) {
      ReadIds(value->tensor->type, rows, Open(*value->tensor).get(), &lengths, kRowLengths);
      return lengths;
    }
    if (value->kind == Kind::kList && value->items.size() == rows) {
      for (const TorchValue* item : value->items) {
        const auto length = LengthOf(*item);
        if (!length) break;
        lengths.push_back(*length);
      }
      if (lengths.size() == rows) return lengths;
    }
    throw Error(ErrorCode::kBadInput, archive_.name(), "has lengths that are not one number a row");
  }
  static std::optional<uint32_t> LengthOf(const TorchValue& value) {
    if (value.kind != Kind::kInteger || value.integer < 0 || value.integer >= kNoId) return std::nullopt;
    return static_cast<uint32_t>(value.integer);
  }

  /// The length of one row: a number, or a list or tensor of one.
  std::optional<uint32_t> OnlyLength(const TorchValue* value) {
    if (value == nullptr) return std::nullopt;
    const std::vector<uint64_t> one = {1};
    if (value->kind == Kind::kTensor && (value->tensor->shape.empty() || value->tensor->shape == one)) {
      std::vector<uint32_t> length;
      ReadIds(value->tensor->type, 1, Open(*value->tensor).get(), &length, kRowLengths);
      return length[0];
    }
    if (value->kind == Kind::kList && value->items.size() == 1) value = value->items[0];
    if (const auto length = LengthOf(*value)) return length;
    throw Error(ErrorCode::kBadInput, archive_.name(), "has lengths that are not one number for its one row");
  }

  std::unique_ptr<BufferedReader> Open(const TorchTensor& tensor) {
    const ZipEntry* entry = archive_.Find(tensor.storage);
    uint64_t bytes = static_cast<uint64_t>(tensor.type.bytes);
    for (const uint64_t size : tensor.shape) bytes *= size;
    // Tensors may share a storage, which is checked once.
    const auto [storage, is_new] = storages_.try_emplace(entry);
    if (is_new) storage->second = archive_.Stored(*entry);
    return std::make_unique<BufferedReader>(MemorySource(storage->second.subspan(tensor.offset_bytes, bytes),
                                                         archive_.name() + ", " + entry->name));
  }
  std::unique_ptr<BufferedReader> OpenTensor(const TorchValue* value, const std::vector<uint64_t>& shape,
                                             IntegerType* type,
                                             const std::string& what = "lengths or a mask") {
    if (value == nullptr) return nullptr;
    if (value->kind != Kind::kTensor) {
      throw Error(ErrorCode::kBadInput, archive_.name(),
                  "has a tensor of ids and " + what + " that are none");
    }
    if (value->tensor->shape != shape)
      throw Error(ErrorCode::kBadInput, archive_.name(), "has " + what + " of another shape than the ids");
    *type = value->tensor->type;
    return Open(*value->tensor);
  }
  std::unique_ptr<BufferedReader> OpenMask(const TorchValue* value, const std::vector<uint64_t>& shape,
                                           MaskType* type) {
    std::unique_ptr<BufferedReader> mask = OpenTensor(value, shape, &type->bits);
    if (mask) type->float_one = value->tensor->float_one;
    return mask;
  }
  LossArrays OpenMarks(const ListedMarks& listed, const std::vector<uint64_t>& shape) {
    LossArrays marks;
    IntegerType labels_type;
    if (auto labels = OpenTensor(listed.labels, shape, &labels_type, kLabelsName)) {
      RefuseFloats(*listed.labels->tensor, kLabelValues);
      marks.SetLabels(std::move(labels), labels_type);
    }
    for (const TorchValue* value : listed.masks) {
      MaskType type;
      auto mask = OpenMask(value, shape, &type);
      marks.AddMask(std::move(mask), type);
    }
    return marks;
  }
  void RefuseFloats(const TorchTensor& tensor, const ArrayMeaning& meaning) const {
    if (tensor.float_one == 0) return;
    throw Error(ErrorCode::kBadInput, archive_.name(),
                "has " + tensor.storage_type + " for " + meaning.many + ", and integers are read");
  }
  std::unique_ptr<Rows> RowsOfTensor(const TorchValue& value, Padding padding, LossArrays marks) {
    const TorchTensor& tensor = *value.tensor;
    RefuseFloats(tensor, kTokenIds);
    return RowsOfArray(Open(tensor), {tensor.type, tensor.shape, tensor.is_truth}, std::move(padding),
                       std::move(marks));
  }

  MappedFile file_;
  ZipArchive archive_;
  const TorchTree tree_;
  std::map<const ZipEntry*, ByteSpan> storages_;  // whose CRC-32 matched
  bool marked_ = false;
  std::unique_ptr<Rows> rows_;
};

std::unique_ptr<Rows> OpenRows(const std::string& path, ForeignFormat format) {
  switch (format) {
    case ForeignFormat::kLlmC:
      return std::make_unique<LlmCRows>(path);
    case ForeignFormat::kNanoGpt:
      return std::make_unique<NanoGptRows>(path);
    case ForeignFormat::kMegatron:
      return std::make_unique<MegatronRows>(path);
    case ForeignFormat::kNpz:
      return std::make_unique<NpzRows>(path);
    case ForeignFormat::kTorch:
      return std::make_unique<TorchRows>(path);
    case ForeignFormat::kTokens:
      break;
  }
  throw Error(ErrorCode::kInternal, path, "is no foreign file");
}

bool IsNameOfMegatron(const std::string& path) {
  return path.ends_with(".idx") || path.ends_with(".bin");
}

/// Whether the .idx of this name, which an .idx and its .bin have in common, is Megatron's.
bool IsOfMegatronPair(const std::string& path) {
  std::error_code ignored;
  if (!IsNameOfMegatron(path)) return false;
  const std::string index = WithEnding(path, ".idx");
  if (!std::filesystem::is_regular_file(index, ignored)) return false;
  BufferedReader reader(OpenSource(index));
  return AsText(reader.Peek(7)) == kMegatronMagic;
}

TokenizerIdentity UnknownTokenizer(uint32_t vocab_size) {
  TokenizerIdentity tokenizer;
  tokenizer.kind = kUnknownTokenizerKind;
  tokenizer.sha256 = Sha256Of(AsBytes("unknown tokenizer of " + std::to_string(vocab_size) + " ids"));
  tokenizer.vocab_size = vocab_size;
  return tokenizer;
}

/// Whether some of the ids are not predicted.
bool LeavesOut(const Run& run) {
  return std::find(run.predicted.begin(), run.predicted.end(), uint8_t{0}) != run.predicted.end();
}

const char* NameOfFormat(ForeignFormat format) {
  constexpr const char* kNames[] = {"tokens", "llmc", "nanogpt", "megatron", "npz", "pt"};
  return kNames[static_cast<int>(format)];
}

}  // namespace

ForeignFormat FormatOf(const std::string& path, const ImportOptions& options) {
  if (options.format) {
    if (*options.format != ForeignFormat::kTokens &&
        (path == "-" || !std::filesystem::is_regular_file(path))) {
      throw Error(ErrorCode::kUsage, path == "-" ? "standard input" : path,
                  std::string("is no file, and --from ") + NameOfFormat(*options.format) + " reads files");
    }
    if (*options.format == ForeignFormat::kMegatron && !path.ends_with(".idx") && !path.ends_with(".bin")) {
      throw Error(ErrorCode::kUsage, path, "is neither the .idx nor the .bin of Megatron");
    }
    return *options.format;
  }
  if (path == "-" || !std::filesystem::is_regular_file(path)) return ForeignFormat::kTokens;
  BufferedReader reader(OpenSource(path));
  const ByteSpan head = reader.Peek(9);
  const uint32_t magic = head.size() < 4 ? 0 : ByteParser(head).Read<uint32_t>();
  if (magic == kLlmCMagic16 || magic == kLlmCMagic32) return ForeignFormat::kLlmC;
  if (AsText(head).starts_with(kMegatronMagic) && path.ends_with(".idx")) return ForeignFormat::kMegatron;
  if (AsText(head).starts_with(kNpyMagic)) {
    throw Error(ErrorCode::kBadInput, path, "is one NumPy array (.npy), and pack reads archives of them", "",
                "numpy.savez('ids.npz', ids=numpy.load('" + path + "')) makes one");
  }
  if (magic == 0x04034B50) {
    const MappedFile file(path);
    const ZipArchive archive(file.bytes(), path);
    for (const ZipEntry& entry : archive.entries()) {
      if (entry.name.ends_with("/data.pkl")) return ForeignFormat::kTorch;
    }
    return ForeignFormat::kNpz;
  }
  return IsOfMegatronPair(path) ? ForeignFormat::kMegatron : ForeignFormat::kTokens;
}

std::vector<std::string> FilesOfInputs(const std::vector<std::string>& inputs, const ImportOptions& options) {
  const bool megatron = options.format ? *options.format == ForeignFormat::kMegatron
                                       : std::any_of(inputs.begin(), inputs.end(), IsOfMegatronPair);
  if (!megatron) return inputs;
  std::vector<std::string> files = inputs;
  for (const std::string& path : inputs) {
    if (IsNameOfMegatron(path)) files.push_back(WithEnding(path, path.ends_with(".idx") ? ".bin" : ".idx"));
  }
  return files;
}

void RefuseImportOptions(const ImportOptions& options, const std::string& path) {
  const char* flag = !options.tokenizer.empty() ? "--tokenizer"
                     : options.vocab_size       ? "--vocab"
                     : options.end_of_text      ? "--eot"
                     : options.one_document     ? "--eot"
                                                : nullptr;
  if (flag == nullptr) return;
  throw Error(ErrorCode::kUsage, flag,
              "is for files of other programs, and " + (path == "-" ? "standard input" : path) +
                  " is read as a token stream",
              "", "leave it out, or name the format of a file without a header: --from nanogpt");
}

ForeignDocuments::ForeignDocuments(std::vector<std::string> paths, ForeignFormat format,
                                   const ImportOptions& options)
    : paths_(std::move(paths)), format_(format), end_of_text_(options.end_of_text) {
  nlohmann::json shaping = {{"from", NameOfFormat(format)}};
  bool wide = false;
  std::set<std::string> pairs;  // of Megatron: an .idx and its .bin are one
  for (const std::string& path : paths_) {
    if (format == ForeignFormat::kMegatron && !pairs.insert(WithEnding(path, ".idx")).second) {
      throw Error(ErrorCode::kUsage, path, "is named twice: an .idx and its .bin are one data set", "",
                  "name either of them");
    }
    if (FormatOf(path, options) != format)
      throw Error(ErrorCode::kUsage, path, "is in another format than " + paths_[0], "",
                  "pack them one by one, with --append");
    if (format == ForeignFormat::kLlmC) {
      const bool is_wide = LlmCRows(path).wide();
      if (&path != &paths_[0] && is_wide != wide)
        throw Error(ErrorCode::kBadInput, path, "has ids of another width than " + paths_[0]);
      wide = is_wide;
    }
  }
  std::optional<uint32_t> vocab_size = options.vocab_size;
  if (!options.tokenizer.empty()) {
    header_.tokenizer = LoadTokenizer(options.tokenizer)->identity();
    if (vocab_size && *vocab_size != header_.tokenizer.vocab_size) {
      throw Error(ErrorCode::kUsage, "--vocab",
                  "is not that of --tokenizer: " + std::to_string(header_.tokenizer.vocab_size));
    }
  } else {
    if (format == ForeignFormat::kLlmC && !vocab_size)
      vocab_size = wide ? kLlama3Vocabulary : kGpt2Vocabulary;
    if (!vocab_size || *vocab_size == 0 || *vocab_size == kNoId) {
      throw Error(ErrorCode::kUsage, "--vocab",
                  "is needed: " + paths_[0] + " does not say how many ids its vocabulary has", "",
                  "give --vocab N, or --tokenizer FILE");
    }
    header_.tokenizer = UnknownTokenizer(*vocab_size);
  }
  end_of_text_begins_ = format == ForeignFormat::kLlmC;
  if (!end_of_text_ && !options.one_document) {
    if (format == ForeignFormat::kLlmC) end_of_text_ = wide ? kLlama3BeginOfText : kGpt2EndOfText;
    if (format == ForeignFormat::kNanoGpt) {
      throw Error(ErrorCode::kUsage, "--eot", "is needed: the file does not say where documents end", "",
                  "give the id after each document, 50256 for GPT-2's tokenizer, or --eot none");
    }
  }
  if (end_of_text_) {
    shaping["eot"] = *end_of_text_;
    TokenizerIdentity& tokenizer = header_.tokenizer;
    if (*end_of_text_ >= tokenizer.vocab_size) {
      throw Error(ErrorCode::kUsage, "--eot",
                  std::to_string(*end_of_text_) + " is outside the vocabulary of " +
                      std::to_string(tokenizer.vocab_size) + " ids");
    }
    if (tokenizer.kind == kUnknownTokenizerKind) {
      tokenizer.eos_id = *end_of_text_;
      if (end_of_text_begins_) tokenizer.bos_id = *end_of_text_;
    }
    // As pretokenize records them.
    shaping["bos"] = end_of_text_begins_ && tokenizer.bos_id == *end_of_text_;
    shaping["eos"] = tokenizer.eos_id == *end_of_text_;
  }
  header_.provenance_json = MakeProvenance("pack", shaping, {});
  provenance_.push_back({.hash = "", .provenance_json = header_.provenance_json});
  ChooseRecords();
}

ForeignDocuments::~ForeignDocuments() = default;

void ForeignDocuments::ChooseRecords() {
  if (format_ != ForeignFormat::kNpz && format_ != ForeignFormat::kTorch) return;
  std::unique_ptr<Rows> rows = OpenRows(paths_[0], format_);
  if (!rows->marked()) {
    rows_ = std::move(rows);  // to read on from here
    next_path_ = 1;
    return;
  }
  for (Run run; rows->Next(&run);) {
    ThrowIfStopped();
    if (!LeavesOut(run)) continue;
    header_.record_kind = RecordKind::kSft;
    return;
  }
}

void ForeignDocuments::RequireAlike() const {
  const std::string& path = paths_[next_path_ - 1];
  const std::string hint = "pack the two by themselves";
  if (header_.record_kind == RecordKind::kSft && !rows_->marked()) {
    throw Error(ErrorCode::kBadInput, path,
                "does not say which ids are predicted, and " + paths_[0] + " does", "", hint);
  }
  if (header_.record_kind == RecordKind::kLm && LeavesOut(run_)) {
    throw Error(ErrorCode::kBadInput, path,
                "says that not all ids are predicted, and " + paths_[0] + " does not", "", hint);
  }
}

bool ForeignDocuments::NextRun() {
  ThrowIfStopped();
  while (true) {
    // Before, since what was cut off cannot be read; behind, since what was written over can.
    if (rows_) rows_->ThrowIfWritten();
    run_.predicted.clear();
    const bool more = rows_ && rows_->Next(&run_);
    if (rows_) rows_->ThrowIfWritten();
    if (more) {
      RequireAlike();
      break;
    }
    if (next_path_ == paths_.size()) return false;
    rows_ = OpenRows(paths_[next_path_++], format_);
  }
  used_ = 0;
  const uint32_t vocab_size = header_.tokenizer.vocab_size;
  const auto outside =
      std::find_if(run_.ids.begin(), run_.ids.end(), [&](uint32_t id) { return id >= vocab_size; });
  if (outside != run_.ids.end()) {
    throw OutsideVocabulary(
        ErrorCode::kBadInput, paths_[next_path_ - 1],
        "holds id " + std::to_string(*outside) + ", and the vocabulary has " + std::to_string(vocab_size), "",
        "it was made with another tokenizer: see --vocab and --tokenizer");
  }
  return true;
}

bool ForeignDocuments::Next(DocumentPiece* piece) {
  // A run that is used up and ends its row has ended its document, too.
  while (used_ == run_.ids.size() && !(in_document_ && run_.row_ends)) {
    if (!NextRun()) return false;
  }
  const std::span<const uint32_t> left = std::span<const uint32_t>(run_.ids).subspan(used_);
  size_t count = left.size(), taken = count;
  bool ends = run_.row_ends;
  if (end_of_text_) {
    // Where it begins documents, the one that a document begins with does not end it.
    const size_t from = end_of_text_begins_ && !in_document_ ? 1 : 0;
    const auto mark = std::find(left.begin() + static_cast<ptrdiff_t>(std::min(from, left.size())),
                                left.end(), *end_of_text_);
    if (mark != left.end()) {
      // It ends the document in either case, so that it is predicted there; the next one may begin with it.
      count = static_cast<size_t>(mark - left.begin()) + 1;
      taken = end_of_text_begins_ ? count - 1 : count;
      ends = true;
    }
  }
  bool loss = true;
  if (header_.record_kind == RecordKind::kSft && count > 0) {
    const auto marks = std::span<const uint8_t>(run_.predicted).subspan(used_, count);
    loss = marks.front() != 0;
    const auto other =
        std::find_if(marks.begin(), marks.end(), [&](uint8_t mark) { return (mark != 0) != loss; });
    if (other != marks.end()) {
      count = taken = static_cast<size_t>(other - marks.begin());
      ends = false;
    }
  }
  *piece = {
      .tokens = left.first(count), .begins = !in_document_, .ends = ends, .source_bytes = 0, .loss = loss};
  used_ += taken;
  in_document_ = !ends;
  return true;
}

}  // namespace trainwright

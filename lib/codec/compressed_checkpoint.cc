#include "lib/codec/compressed_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

std::vector<uint8_t> ReadSafetensorsHead(const RandomReader& file) {
  const uint64_t size = file.size_bytes();
  const std::vector<uint8_t> prefix = file.ReadAt(0, std::min<uint64_t>(size, 8));
  const uint64_t head_bytes = SafetensorsHeadBytes(prefix, file.name());
  if (head_bytes > size) throw CutShortAt(size, file.name(), "safetensors header");
  return file.ReadAt(0, head_bytes);
}

class PlainBase final : public BaseTensors {
 public:
  explicit PlainBase(std::unique_ptr<RandomReader> file) : file_(std::move(file)) {
    header_ = ParseSafetensorsHead(ReadSafetensorsHead(*file_), file_->name());
    if (header_.data_offset + header_.data_bytes() != file_->size_bytes())
      throw Error(ErrorCode::kBadInput, file_->name(), "has another size than its header says");
  }
  const std::string& name() const override { return file_->name(); }
  Xxh128Digest Hash() override {
    Xxh128Stream hash;
    const std::unique_ptr<ByteSource> source = SourceOf(file_.get());
    std::vector<uint8_t> piece(1 << 20);
    while (const size_t count = source->Read(piece.data(), piece.size()))
      hash.Update(ByteSpan(piece).first(count));
    return hash.Digest();
  }
  std::optional<TensorBytes> Read(const SafetensorsEntry& entry) override {
    const SafetensorsEntry* found = header_.Find(entry.name);
    if (found == nullptr || found->dtype != entry.dtype ||
        found->end - found->begin != entry.end - entry.begin)
      return {};
    const uint64_t offset = header_.data_offset + found->begin, size = found->end - found->begin;
    if (size <= kMostHeldBytes) return TensorBytes::Own(file_->ReadAt(offset, size));
    TensorBytes bytes;
    bytes.view = TensorContent::InFile(file_.get(), offset, size);
    return bytes;
  }

 private:
  std::unique_ptr<RandomReader> file_;
  SafetensorsHeader header_;
};

/// A coded tensor as a file of its content: the blocks that are asked for are decoded, each time again.
class DecodingReader final : public RandomReader {
 public:
  DecodingReader(StoredTensor tensor, std::string name)
      : tensor_(std::move(tensor)), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return tensor_.decoder().size_bytes(); }
  const std::string& name() const override { return name_; }

 protected:
  size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const override {
    const BlockDecoder& decoder = tensor_.decoder();
    if (offset >= size_bytes()) return 0;
    const uint64_t width = ElementBytes(decoder.type()), per_block = decoder.block_elements() * width;
    const uint64_t block = offset / per_block, skip = offset % per_block;
    const uint64_t size = decoder.ElementsOf(block) * width;
    if (skip == 0 && out.size() >= size) {
      tensor_.DecodeBlock(block, out.first(size));
      return size;
    }
    static thread_local std::vector<uint8_t> decoded;
    decoded.resize(size);
    tensor_.DecodeBlock(block, decoded);
    const size_t count = std::min<uint64_t>(out.size(), size - skip);
    std::copy_n(decoded.begin() + static_cast<ptrdiff_t>(skip), count, out.begin());
    return count;
  }

 private:
  StoredTensor tensor_;
  std::string name_;
};

std::string ObjectName(const RandomReader& file, const SafetensorsEntry& entry) {
  return file.name() + ": tensor '" + entry.name + "'";
}

class CompressedBase final : public BaseTensors {
 public:
  explicit CompressedBase(std::unique_ptr<RandomReader> file)
      : file_(std::move(file)), checkpoint_(file_.get()) {
    if (checkpoint_.head().base_hash) {
      throw Error(ErrorCode::kBadInput, file_->name(), "needs a base itself, so it cannot be one", "",
                  "restore it first with ckpt-compress -d --base FILE");
    }
  }
  const std::string& name() const override { return file_->name(); }
  Xxh128Digest Hash() override { return checkpoint_.tail().source_hash; }
  std::optional<TensorBytes> Read(const SafetensorsEntry& entry) override {
    const SafetensorsHeader& source = checkpoint_.head().source;
    const SafetensorsEntry* found = source.Find(entry.name);
    if (found == nullptr || found->dtype != entry.dtype ||
        found->end - found->begin != entry.end - entry.begin)
      return {};
    StoredTensor tensor = checkpoint_.Open(static_cast<size_t>(found - source.entries.data()));
    if (found->end - found->begin > kMostHeldBytes)
      return TensorBytes::Own(std::make_unique<DecodingReader>(std::move(tensor), file_->name()));
    std::vector<uint8_t> bytes;
    bytes.reserve(found->end - found->begin);
    tensor.Read(0, found->end - found->begin, [&](ByteSpan piece) { AppendBytes(&bytes, piece); });
    return TensorBytes::Own(std::move(bytes));
  }

 private:
  std::unique_ptr<RandomReader> file_;
  CompressedCheckpoint checkpoint_;
};

}  // namespace

StoredTensor::StoredTensor(const RandomReader& file, const CompressedHead& head, size_t entry_index,
                           uint64_t offset, uint64_t coded_bytes, std::optional<TensorBytes> base)
    : file_(file) {
  const SafetensorsEntry& entry = head.source.entries[entry_index];
  const std::string object = ObjectName(file, entry);
  if (base) base_ = std::make_shared<const TensorBytes>(std::move(*base));
  const auto too_small = [&] { return BadInputAt(offset, object, "it is smaller than what it must hold"); };
  if (coded_bytes < BlockDecoder::kHeadBytes) throw too_small();
  uint64_t index_offset = 0;
  try {
    const uint64_t prologue_bytes =
        BlockDecoder::PrologueBytes(file.ReadAt(offset, BlockDecoder::kHeadBytes), object);
    if (prologue_bytes > coded_bytes) throw too_small();
    decoder_ = std::make_unique<BlockDecoder>(file.ReadAt(offset, prologue_bytes), object,
                                              base_ ? std::optional(base_->view) : std::nullopt,
                                              head.Identity(entry.name));
    if (decoder_->size_bytes() != entry.end - entry.begin)
      throw Error(ErrorCode::kBadInput, object,
                  "it holds another number of bytes than the original header says");
    if (decoder_->IndexBytes() > coded_bytes - prologue_bytes) throw too_small();
    offsets_.push_back(offset + prologue_bytes);
    index_offset = offset + coded_bytes - decoder_->IndexBytes();
  } catch (const Error& error) {
    if (error.object() != object) throw;  // of a file
    throw BadInputAt(offset, object, error.problem(), error.hint());
  }
  for (const uint32_t size :
       decoder_->ReadIndex(file.ReadAt(index_offset, decoder_->IndexBytes()), index_offset))
    offsets_.push_back(offsets_.back() + size);
  if (offsets_.back() != index_offset)
    throw BadInputAt(index_offset, object, "the index of blocks does not fit the blocks");
}

std::vector<uint8_t> StoredTensor::ReadBlock(uint64_t block) const {
  return file_.ReadAt(offsets_[block], offsets_[block + 1] - offsets_[block]);
}

void StoredTensor::DecodeBlock(uint64_t block, std::span<uint8_t> out) const {
  decoder_->DecodeBlock(ReadBlock(block), block, offsets_[block], out);
}

void StoredTensor::CheckBlock(uint64_t block) const {
  decoder_->CheckBlock(ReadBlock(block), block, offsets_[block]);
}

BlockPlanes StoredTensor::PlanesOf(uint64_t block) const {
  const uint64_t size = std::min(decoder_->FullHeadBytes(), offsets_[block + 1] - offsets_[block]);
  return decoder_->PlanesOf(file_.ReadAt(offsets_[block], size), block, offsets_[block]);
}

void StoredTensor::Read(uint64_t first, uint64_t size, const std::function<void(ByteSpan)>& take) const {
  TRAINWRIGHT_CHECK(first <= decoder_->size_bytes() && size <= decoder_->size_bytes() - first);
  const uint64_t width = ElementBytes(decoder_->type()), per_block = decoder_->block_elements() * width;
  std::vector<uint8_t> decoded;
  for (uint64_t done = 0; done < size;) {
    const uint64_t block = (first + done) / per_block, skip = (first + done) % per_block;
    decoded.resize(decoder_->ElementsOf(block) * width);
    DecodeBlock(block, decoded);
    const uint64_t taken = std::min(size - done, decoded.size() - skip);
    take(ByteSpan(decoded).subspan(skip, taken));
    done += taken;
  }
}

CompressedCheckpoint::CompressedCheckpoint(const RandomReader* file, bool may_be_damaged) : file_(file) {
  try {
    ReadEnds(may_be_damaged);
  } catch (const Error& error) {
    if (!may_be_damaged || error.code() != ErrorCode::kBadInput) throw;
    std::optional<SalvagedCheckpoint> salvaged = Salvage(*file);
    if (!salvaged) throw;
    TakeSalvaged(std::move(*salvaged));
    problem_ = error.what();
  }
}

void CompressedCheckpoint::TakeSalvaged(SalvagedCheckpoint salvaged) {
  head_ = std::move(salvaged.head);
  places_ = std::move(salvaged.places);
  tail_ = {};
  for (const std::optional<CodedPlace>& place : places_)
    tail_.coded_bytes.push_back(place ? place->size_bytes : 0);
}

/// Head and, of a stream, footer.
/// \param may_be_cut a container's head has the sizes of all tensors: those in front of its end can be read
void CompressedCheckpoint::ReadEnds(bool may_be_cut) {
  const uint64_t size = file_->size_bytes();
  const std::string& name = file_->name();
  const std::vector<uint8_t> prefix = file_->ReadAt(0, std::min<uint64_t>(size, kStreamPrefixBytes));
  uint64_t begin, end;
  if (IsStream(prefix)) {
    form_ = CompressedForm::kStream;
    begin = StreamHeadBytes(prefix, name);
    if (begin > size) throw CutShortAt(size, name, "compressed stream");
    head_ = ParseStreamHead(file_->ReadAt(0, begin), name);
    const uint64_t end_bytes = StreamEndBytes(head_);
    if (end_bytes > size - begin) throw CutShortAt(size, name, "compressed stream");
    end = size - end_bytes;
    tail_ = ParseStreamEnd(file_->ReadAt(end, end_bytes), head_, name, end);
  } else {
    const std::vector<uint8_t> head = ReadSafetensorsHead(*file_);
    if (!IsContainer(ParseSafetensorsHead(head, name)))
      throw Error(ErrorCode::kBadInput, name, kNotCompressed);
    ParseContainerHead(head, name, &head_, &tail_);
    begin = head.size();
    end = size;
  }
  uint64_t offset = begin;
  for (const uint64_t coded_bytes : tail_.coded_bytes) {
    places_.push_back(CodedPlace{offset, coded_bytes});
    const bool is_cut = coded_bytes > end - offset;
    if (is_cut && !(may_be_cut && form_ == CompressedForm::kSafetensors))
      throw CutShortAt(size, name, "compressed checkpoint");
    offset = is_cut ? end : offset + coded_bytes;
  }
  if (offset != end) throw BadInputAt(offset, name, "bytes follow the last tensor");
}

size_t CompressedCheckpoint::IndexOf(const std::string& name) const {
  const SafetensorsEntry* found = head_.source.Find(name);
  if (found == nullptr)
    throw Error(ErrorCode::kUsage, file_->name(), "holds no tensor '" + name + "'", "",
                "ckpt-compress -l names them");
  return static_cast<size_t>(found - head_.source.entries.data());
}

void CompressedCheckpoint::RequireBase(BaseTensors* base) const {
  if (base == nullptr || !problem_) CheckBase(head_, base, file_->name());
}

StoredTensor CompressedCheckpoint::Open(size_t entry, std::optional<TensorBytes> base) const {
  const uint64_t size = file_->size_bytes();
  const std::string object = ObjectName(*file_, head_.source.entries[entry]);
  const std::optional<CodedPlace>& place = places_[entry];
  if (!place) throw Error(ErrorCode::kBadInput, object, "is not found in what is left of the file");
  if (place->size_bytes > size - place->offset) throw CutShortAt(size, object, "compressed checkpoint");
  return StoredTensor(*file_, head_, entry, place->offset, place->size_bytes, std::move(base));
}

StoredTensor CompressedCheckpoint::OpenWithBase(size_t entry, BaseTensors* base) const {
  StoredTensor tensor = Open(entry);
  if (tensor.decoder().transform() != TensorTransform::kBase || base == nullptr) return tensor;
  return Open(entry, base->Read(head_.source.entries[entry]));
}

std::vector<DamagedBlock> CompressedCheckpoint::FindDamage(size_t entry, BaseTensors* base) const {
  const std::string& name = head_.source.entries[entry].name;
  const std::string object = ObjectName(*file_, head_.source.entries[entry]);
  const auto is_of_this_file = [&](const Error& error) {  // and not of the base, which is read on the way
    return error.code() == ErrorCode::kBadInput &&
           (error.object() == file_->name() || error.object().starts_with(object));
  };
  std::vector<DamagedBlock> damage;
  std::optional<StoredTensor> tensor;
  try {
    tensor.emplace(OpenWithBase(entry, base));
  } catch (const Error& error) {
    if (!is_of_this_file(error)) throw;
    damage.push_back({name, {}, error.what()});
    return damage;
  }
  const BlockDecoder& decoder = tensor->decoder();
  const bool decodes = decoder.transform() != TensorTransform::kBase || base != nullptr;
  std::vector<uint8_t> decoded;
  for (uint64_t block = 0; block < decoder.blocks(); ++block) {
    try {
      if (decodes) {
        decoded.resize(decoder.ElementsOf(block) * ElementBytes(decoder.type()));
        tensor->DecodeBlock(block, decoded);
      } else {
        tensor->CheckBlock(block);
      }
    } catch (const Error& error) {
      if (!is_of_this_file(error)) throw;
      damage.push_back({name, block, error.what()});
    }
  }
  return damage;
}

bool IsCompressedCheckpoint(const RandomReader& file) {
  if (IsStream(file.ReadAt(0, std::min<uint64_t>(file.size_bytes(), 8)))) return true;
  return IsContainer(ParseSafetensorsHead(ReadSafetensorsHead(file), file.name()));
}

std::unique_ptr<BaseTensors> OpenBase(const std::string& path) {
  std::unique_ptr<RandomReader> file = OpenRandomReader(path);
  if (IsCompressedCheckpoint(*file)) return std::make_unique<CompressedBase>(std::move(file));
  return std::make_unique<PlainBase>(std::move(file));
}

}  // namespace trainwright

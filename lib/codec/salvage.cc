#include "lib/codec/salvage.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/codec/coded_layout.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/formats/safetensors.h"

namespace trainwright {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

/// The beginning of a coded tensor.
struct Beginning {
  size_t entry = 0;
  uint64_t offset = 0;
  BlockDecoder decoder;
};

/// Nothing where `look` finds bad input.
template <typename Look>
auto IfSound(const Look& look) -> decltype(look()) {
  try {
    return look();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    return std::nullopt;
  }
}

class Finder {
 public:
  /// \param end of the last coded tensor, where the file is whole
  Finder(const RandomReader& file, const CompressedHead& head, uint64_t end)
      : file_(file), head_(head), size_bytes_(file.size_bytes()), end_(end) {}

  /// \param from where the first may begin
  std::vector<std::optional<CodedPlace>> Find(uint64_t from) const {
    const size_t entries = head_.source.entries.size();
    std::vector<std::optional<CodedPlace>> places(entries);
    std::optional<Beginning> tensor = Next(from, 0);
    while (tensor) {
      const size_t entry = tensor->entry;
      const uint64_t offset = tensor->offset;
      const std::optional<uint64_t> size = SizeOf(*tensor);
      std::optional<Beginning> next = Next(offset + size.value_or(1), entry + 1);
      // One that is damaged where its size is ends where the next one begins.
      uint64_t end = size ? offset + *size : 0;
      if (!size && next && next->entry == entry + 1) end = next->offset;
      if (!size && entry + 1 == entries) end = end_;
      if (end > offset) places[entry] = CodedPlace{offset, end - offset};
      tensor = std::move(next);
    }
    return places;
  }

 private:
  /// The next tensor of those from `first` on, which usually is at `from` itself.
  std::optional<Beginning> Next(uint64_t from, size_t first) const {
    if (first == head_.source.entries.size()) return std::nullopt;
    if (std::optional<Beginning> tensor = At(from, first)) return tensor;
    return Search(from, first);
  }

  std::optional<Beginning> Search(uint64_t from, size_t first) const {
    const std::string_view magic =
        AsText({reinterpret_cast<const uint8_t*>(&codec::kMagic), sizeof(codec::kMagic)});
    for (uint64_t at = from; at < size_bytes_;) {
      const uint64_t count = std::min(kPieceBytes, size_bytes_ - at);
      const std::vector<uint8_t> piece = file_.ReadAt(at, count);
      const std::string_view text = AsText(piece);
      for (size_t hit = text.find(magic); hit != std::string_view::npos; hit = text.find(magic, hit + 1)) {
        for (size_t entry = first; entry < head_.source.entries.size(); ++entry) {
          if (std::optional<Beginning> tensor = At(at + hit, entry)) return tensor;
        }
      }
      if (at + count == size_bytes_) break;
      at += count - (magic.size() - 1);  // it may be divided between two pieces
    }
    return std::nullopt;
  }

  /// The tensor of an entry, if that is what begins at an offset.
  std::optional<Beginning> At(uint64_t offset, size_t entry) const {
    return IfSound([&]() -> std::optional<Beginning> {
      const SafetensorsEntry& tensor = head_.source.entries[entry];
      const uint64_t prologue_bytes =
          BlockDecoder::PrologueBytes(file_.ReadAt(offset, BlockDecoder::kHeadBytes), file_.name());
      if (prologue_bytes > MostPrologueBytes(tensor)) return std::nullopt;
      BlockDecoder decoder(file_.ReadAt(offset, prologue_bytes), file_.name(), {},
                           head_.Identity(tensor.name));
      if (decoder.size_bytes() != tensor.end - tensor.begin) return std::nullopt;
      return Beginning{entry, offset, std::move(decoder)};
    });
  }

  /// By its blocks and its index; nothing where these are damaged.
  std::optional<uint64_t> SizeOf(const Beginning& tensor) const {
    return IfSound([&]() -> std::optional<uint64_t> {
      const BlockDecoder& decoder = tensor.decoder;
      uint64_t at = tensor.offset + decoder.prologue_bytes();
      std::vector<uint32_t> block_bytes;
      for (uint64_t block = 0; block < decoder.blocks(); ++block) {
        const uint64_t size = decoder.BlockBytes(file_.ReadAt(at, BlockDecoder::kBlockHeadBytes), block, at);
        block_bytes.push_back(static_cast<uint32_t>(size));
        at += size;
      }
      if (decoder.ReadIndex(file_.ReadAt(at, decoder.IndexBytes()), at) != block_bytes) return std::nullopt;
      return at + decoder.IndexBytes() - tensor.offset;
    });
  }

  const RandomReader& file_;
  const CompressedHead& head_;
  const uint64_t size_bytes_, end_;
};

}  // namespace

std::optional<SalvagedCheckpoint> Salvage(const RandomReader& file) {
  const uint64_t size_bytes = file.size_bytes();
  std::optional<FoundHead> found;
  bool is_stream = false;
  {
    const std::vector<uint8_t> beginning = file.ReadAt(0, std::min(size_bytes, kMaxSafetensorsHeaderBytes));
    is_stream = IsStream(beginning);
    found = FindHead(beginning, file.name());
  }
  if (!found) return std::nullopt;
  SalvagedCheckpoint salvaged{std::move(found->head), {}};
  const uint64_t behind_tensors = is_stream ? StreamEndBytes(salvaged.head) : 0;
  const uint64_t end = size_bytes - std::min(size_bytes, behind_tensors);
  salvaged.places = Finder(file, salvaged.head, end).Find(found->end);
  const bool is_any = std::any_of(salvaged.places.begin(), salvaged.places.end(),
                                  [](const auto& place) { return place.has_value(); });
  if (!is_any) return std::nullopt;
  return salvaged;
}

}  // namespace trainwright

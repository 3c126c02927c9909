#include "tests/codec/checkpoint_fixture.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

namespace trainwright::test {
namespace {

class MemoryTensors final : public TensorSource {
 public:
  MemoryTensors(const CompressedHead& head, ByteSpan file, MemoryBase* base)
      : head_(head), file_(file), base_(base) {}
  TensorBytes Take(size_t entry) override {
    const SafetensorsEntry& tensor = head_.source.entries[entry];
    TensorBytes bytes;
    bytes.view = file_.subspan(head_.source.data_offset + tensor.begin, tensor.end - tensor.begin);
    return bytes;
  }
  std::optional<TensorBytes> TakeBase(size_t entry) override {
    if (base_ == nullptr) return {};
    return base_->Read(head_.source.entries[entry]);
  }

 private:
  const CompressedHead& head_;
  ByteSpan file_;
  MemoryBase* base_;
};

class PieceSource final : public ByteSource {
 public:
  PieceSource(ByteSpan bytes, size_t piece_bytes) : bytes_(bytes), piece_bytes_(piece_bytes) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t count = std::min({size, piece_bytes_, bytes_.size()});
    std::copy_n(bytes_.begin(), count, out);
    bytes_ = bytes_.subspan(count);
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  ByteSpan bytes_;
  size_t piece_bytes_;
  std::string name_ = "input";
};

}  // namespace

Bytes FileOf(const std::string& header, size_t data_bytes, uint64_t seed) {
  Bytes file = JoinSafetensorsHead(header);
  const size_t begin = file.size();
  file.resize(begin + data_bytes);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  for (size_t i = 0; i < data_bytes; ++i) {
    if (i % 2 == 0) {
      file[begin + i] = static_cast<uint8_t>(random());
      continue;
    }
    const float value = normal(random);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    file[begin + i] = static_cast<uint8_t>(bits >> 24);
  }
  return file;
}

Bytes OddFile() {
  const std::vector<std::pair<std::string, uint64_t>> dtypes = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},      {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8}, {"U16", 16},
      {"I16", 16},    {"F16", 16},    {"BF16", 16},       {"U32", 32},        {"I32", 32},    {"F32", 32},
      {"U64", 64},    {"I64", 64},    {"F64", 64},        {"C64", 64}};
  std::string header = R"({ "zero rank" : {"shape":[], "data_offsets":[0,8],"dtype":"I64"},)";
  uint64_t offset = 8;
  for (const auto& [dtype, bits] : dtypes) {
    const uint64_t size = 8 * 37 * bits / 8;
    header += "\t\"" + dtype + "\":{\"dtype\":\"" + dtype + "\",\"data_offsets\":[" + std::to_string(offset) +
              "," + std::to_string(offset + size) + "],\"shape\":[8,37]},\n";
    offset += size;
  }
  const std::string end = std::to_string(offset);
  header +=
      R"("nothing":{"dtype":"F32","shape":[3,0],"data_offsets":[)" + end + "," + end +
      R"(]},"__metadata__":{"format":"pt","ü \" \u0000\\":"trainwright.xxh3\":\""},"\u00e4/\n":{"dtype":"F4","shape":[0],)" +
      R"("data_offsets":[)" + end + "," + end + "]}}     ";
  return FileOf(header, offset);
}

Bytes SmallCheckpoint(uint64_t seed) {
  return FileOf(
      R"({"a":{"dtype":"BF16","shape":[40,64],"data_offsets":[0,5120]},"b":{"dtype":"BF16","shape":[40,64],"data_offsets":[5120,10240]},"c":{"dtype":"BF16","shape":[40,64],"data_offsets":[10240,15360]}})",
      15360, seed);
}

MemoryBase::MemoryBase(Bytes file) : file_(std::move(file)), header_(ParseSafetensors(file_, name_)) {}

Xxh128Digest MemoryBase::Hash() {
  Xxh128Stream hash;
  hash.Update(file_);
  return hash.Digest();
}

std::optional<TensorBytes> MemoryBase::Read(const SafetensorsEntry& entry) {
  const SafetensorsEntry* found = header_.Find(entry.name);
  if (found == nullptr || found->end - found->begin != entry.end - entry.begin) return {};
  const auto begin = file_.begin() + static_cast<ptrdiff_t>(header_.data_offset);
  return TensorBytes::Own(
      Bytes(begin + static_cast<ptrdiff_t>(found->begin), begin + static_cast<ptrdiff_t>(found->end)));
}

Bytes Compress(ByteSpan file, const CompressSettings& settings) {
  CompressedHead head = HeadOf(file, "file");
  head.level = settings.level;
  head.writer = "ckpt-compress 0.1.0";
  if (settings.base != nullptr) head.base_hash = settings.base->Hash();
  MemoryTensors tensors(head, file, settings.base);
  MemorySink sink;
  EncodeCheckpoint(head, &tensors,
                   {.form = settings.form, .threads = settings.threads, .block_log2 = settings.block_log2},
                   &sink);
  return sink.bytes();
}

Bytes Restore(ByteSpan compressed, BaseTensors* base, int threads, size_t piece_bytes) {
  BufferedReader reader(std::make_unique<PieceSource>(compressed, piece_bytes));
  MemorySink sink;
  DecodeCheckpoint(&reader, &sink, {.threads = threads, .base = base});
  return sink.bytes();
}

std::map<std::string, Bytes> TensorsOf(ByteSpan file) {
  const SafetensorsHeader header = ParseSafetensors(file, "file");
  std::map<std::string, Bytes> tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    const ByteSpan bytes = file.subspan(header.data_offset + entry.begin, entry.end - entry.begin);
    tensors[entry.name] = Bytes(bytes.begin(), bytes.end());
  }
  return tensors;
}

}  // namespace trainwright::test

/// Safetensors files in memory, and compressing and restoring them there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/codec/checkpoint_decoder.h"
#include "lib/codec/checkpoint_encoder.h"

namespace trainwright::test {

using Bytes = std::vector<uint8_t>;

/// A file of this header text, followed by bytes that look like weights.
Bytes FileOf(const std::string& header, size_t data_bytes, uint64_t seed = 1);

/// Every dtype, tensors without elements and without dimensions, keys in no order, and a header with blanks
/// that no canonical writer makes.
Bytes OddFile();

/// Three bf16 matrices of the same shape with several blocks each, when these have 2^10 elements.
Bytes SmallCheckpoint(uint64_t seed = 1);

/// A base in memory.
class MemoryBase final : public BaseTensors {
 public:
  explicit MemoryBase(Bytes file);
  const std::string& name() const override { return name_; }
  Xxh128Digest Hash() override;
  std::optional<TensorBytes> Read(const SafetensorsEntry& entry) override;

 private:
  std::string name_ = "base";
  Bytes file_;
  SafetensorsHeader header_;
};

struct CompressSettings {
  CompressedForm form = CompressedForm::kSafetensors;
  CodecLevel level = CodecLevel::kDefault;
  int threads = 1;
  int block_log2 = 10;
  MemoryBase* base = nullptr;
};
Bytes Compress(ByteSpan file, const CompressSettings& settings = {});

/// The whole file.
/// \param piece_bytes most bytes that a read of the input gives
Bytes Restore(ByteSpan compressed, BaseTensors* base = nullptr, int threads = 1,
              size_t piece_bytes = SIZE_MAX);

/// The bytes of each tensor by its name.
std::map<std::string, Bytes> TensorsOf(ByteSpan file);

}  // namespace trainwright::test

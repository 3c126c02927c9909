#include "lib/codec/tensor_content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/codec/checkpoint_encoder.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/codec/tensor_encoder.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "tests/codec/fixtures.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

constexpr uint64_t kOffset = 100;  // of the tensor in the file

std::vector<uint8_t> FileOf(const std::vector<uint8_t>& content) {
  std::vector<uint8_t> file(kOffset, 0xAB);
  file.insert(file.end(), content.begin(), content.end());
  file.insert(file.end(), 50, 0xCD);
  return file;
}

TEST(TensorContent, ReadsFromAFileWhatIsInMemory) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  std::vector<uint8_t> bytes(700'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  const std::vector<uint8_t> whole = FileOf(bytes);
  const std::unique_ptr<RandomReader> file = MemoryRandomReader(whole);
  const TensorContent content = TensorContent::InFile(file.get(), kOffset, bytes.size());
  ContentReader reader(content, 500'000);
  std::vector<uint8_t> scratch;
  for (int i = 0; i < 300; ++i) {
    const uint64_t offset = random() % (bytes.size() + 1);
    const uint64_t size =
        random() % std::min<uint64_t>(bytes.size() - offset + 1, i % 10 == 0 ? 600'000 : 5'000);
    const ByteSpan wanted = ByteSpan(bytes).subspan(offset, size), got = content.Read(offset, size, &scratch),
                   stepped = reader.Read(offset, size);
    ASSERT_TRUE(std::ranges::equal(got, wanted)) << offset << " " << size;
    ASSERT_TRUE(std::ranges::equal(stepped, wanted)) << offset << " " << size;
  }
}

TEST(TensorContent, SmallStepsReadAFileInLargePieces) {
  const std::vector<uint8_t> bytes(1 << 20, 7), whole = FileOf(bytes);
  const std::unique_ptr<RandomReader> file = MemoryRandomReader(whole);
  const TensorContent content = TensorContent::InFile(file.get(), kOffset, bytes.size());
  ContentReader reader(content, bytes.size());
  for (uint64_t at = 0; at < bytes.size(); at += 128) reader.Read(at, 128);
  EXPECT_EQ(file->bytes_read(), bytes.size()) << "each byte once";
  ContentReader until_1000(content, 1000);
  for (uint64_t at = 0; at < 1000; at += 100) until_1000.Read(at, 100);
  EXPECT_EQ(file->bytes_read(), bytes.size() + 1000) << "and nothing that nobody will read";
}

TEST(TensorContent, OfAFileIsEncodedLikeOneInMemory) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  constexpr size_t kRows = 300, kColumns = 700;
  constexpr int kBlockLog2 = 12;  // 52 blocks, which begin anywhere in a row
  const std::vector<uint8_t> bytes =
      test::MakeTensor(ElementType::kFloat32, test::Content::kScaled, kRows * kColumns, kColumns, &random);
  std::vector<uint8_t> base = bytes;
  for (size_t i = 0; i < base.size(); i += 4) base[i] ^= 1;
  const std::vector<uint8_t> whole = FileOf(bytes);
  const std::unique_ptr<RandomReader> file = MemoryRandomReader(whole);
  for (const CodecLevel level : test::kAllLevels) {
    TensorView in_memory{.type = ElementType::kFloat32, .bytes = bytes, .matrices = {{0, kRows, kColumns}}};
    TensorView in_file = in_memory;
    in_file.bytes = TensorContent::InFile(file.get(), kOffset, bytes.size());
    const std::vector<uint8_t> plain = EncodeTensor(in_memory, level, 1, kBlockLog2);
    EXPECT_EQ(EncodeTensor(in_file, level, 2, kBlockLog2), plain);
    in_memory.base = in_file.base = ByteSpan(base);
    const std::vector<uint8_t> differing = EncodeTensor(in_memory, level, 1, kBlockLog2);
    EXPECT_LT(differing.size(), plain.size() / 2) << "the base pays";
    EXPECT_EQ(EncodeTensor(in_file, level, 2, kBlockLog2), differing);
  }
}

TEST(TensorContent, ABaseInAFileCodesAndDecodesLikeOneInMemory) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  constexpr int kBlockLog2 = 12;
  const std::vector<uint8_t> bytes =
      test::MakeTensor(ElementType::kFloat16, test::Content::kScaled, 50'001, 700, &random);
  std::vector<uint8_t> base = bytes;
  for (size_t i = 0; i < base.size(); i += 4) base[i] ^= 1;
  const std::vector<uint8_t> whole = FileOf(base);
  const std::unique_ptr<RandomReader> file = MemoryRandomReader(whole);
  const TensorContent in_file = TensorContent::InFile(file.get(), kOffset, base.size());
  EXPECT_EQ(HashOf(in_file), Xxh3(base));
  EXPECT_EQ(HashOf(base), Xxh3(base));
  const TensorView in_memory{.type = ElementType::kFloat16, .bytes = bytes, .base = base};
  TensorView against_file = in_memory;
  against_file.base = in_file;
  const std::vector<uint8_t> coded = EncodeTensor(against_file, CodecLevel::kDefault, 2, kBlockLog2);
  EXPECT_EQ(coded, EncodeTensor(in_memory, CodecLevel::kDefault, 1, kBlockLog2));
  const CodedTensor tensor(coded, "coded", in_file);
  ASSERT_EQ(tensor.decoder().transform(), TensorTransform::kBase);
  std::vector<uint8_t> decoded(bytes.size());
  tensor.Decode(decoded, 2);
  EXPECT_EQ(decoded, bytes);
}

/// Gives other bytes the second time.
class ChangingReader final : public RandomReader {
 public:
  explicit ChangingReader(uint64_t size_bytes) : size_bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return size_bytes_; }
  const std::string& name() const override { return name_; }

 protected:
  size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const override {
    const auto value = static_cast<uint8_t>(bytes_read() > size_bytes_ / 2 ? 7 : 6);
    std::fill(out.begin(), out.end(), value);
    static_cast<void>(offset);
    return out.size();
  }

 private:
  uint64_t size_bytes_;
  std::string name_ = "changing";
};

class ChangingTensor final : public TensorSource {
 public:
  explicit ChangingTensor(uint64_t size_bytes) : file_(size_bytes) {}
  TensorBytes Take(size_t) override {
    TensorBytes bytes;
    bytes.view = TensorContent::InFile(&file_, 0, file_.size_bytes());
    return bytes;
  }

 private:
  ChangingReader file_;
};

TEST(TensorContent, OfAFileThatChangesBetweenTwoReadingsIsNeverCompressed) {
  constexpr uint64_t kBytes = uint64_t{1} << 20;
  const std::vector<uint8_t> any(kBytes);
  SafetensorsTensor tensor{.name = "w", .dtype = "I8", .shape = {static_cast<int64_t>(kBytes)}};
  tensor.data = any;
  CompressedHead head = HeadOf(EncodeSafetensorsHead({tensor}, {}), "test");
  ChangingTensor source(kBytes);
  MemorySink sink;
  const auto encode = [&] {
    EncodeCheckpoint(head, &source, {.form = CompressedForm::kStream, .threads = 1}, &sink);
  };
  EXPECT_EQ(test::MessageOf(encode), "tensor 'w': changed while it was read | wait until its writer is done");
}

}  // namespace
}  // namespace trainwright

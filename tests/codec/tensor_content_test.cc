#include "lib/codec/tensor_content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lib/codec/tensor_encoder.h"
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
  ContentReader reader(content);
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
  ContentReader reader(content);
  for (uint64_t at = 0; at < bytes.size(); at += 128) reader.Read(at, 128);
  EXPECT_EQ(file->bytes_read(), bytes.size()) << "each byte once";
}

TEST(TensorContent, OfAFileIsEncodedLikeOneInMemory) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  constexpr size_t kRows = 300, kColumns = 700;
  const std::vector<uint8_t> bytes =
      test::MakeTensor(ElementType::kFloat32, test::Content::kScaled, kRows * kColumns, kColumns, &random);
  const std::vector<uint8_t> whole = FileOf(bytes);
  const std::unique_ptr<RandomReader> file = MemoryRandomReader(whole);
  for (const CodecLevel level : {CodecLevel::kFast, CodecLevel::kDefault, CodecLevel::kMax}) {
    TensorView in_memory{.type = ElementType::kFloat32, .bytes = bytes, .matrices = {{0, kRows, kColumns}}};
    TensorView in_file = in_memory;
    in_file.bytes = TensorContent::InFile(file.get(), kOffset, bytes.size());
    EXPECT_EQ(EncodeTensor(in_file, level), EncodeTensor(in_memory, level));
    const std::vector<uint8_t> base(bytes.size(), 1);
    in_memory.base = in_file.base = ByteSpan(base);
    EXPECT_EQ(EncodeTensor(in_file, level, 2), EncodeTensor(in_memory, level));
  }
}

}  // namespace
}  // namespace trainwright

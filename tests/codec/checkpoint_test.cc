// Compressed checkpoints of both forms: the original comes back, bit for bit, or what is wrong is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/codec/compressed_checkpoint.h"
#include "lib/io/random_reader.h"
#include "tests/codec/checkpoint_fixture.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::Bytes;
using test::Compress;
using test::CompressSettings;
using test::MemoryBase;
using test::MessageOf;
using test::Restore;
using testing::AllOf;
using testing::HasSubstr;

constexpr CompressedForm kForms[] = {CompressedForm::kSafetensors, CompressedForm::kStream};

/// Two blocks and one.
Bytes TinyFile() {
  return test::FileOf(
      R"({"a":{"dtype":"BF16","shape":[20,64],"data_offsets":[0,2560]},"b":{"dtype":"U8","shape":[5],"data_offsets":[2560,2565]}})",
      2565);
}

/// One tensor through the index.
Bytes ReadTensor(ByteSpan compressed, const std::string& name, BaseTensors* base = nullptr) {
  const auto file = MemoryRandomReader(compressed, "file");
  const CompressedCheckpoint checkpoint(file.get());
  const StoredTensor tensor = checkpoint.OpenWithBase(checkpoint.IndexOf(name), base);
  Bytes bytes;
  tensor.Read(0, tensor.decoder().size_bytes(), [&](ByteSpan piece) { AppendBytes(&bytes, piece); });
  return bytes;
}

Bytes Convert(ByteSpan compressed, CompressedForm form) {
  BufferedReader reader(MemorySource(compressed));
  MemorySink sink;
  ConvertCheckpoint(&reader, form, &sink);
  return sink.bytes();
}

TEST(CompressedCheckpointTest, TheOriginalComesBackBitForBit) {
  for (const Bytes& file :
       {test::OddFile(), test::SmallCheckpoint(), test::FileOf("{}", 0), test::FileOf("{}   ", 0)}) {
    for (const CompressedForm form : kForms) {
      for (const CodecLevel level : {CodecLevel::kFast, CodecLevel::kDefault, CodecLevel::kMax}) {
        const Bytes compressed = Compress(file, {.form = form, .level = level});
        EXPECT_EQ(Restore(compressed), file);
        for (const auto& [name, bytes] : test::TensorsOf(file))
          EXPECT_EQ(ReadTensor(compressed, name), bytes) << name;
      }
    }
  }
}

TEST(CompressedCheckpointTest, ThreadsAndPiecesChangeNothing) {
  const Bytes file = test::OddFile();
  for (const CompressedForm form : kForms) {
    const Bytes compressed = Compress(file, {.form = form});
    EXPECT_EQ(Compress(file, {.form = form, .threads = 3}), compressed);
    EXPECT_EQ(Restore(compressed, nullptr, 3), file);
    EXPECT_EQ(Restore(compressed, nullptr, 2, 1), file);
  }
}

TEST(CompressedCheckpointTest, TheContainerIsASafetensorsFileWithTheOriginalHeaderInside) {
  const Bytes file = test::OddFile();
  const Bytes compressed = Compress(file);
  const SafetensorsHeader own = ParseSafetensors(compressed, "container"),
                          source = ParseSafetensors(file, "file");
  ASSERT_EQ(own.entries.size(), source.entries.size());
  for (size_t i = 0; i < own.entries.size(); ++i) {
    EXPECT_EQ(own.entries[i].name, source.entries[i].name);
    EXPECT_EQ(own.entries[i].dtype, "U8");
  }
  EXPECT_EQ(own.metadata.at("trainwright.header"), AsText(ByteSpan(file).subspan(8, source.data_offset - 8)));
  EXPECT_EQ(own.metadata.at("trainwright.source_size_bytes"), std::to_string(file.size()));
}

TEST(CompressedCheckpointTest, AFormIsRewrittenIntoTheOther) {
  const Bytes file = test::OddFile();
  const Bytes container = Compress(file), stream = Compress(file, {.form = CompressedForm::kStream});
  EXPECT_EQ(Convert(stream, CompressedForm::kSafetensors), container);
  EXPECT_EQ(Convert(container, CompressedForm::kStream), stream);
}

TEST(CompressedCheckpointTest, EveryProperPrefixIsRefused) {
  for (const CompressedForm form : kForms) {
    const Bytes compressed = Compress(TinyFile(), {.form = form});
    for (size_t size = 0; size < compressed.size(); ++size) {
      const ByteSpan prefix = ByteSpan(compressed).first(size);
      ASSERT_EQ(test::CodeOf([&] { Restore(prefix); }), ErrorCode::kBadInput) << size;
      ASSERT_EQ(test::CodeOf([&] { CompressedCheckpoint(MemoryRandomReader(prefix).get()); }),
                ErrorCode::kBadInput)
          << size;
    }
  }
}

TEST(CompressedCheckpointTest, AByteBehindTheEndIsRefused) {
  for (const CompressedForm form : kForms) {
    Bytes compressed = Compress(test::SmallCheckpoint(), {.form = form});
    compressed.push_back(0);
    EXPECT_EQ(test::CodeOf([&] { Restore(compressed); }), ErrorCode::kBadInput);
  }
}

// Every bit of every byte: the whole is refused, and a tensor that is read alone is refused or right.
TEST(CompressedCheckpointTest, AFlippedBitIsRefusedOrHarmsOneTensorAtMost) {
  const Bytes file = TinyFile();
  const std::map<std::string, Bytes> tensors = test::TensorsOf(file);
  for (const CompressedForm form : kForms) {
    Bytes compressed = Compress(file, {.form = form});
    for (size_t at = 0; at < compressed.size(); ++at) {
      const uint8_t was = compressed[at];
      compressed[at] = static_cast<uint8_t>(was ^ 1 << at % 8);
      ASSERT_EQ(test::CodeOf([&] { Restore(compressed); }), ErrorCode::kBadInput) << at;
      int lost = 0;
      for (const auto& [name, bytes] : tensors) {
        Bytes read;
        const auto code = test::CodeOf([&] { read = ReadTensor(compressed, name); });
        ASSERT_TRUE(code ? code == ErrorCode::kBadInput : read == bytes) << at;
        lost += code ? 1 : 0;
      }
      // In the head and the footer a flip may cost all, in a tensor only this one.
      const bool in_index =
          test::CodeOf([&] { CompressedCheckpoint(MemoryRandomReader(compressed).get()); }).has_value();
      ASSERT_LE(lost, in_index ? 2 : 1) << at;
      compressed[at] = was;
    }
  }
}

TEST(CompressedCheckpointTest, DamageIsNamedByTensorBlockAndPlace) {
  const Bytes file = test::SmallCheckpoint();
  for (const CompressedForm form : kForms) {
    Bytes compressed = Compress(file, {.form = form});
    const auto reader = MemoryRandomReader(compressed, "model");
    const CompressedCheckpoint checkpoint(reader.get());
    uint64_t end =
        compressed.size() - (form == CompressedForm::kStream ? StreamEndBytes(checkpoint.head()) : 0);
    // In the last block of b, in front of its index of three blocks.
    end -= checkpoint.tail().coded_bytes[2];
    compressed[end - checkpoint.Open(1).decoder().IndexBytes() - 1] ^= 1;

    EXPECT_TRUE(checkpoint.FindDamage(0, nullptr).empty());
    EXPECT_TRUE(checkpoint.FindDamage(2, nullptr).empty());
    const std::vector<DamagedBlock> damage = checkpoint.FindDamage(1, nullptr);
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_EQ(damage[0].tensor, "b");
    EXPECT_EQ(damage[0].block, 2u);
    const auto is_complete = AllOf(HasSubstr("tensor 'b'"), HasSubstr("block 2"), HasSubstr("(byte "));
    EXPECT_THAT(damage[0].message, is_complete);
    EXPECT_THAT(MessageOf([&] { Restore(compressed); }), is_complete);
    EXPECT_EQ(ReadTensor(compressed, "c"), test::TensorsOf(file).at("c"));
  }
}

/// Whose last tensor differs a little.
Bytes WithLaterWeights(Bytes file) {
  for (size_t i = file.size() - 15360; i < file.size(); i += 16) file[i] = static_cast<uint8_t>(file[i] + 1);
  return file;
}

/// The sound tensors of a file that may be damaged; nothing where none is found.
std::optional<std::map<std::string, Bytes>> Salvaged(ByteSpan compressed) {
  const auto file = MemoryRandomReader(compressed, "file");
  std::optional<CompressedCheckpoint> checkpoint;
  const auto code = test::CodeOf([&] { checkpoint.emplace(file.get(), /*may_be_damaged=*/true); });
  if (code) {
    EXPECT_EQ(code, ErrorCode::kBadInput);
    return std::nullopt;
  }
  std::map<std::string, Bytes> tensors;
  for (size_t entry = 0; entry < checkpoint->tensors(); ++entry) {
    if (!checkpoint->FindDamage(entry, nullptr).empty()) continue;
    const StoredTensor tensor = checkpoint->Open(entry);
    Bytes* bytes = &tensors[checkpoint->head().source.entries[entry].name];
    tensor.Read(0, tensor.decoder().size_bytes(), [&](ByteSpan piece) { AppendBytes(bytes, piece); });
  }
  return tensors;
}

TEST(CompressedCheckpointTest, AFlippedBitCostsAllOnlyInTheOriginalsHeader) {
  const Bytes file = TinyFile();
  const std::map<std::string, Bytes> tensors = test::TensorsOf(file);
  for (const CompressedForm form : kForms) {
    Bytes compressed = Compress(file, {.form = form});
    const std::string text(AsText(compressed));
    const size_t header = text.find("\"trainwright.header\":");
    const size_t header_end = text.find("\",\"trainwright.level\"") + 1;
    ASSERT_LT(header, header_end);
    const size_t first_tensor = text.find("TWCT");
    for (size_t at = 0; at < compressed.size(); ++at) {
      const uint8_t was = compressed[at];
      compressed[at] = static_cast<uint8_t>(was ^ 1 << at % 8);
      const auto found = Salvaged(compressed);
      if (at < header || at >= header_end) {
        ASSERT_TRUE(found) << at;
        ASSERT_GE(found->size(), at < first_tensor ? tensors.size() : tensors.size() - 1) << at;
        for (const auto& [name, bytes] : *found) ASSERT_EQ(bytes, tensors.at(name)) << at;
      } else {
        ASSERT_FALSE(found) << at;
      }
      compressed[at] = was;
    }
  }
}

TEST(CompressedCheckpointTest, WithoutAFooterTensorsAreFoundAfterOneThatIsDamaged) {
  const Bytes file = test::SmallCheckpoint();
  const Bytes sound = Compress(file, {.form = CompressedForm::kStream});
  const auto reader = MemoryRandomReader(sound, "model");
  const CompressedCheckpoint checkpoint(reader.get());
  const std::vector<uint64_t> sizes = checkpoint.tail().coded_bytes;
  const uint64_t end = sound.size() - StreamEndBytes(checkpoint.head());
  const uint64_t begin_of_c = end - sizes[2], begin_of_b = begin_of_c - sizes[1];
  const uint64_t first_block_of_b = begin_of_b + checkpoint.Open(1).decoder().prologue_bytes();
  std::map<std::string, Bytes> others = test::TensorsOf(file);
  others.erase("b");
  // In its prologue, and in the size of its first block.
  for (const uint64_t at : {begin_of_b, begin_of_b + 9, first_block_of_b + 11}) {
    Bytes damaged(sound.begin(), sound.end() - 1);
    damaged[at] ^= 0x40;
    EXPECT_EQ(Salvaged(damaged), others) << at;
  }
  Bytes damaged(sound.begin(), sound.end() - 1);
  damaged[first_block_of_b + 11] ^= 0x40;
  const auto damaged_reader = MemoryRandomReader(damaged, "model");
  const CompressedCheckpoint found(damaged_reader.get(), /*may_be_damaged=*/true);
  EXPECT_THAT(found.problem().value_or(""), testing::StartsWith("model: "));
  const std::vector<DamagedBlock> damage = found.FindDamage(1, nullptr);
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_EQ(damage[0].block, 0u);
  // Cut in the last tensor.
  const ByteSpan cut = ByteSpan(sound).first(begin_of_c + 100);
  std::map<std::string, Bytes> first_two = test::TensorsOf(file);
  first_two.erase("c");
  EXPECT_EQ(Salvaged(cut), first_two);
}

TEST(CompressedCheckpointTest, ADamagedHashOfTheBaseKeepsNoTensorFromBeingRestored) {
  const Bytes before = test::SmallCheckpoint();
  const Bytes after = WithLaterWeights(before);
  MemoryBase base(before), other(after);
  for (const CompressedForm form : kForms) {
    Bytes compressed = Compress(after, {.form = form, .base = &base});
    const size_t digits = std::string(AsText(compressed)).find("base_xxh128\":\"") + 14;
    compressed[digits] = compressed[digits] == '0' ? '1' : '0';
    const auto reader = MemoryRandomReader(compressed, "model");
    const CompressedCheckpoint checkpoint(reader.get(), /*may_be_damaged=*/true);
    checkpoint.RequireBase(&base);
    EXPECT_THAT(MessageOf([&] { checkpoint.RequireBase(nullptr); }), HasSubstr("--base"));
    const size_t b = checkpoint.IndexOf("b");
    EXPECT_TRUE(checkpoint.FindDamage(b, &base).empty());
    EXPECT_FALSE(checkpoint.FindDamage(b, &other).empty());
  }
}

// Tensors of one shape have the same prologues but for what ties them to their names.
TEST(CompressedCheckpointTest, SwappedTensorsAreRefusedEvenWhereOneIsReadAlone) {
  const Bytes file = test::FileOf(
      R"({"a":{"dtype":"U8","shape":[20],"data_offsets":[0,20]},"b":{"dtype":"U8","shape":[20],"data_offsets":[20,40]}})",
      40);
  const Bytes compressed = Compress(file);
  const SafetensorsHeader own = ParseSafetensors(compressed, "container");
  const size_t half = (compressed.size() - own.data_offset) / 2;
  ASSERT_EQ(own.entries[1].begin, half) << "too short to shrink";
  Bytes swapped = compressed;
  std::rotate(swapped.end() - static_cast<ptrdiff_t>(2 * half), swapped.end() - static_cast<ptrdiff_t>(half),
              swapped.end());
  EXPECT_EQ(test::CodeOf([&] { ReadTensor(swapped, "a"); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { ReadTensor(swapped, "b"); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([&] { Restore(swapped); }), ErrorCode::kBadInput);
}

TEST(CompressedCheckpointTest, ATensorOrASliceIsReadWithoutTheRest) {
  const Bytes file = test::FileOf(
      R"({"big":{"dtype":"F32","shape":[1000,256],"data_offsets":[0,1024000]},"small":{"dtype":"U8","shape":[300],"data_offsets":[1024000,1024300]}})",
      1024300);
  for (const CompressedForm form : kForms) {
    const Bytes compressed = Compress(file, {.form = form, .block_log2 = 12});
    const auto reader = MemoryRandomReader(compressed);
    const CompressedCheckpoint checkpoint(reader.get());
    const uint64_t after_index = reader->bytes_read();
    checkpoint.Open(1).Read(0, 300, [](ByteSpan) {});
    EXPECT_LT(reader->bytes_read() - after_index, 600u);
    EXPECT_LT(after_index, 2500u);

    const StoredTensor big = checkpoint.Open(0);
    const uint64_t before = reader->bytes_read();
    Bytes slice;
    big.Read(500'000, 20'000, [&](ByteSpan piece) { AppendBytes(&slice, piece); });
    const SafetensorsHeader source = ParseSafetensors(file, "file");
    const ByteSpan expected = ByteSpan(file).subspan(source.data_offset + 500'000, 20'000);
    EXPECT_TRUE(std::equal(slice.begin(), slice.end(), expected.begin(), expected.end()));
    // Two or three of its 63 blocks of 16 KiB.
    EXPECT_LT(reader->bytes_read() - before, 3u * 16'400);
  }
}

TEST(CompressedCheckpointTest, ADifferenceNeedsItsBaseAndNoOther) {
  const Bytes before = test::SmallCheckpoint();
  const Bytes after = WithLaterWeights(before);
  MemoryBase base(before);
  for (const CompressedForm form : kForms) {
    const Bytes compressed = Compress(after, {.form = form, .base = &base});
    EXPECT_LT(compressed.size(), Compress(after, {.form = form}).size() * 2 / 3);
    EXPECT_EQ(Restore(compressed, &base), after);
    EXPECT_EQ(ReadTensor(compressed, "b", &base), test::TensorsOf(after).at("b"));
    EXPECT_THAT(MessageOf([&] { Restore(compressed); }), HasSubstr("--base"));
    EXPECT_THAT(MessageOf([&] { ReadTensor(compressed, "b"); }), HasSubstr("--base"));
    MemoryBase other(after);
    EXPECT_THAT(MessageOf([&] { Restore(compressed, &other); }), HasSubstr("is not the base that"));
    EXPECT_EQ(test::CodeOf([&] { ReadTensor(compressed, "b", &other); }), ErrorCode::kBadInput);
    // What is stored can be checked without it.
    BufferedReader reader(MemorySource(compressed));
    EXPECT_FALSE(DecodeCheckpoint(&reader, nullptr, {.allow_missing_base = true}).content_checked);
    EXPECT_EQ(Convert(compressed, CompressedForm::kStream),
              Compress(after, {.form = CompressedForm::kStream, .base = &base}));
  }
}

/// Is written to by another after so many reads.
class ChangingReader final : public RandomReader {
 public:
  ChangingReader(Bytes bytes, int reads) : bytes_(std::move(bytes)), reads_(reads) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }

 protected:
  size_t ReadSome(uint64_t offset, std::span<uint8_t> out) const override {
    if (reads_-- == 0) throw Error(ErrorCode::kBadInput, name_, "changed while it was read");
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return out.size();
  }

 private:
  std::string name_ = "base";
  Bytes bytes_;
  mutable int reads_;
};

/// Whose tensors are read block by block.
class ChangingBase final : public BaseTensors {
 public:
  ChangingBase(const Bytes& file, int reads) : base_(file), reads_(reads) {}
  const std::string& name() const override { return base_.name(); }
  Xxh128Digest Hash() override { return base_.Hash(); }
  std::optional<TensorBytes> Read(const SafetensorsEntry& entry) override {
    return TensorBytes::Own(std::make_unique<ChangingReader>(base_.Read(entry)->owned, reads_));
  }

 private:
  MemoryBase base_;
  int reads_;
};

TEST(CompressedCheckpointTest, AFaultOfTheBaseIsNoDamageOfATensor) {
  const Bytes before = test::SmallCheckpoint();
  const Bytes after = WithLaterWeights(before);
  MemoryBase base(before);
  Bytes compressed = Compress(after, {.base = &base});
  const auto reader = MemoryRandomReader(compressed, "model");
  const CompressedCheckpoint checkpoint(reader.get());
  const size_t b = checkpoint.IndexOf("b");
  ASSERT_EQ(checkpoint.Open(b).decoder().transform(), TensorTransform::kBase);
  for (const int reads : {0, 1, 2}) {  // while its hash is taken, and at the first two blocks
    ChangingBase changing(before, reads);
    EXPECT_THAT(MessageOf([&] { checkpoint.FindDamage(b, &changing); }),
                testing::StartsWith("base: changed while it was read"));
  }
  ChangingBase sound(before, -1);
  EXPECT_TRUE(checkpoint.FindDamage(b, &sound).empty());
  compressed[compressed.size() - checkpoint.tail().coded_bytes[2] -
             checkpoint.Open(b).decoder().IndexBytes() - 1] ^= 1;
  EXPECT_EQ(checkpoint.FindDamage(b, &sound).size(), 1u);
}

TEST(CompressedCheckpointTest, APlainFileIsToldFromACompressedOne) {
  const Bytes file = test::SmallCheckpoint();
  EXPECT_THAT(MessageOf([&] { Restore(file); }), HasSubstr("is not compressed"));
  EXPECT_FALSE(IsCompressedCheckpoint(*MemoryRandomReader(file)));
  for (const CompressedForm form : kForms)
    EXPECT_TRUE(IsCompressedCheckpoint(*MemoryRandomReader(Compress(file, {.form = form}))));
}

TEST(CompressedCheckpointTest, ItNeverGrowsByMoreThanItsIndex) {
  Bytes file =
      test::FileOf(R"({"noise":{"dtype":"F32","shape":[250000],"data_offsets":[0,1000000]}})", 1'000'000);
  std::mt19937_64 random(7);
  for (uint8_t& byte : file) byte = static_cast<uint8_t>(random());
  const Bytes head =
      test::FileOf(R"({"noise":{"dtype":"F32","shape":[250000],"data_offsets":[0,1000000]}})", 0);
  std::copy(head.begin(), head.end(), file.begin());
  EXPECT_LT(Compress(file, {.block_log2 = 18}).size(), file.size() + 1000);
}

TEST(MatricesTest, ComeFromTheShapeOrFromTheMetadata) {
  SafetensorsHeader header;
  const auto parts = [&](const std::string& dtype, std::vector<int64_t> shape) {
    int64_t elements = 1;
    for (const int64_t dim : shape) elements *= dim;
    const uint64_t size = static_cast<uint64_t>(elements) * SafetensorsElementBits(dtype) / 8;
    std::vector<std::array<uint64_t, 3>> found;
    for (const MatrixPart& part : MatricesOf(header, {"t", dtype, shape, 0, size}))
      found.push_back({part.first, part.rows, part.columns});
    return found;
  };
  using Parts = std::vector<std::array<uint64_t, 3>>;
  EXPECT_EQ(parts("BF16", {3, 4}), (Parts{{0, 3, 4}}));
  EXPECT_EQ(parts("F32", {2, 16, 32}), (Parts{{0, 16, 32}, {512, 16, 32}}));
  EXPECT_EQ(parts("F32", {8, 16, 3, 3}), (Parts{{0, 8, 144}}));
  EXPECT_EQ(parts("F32", {100}), Parts{});
  EXPECT_EQ(parts("F32", {0, 4}), Parts{});
  EXPECT_EQ(parts("I32", {3, 4}), Parts{});
  header.metadata["matrices"] = R"({"t":[[10,2,5],[50,5,10]]})";
  EXPECT_EQ(parts("F32", {100}), (Parts{{10, 2, 5}, {50, 5, 10}}));
  for (const std::string wrong : {"{", R"({"t":[[10,2]]})", R"({"t":[[10,2,-5]]})", R"({"t":[[90,2,10]]})",
                                  R"({"t":[[50,5,5],[10,1,1]]})", R"({"t":[[0,4294967296,4294967296]]})"}) {
    header.metadata["matrices"] = wrong;
    EXPECT_EQ(parts("F32", {100}), Parts{}) << wrong;
  }
}

}  // namespace
}  // namespace trainwright

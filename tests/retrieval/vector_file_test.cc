#include "lib/retrieval/vector_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "lib/retrieval/vector_reader.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const std::vector<float> kValues = {1, -0.5F, 0.1F, 1e-30F, 3, 16777216};  // three rows of two

std::string BytesOf(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// What numpy.lib.format writes, put together by its specification.
std::string Npy(const std::string& type, const std::string& shape, const std::string& content,
                const std::string& fortran_order = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape + ", }";
  header.resize(128 - 10 - 1, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + content;
}

class VectorFileTest : public testing::Test {
 protected:
  std::string Written(VectorFormat format, std::span<const std::string> ids) {
    MemorySink sink;
    VectorFileInfo info = {.format = format, .columns = 2, .normalized = true};
    info.model_sha256[31] = 7;
    VectorWriter writer(info, &sink, format == VectorFormat::kJsonl ? nullptr : &sink);
    const std::span<const float> values(kValues);
    writer.Add(values.first(2), ids.empty() ? ids : ids.first(1));
    writer.Add(values.subspan(2), ids.empty() ? ids : ids.subspan(1));
    EXPECT_EQ(writer.rows(), 3u);
    writer.Finish();
    return std::string(AsText(sink.bytes()));
  }
  std::string Put(const std::string& name, const std::string& content) {
    test::WriteFile(folder_.path(name), content);
    return folder_.path(name);
  }
  std::string MessageOfReading(const std::string& content) {
    const std::string path = Put("bad", content);
    return test::MessageOf([&] {
      const auto reader = OpenVectors(path);
      ReadAllVectors(reader.get(), nullptr);
    });
  }
  test::TemporaryFolder folder_;
  const std::vector<std::string> ids_ = {"a", "b \"c\"", "d"};
};

TEST_F(VectorFileTest, ANpyFileIsWhatNumpyWrites) {
  EXPECT_EQ(Written(VectorFormat::kNpy, {}), Npy("<f4", "(3, 2)", BytesOf(kValues)));
}

TEST_F(VectorFileTest, ARawFileTellsItsShapeAndItsModel) {
  std::string expected("TWVEC\0\0\x01", 8);
  expected += std::string("\x03\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0", 16);
  expected += std::string(31, '\0') + "\x07" + std::string(8, '\0');
  EXPECT_EQ(Written(VectorFormat::kRaw, {}), expected + BytesOf(kValues));
}

TEST_F(VectorFileTest, TheExampleOfTheManPageIsWrittenAndRead) {
  const std::vector<uint8_t> example = test::HexDumpOf("trainwright-vectors.5");
  VectorFileInfo info = {.format = VectorFormat::kRaw, .columns = 2, .normalized = true};
  for (size_t i = 0; i < info.model_sha256.size(); ++i) info.model_sha256[i] = static_cast<uint8_t>(i);
  const std::vector<float> values = {1, 0, 0.6F, 0.8F};
  MemorySink sink;
  VectorWriter writer(info, &sink, &sink);
  writer.Add(values, {});
  writer.Finish();
  EXPECT_EQ(HexEncode(sink.bytes()), HexEncode(example));
  EXPECT_EQ(ReadAllVectors(OpenVectors(Put("example", std::string(AsText(example)))).get(), nullptr), values);
}

TEST_F(VectorFileTest, JsonLinesHaveTheIdsOrTheNumbersOfTheirRows) {
  EXPECT_EQ(Written(VectorFormat::kJsonl, {}),
            "{\"id\":0,\"embedding\":[1,-0.5]}\n{\"id\":1,\"embedding\":[0.1,1e-30]}\n"
            "{\"id\":2,\"embedding\":[3,16777216]}\n");
  EXPECT_THAT(Written(VectorFormat::kJsonl, ids_),
              testing::HasSubstr("{\"id\":\"b \\\"c\\\"\",\"embedding\""));
}

TEST_F(VectorFileTest, EveryFormatReadsBackBitForBit) {
  for (const VectorFormat format : {VectorFormat::kNpy, VectorFormat::kRaw, VectorFormat::kJsonl}) {
    const auto reader = OpenVectors(Put("vectors", Written(format, ids_)));
    EXPECT_EQ(reader->columns(), 2u);
    std::vector<float> block;
    std::vector<std::string> names;
    EXPECT_EQ(reader->Read(2, &block, &names), 2u);
    EXPECT_EQ(block, std::vector<float>(kValues.begin(), kValues.begin() + 4)) << NameOf(format);
    EXPECT_EQ(reader->Read(2, &block, &names), 1u);
    EXPECT_EQ(block, std::vector<float>(kValues.begin() + 4, kValues.end()));
    EXPECT_EQ(reader->Read(2, &block, &names), 0u);
  }
}

TEST_F(VectorFileTest, NamesStandBesideOrInTheLines) {
  std::vector<std::string> names;
  const std::string npy = Put("vectors.npy", Written(VectorFormat::kNpy, {}));
  ReadAllVectors(OpenVectors(npy).get(), &names);
  EXPECT_THAT(names, testing::ElementsAre("0", "1", "2")) << "without any";
  Put("vectors.npy.ids", "x\ny y\nz\n");
  const auto named = OpenVectors(npy);
  EXPECT_TRUE(named->has_ids());
  names.clear();
  ReadAllVectors(named.get(), &names);
  EXPECT_THAT(names, testing::ElementsAre("x", "y y", "z"));
  const auto lines = OpenVectors(Put("vectors.jsonl", Written(VectorFormat::kJsonl, ids_)));
  names.clear();
  ReadAllVectors(lines.get(), &names);
  EXPECT_EQ(names, ids_);
}

TEST_F(VectorFileTest, NamesAreFoundBesideTheFileThatALinkLeadsTo) {
  std::filesystem::create_directory(folder_.path("kept"));
  Put("kept/vectors.npy", Written(VectorFormat::kNpy, {}));
  Put("kept/vectors.npy.ids", "x\ny\nz\n");
  std::filesystem::create_symlink("kept/vectors.npy", folder_.path("link.npy"));
  std::vector<std::string> names;
  ReadAllVectors(OpenVectors(folder_.path("link.npy")).get(), &names);
  EXPECT_THAT(names, testing::ElementsAre("x", "y", "z"));
  Put("link.npy.ids", "1\n2\n3\n");
  names.clear();
  ReadAllVectors(OpenVectors(folder_.path("link.npy")).get(), &names);
  EXPECT_THAT(names, testing::ElementsAre("1", "2", "3")) << "those beside the name itself go first";
}

TEST_F(VectorFileTest, LinesMayBeginWithAByteOrderMark) {
  const std::string path = Put("vectors.jsonl", "\xEF\xBB\xBF{\"embedding\":[1,2]}\n");
  EXPECT_EQ(ReadAllVectors(OpenVectors(path).get(), nullptr), (std::vector<float>{1, 2}));
}

TEST_F(VectorFileTest, OtherNumbersOfNamesAreRefused) {
  const std::string npy = Put("vectors.npy", Written(VectorFormat::kNpy, {}));
  Put("vectors.npy.ids", "x\ny\n");
  EXPECT_THAT(test::MessageOf([&] { OpenVectors(npy); }), testing::HasSubstr("has 2 ids"));
}

TEST_F(VectorFileTest, EveryProperPrefixIsRefused) {
  for (const VectorFormat format : {VectorFormat::kNpy, VectorFormat::kRaw}) {
    const std::string whole = Written(format, {});
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_NE(MessageOfReading(whole.substr(0, size)), "") << NameOf(format) << " " << size;
    }
    EXPECT_THAT(MessageOfReading(whole + "x"), testing::HasSubstr("goes on"));
  }
}

TEST_F(VectorFileTest, AFileWithoutItsEndTellsNoRows) {
  MemorySink sink;
  VectorWriter writer({.format = VectorFormat::kNpy, .columns = 2}, &sink, &sink);
  writer.Add(kValues, {});
  EXPECT_THAT(MessageOfReading(std::string(AsText(sink.bytes()))), testing::HasSubstr("holds no vector"));
}

TEST_F(VectorFileTest, ArraysOfOtherTypesAndShapesAreRefused) {
  const std::string content = BytesOf(kValues);
  EXPECT_THAT(MessageOfReading(Npy("<f8", "(3, 1)", content)), testing::HasSubstr("not float32"));
  EXPECT_THAT(MessageOfReading(Npy(">f4", "(3, 2)", content)), testing::HasSubstr("not float32"));
  EXPECT_THAT(MessageOfReading(Npy("<f4", "(3, 2)", content, "True")),
              testing::HasSubstr("columns together"));
  EXPECT_THAT(MessageOfReading(Npy("<f4", "(6,)", content)), testing::HasSubstr("two dimensions"));
  EXPECT_THAT(MessageOfReading(Npy("<f4", "(1, 3, 2)", content)), testing::HasSubstr("two dimensions"));
  EXPECT_THAT(MessageOfReading(Npy("<f4", "(0, 2)", "")), testing::HasSubstr("holds no vector"));
  EXPECT_THAT(MessageOfReading("hello"), testing::HasSubstr("holds no vectors"));
  EXPECT_THAT(MessageOfReading(Npy("\x1b[2J", "(3, 2)", content)), testing::Not(testing::HasSubstr("\x1b")))
      << "what does something to a terminal";
}

TEST_F(VectorFileTest, BadLinesAreRefused) {
  const std::string first = "{\"embedding\":[1,2]}\n";
  EXPECT_THAT(MessageOfReading(first + "{\"embedding\":[1]}\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfReading(first + "{\"embedding\":[1,\"2\"]}\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfReading(first + "{\"embedding\":[1,1e99]}\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfReading(first + "{\"vector\":[1,2]}\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfReading("{\"embedding\":[]}\n"), testing::HasSubstr("line 1"));
}

TEST_F(VectorFileTest, ANumberThatIsNotFiniteIsNeitherWrittenNorRead) {
  const std::vector<float> values = {1, 2, 3, std::numeric_limits<float>::infinity()};
  EXPECT_THAT(MessageOfReading(Npy("<f4", "(2, 2)", BytesOf(values))), testing::HasSubstr("vector 1"));
  MemorySink sink;
  VectorWriter writer({.format = VectorFormat::kRaw, .columns = 2}, &sink, &sink);
  EXPECT_EQ(test::CodeOf([&] { writer.Add(values, {}); }), ErrorCode::kNonFinite);
}

TEST_F(VectorFileTest, TheNameOfAFileSaysItsFormat) {
  EXPECT_EQ(VectorFormatOf("auto", "a/b.npy"), VectorFormat::kNpy);
  EXPECT_EQ(VectorFormatOf("auto", "b.f32"), VectorFormat::kRaw);
  EXPECT_EQ(VectorFormatOf("auto", "b.jsonl"), VectorFormat::kJsonl);
  EXPECT_EQ(VectorFormatOf("auto", "-"), VectorFormat::kJsonl);
  EXPECT_EQ(VectorFormatOf("raw", "b.npy"), VectorFormat::kRaw);
  EXPECT_EQ(test::CodeOf([] { VectorFormatOf("auto", "b"); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright

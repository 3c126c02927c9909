#include "lib/formats/safetensors.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::Fixture;
using test::MessageOf;
using test::ReadFile;

std::string FileOf(const std::string& header, const std::string& data) {
  std::vector<uint8_t> bytes;
  AppendInteger<uint64_t>(&bytes, header.size());
  AppendBytes(&bytes, AsBytes(header));
  AppendBytes(&bytes, AsBytes(data));
  return std::string(AsText(bytes));
}

std::string ErrorOf(const std::string& file) {
  EXPECT_EQ(CodeOf([&] { ParseSafetensors(AsBytes(file), "f"); }), ErrorCode::kBadInput);
  return MessageOf([&] { ParseSafetensors(AsBytes(file), "f"); });
}

// The fixture was written by the reference library (safetensors 0.6, numpy front end).
TEST(SafetensorsTest, ReadsAFileOfTheReferenceLibrary) {
  const std::string file = ReadFile(Fixture("formats/testdata/reference.safetensors"));
  const SafetensorsHeader header = ParseSafetensors(AsBytes(file), "reference");
  EXPECT_EQ(header.entries.size(), 5u);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  const SafetensorsEntry* a = header.Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->dtype, "F32");
  EXPECT_EQ(a->shape, (std::vector<int64_t>{2, 3}));
  float values[6];
  std::memcpy(values, file.data() + header.data_offset + a->begin, sizeof(values));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(values[i], static_cast<float>(i));
  EXPECT_EQ(header.Find("scalar")->shape.size(), 0u);
  EXPECT_EQ(header.Find("empty")->shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(header.Find("none"), nullptr);
}

TEST(SafetensorsTest, WhatIsWrittenReadsBackWithAlignedData) {
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<int64_t> y = {-5};
  const ByteSpan x_bytes(reinterpret_cast<const uint8_t*>(x.data()), 16),
      y_bytes(reinterpret_cast<const uint8_t*>(y.data()), 8);
  MemorySink sink;
  WriteSafetensors(&sink, {{"y", "I64", {1}, y_bytes}, {"x", "F32", {2, 2}, x_bytes}}, {{"step", "3"}});
  const SafetensorsHeader header = ParseSafetensors(sink.bytes(), "memory");
  EXPECT_EQ(header.data_offset % 8, 0u);
  EXPECT_EQ(header.metadata.at("step"), "3");
  EXPECT_EQ(header.entries[0].name, "y");
  EXPECT_EQ(header.Find("x")->begin, 8u);
  EXPECT_EQ(std::memcmp(sink.bytes().data() + header.data_offset + 8, x.data(), 16), 0);
}

TEST(SafetensorsTest, EveryProperPrefixIsRejected) {
  const std::string file = ReadFile(Fixture("formats/testdata/reference.safetensors"));
  for (size_t cut = 0; cut < file.size(); ++cut) {
    SCOPED_TRACE(cut);
    EXPECT_EQ(CodeOf([&] { ParseSafetensors(AsBytes(file).first(cut), "cut"); }), ErrorCode::kBadInput);
  }
}

TEST(SafetensorsTest, EveryRuleOfTheFormatIsChecked) {
  const std::string four(4, '\0');
  const auto one = [](const std::string& body) { return "{\"a\":" + body + "}"; };
  EXPECT_NE(ErrorOf(FileOf("[]", "")).find("'{'"), std::string::npos);
  EXPECT_NE(ErrorOf(FileOf("{oops", "")).find("JSON"), std::string::npos);
  EXPECT_NE(ErrorOf(FileOf(one(R"({"dtype":"F99","shape":[1],"data_offsets":[0,4]})"), four)).find("dtype"),
            std::string::npos);
  EXPECT_NE(ErrorOf(FileOf(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), four)).find("span"),
            std::string::npos);
  EXPECT_NE(ErrorOf(FileOf(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), four)).find("shape"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf(FileOf(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), four + four)).find("gap"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf(FileOf(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), four + "x")).find("holds 5"),
      std::string::npos);
  EXPECT_NE(ErrorOf(FileOf(one(R"({"dtype":"F32","shape":[1]})"), four)).find("exactly"), std::string::npos);
  EXPECT_NE(
      ErrorOf(FileOf(one(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,4]})"), four))
          .find("overflow"),
      std::string::npos);
  EXPECT_NE(ErrorOf(FileOf(R"({"__metadata__":{"k":1}})", "")).find("__metadata__"), std::string::npos);
  const std::string entry = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_NE(ErrorOf(FileOf("{" + entry + "," + entry + "}", four)).find("twice"), std::string::npos);
  const std::string overlap =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  EXPECT_NE(ErrorOf(FileOf(overlap, four + "xx")).find("overlaps"), std::string::npos);
}

}  // namespace
}  // namespace trainwright

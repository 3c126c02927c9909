#include "lib/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using testing::HasSubstr;

/// A file with this header text and so many bytes of data.
std::vector<uint8_t> FileOf(const std::string& header, size_t data_bytes) {
  std::vector<uint8_t> file;
  file.reserve(8 + header.size() + data_bytes);
  AppendInteger(&file, static_cast<uint64_t>(header.size()));
  AppendBytes(&file, AsBytes(header));
  file.resize(file.size() + data_bytes);
  return file;
}

std::string Complaint(const std::string& header, size_t data_bytes) {
  return MessageOf([&] { ParseSafetensors(FileOf(header, data_bytes), "a file"); });
}

TEST(SafetensorsTest, ReadsWhatThePythonLibraryWrote) {
  const std::string file = test::ReadFile(test::Fixture("formats/fixtures/python.safetensors"));
  const SafetensorsHeader header = ParseSafetensors(AsBytes(file), "fixture");
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"note", "é"}}));
  EXPECT_EQ(header.entries.size(), 5u);
  const auto bytes_of = [&](const SafetensorsEntry& entry) {
    return AsBytes(file).subspan(header.data_offset + entry.begin, entry.end - entry.begin);
  };

  const SafetensorsEntry* weight = header.Find("b.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->dtype, "F32");
  EXPECT_EQ(weight->shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> values(6);
  ASSERT_EQ(bytes_of(*weight).size(), 24u);
  std::memcpy(values.data(), bytes_of(*weight).data(), 24);
  EXPECT_EQ(values, (std::vector<float>{0, 0.25, 0.5, 0.75, 1, 1.25}));

  EXPECT_EQ(header.Find("a")->dtype, "BF16");
  EXPECT_EQ(HexEncode(bytes_of(*header.Find("a"))), "c03f00c0");
  EXPECT_TRUE(header.Find("scalar")->shape.empty());
  EXPECT_EQ(HexEncode(bytes_of(*header.Find("scalar"))), "0700000000000000");
  EXPECT_EQ(header.Find("empty")->shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(HexEncode(bytes_of(*header.Find("mask"))), "010001");
  EXPECT_EQ(header.Find("absent"), nullptr);
}

TEST(SafetensorsTest, TensorsComeBackAsWritten) {
  const std::string first = "12345678", second = "abc";
  MemorySink sink;
  WriteSafetensors(
      &sink,
      {{"z", "F32", {1, 2}, AsBytes(first)}, {"a", "U8", {3}, AsBytes(second)}, {"none", "F16", {0}, {}}},
      {{"format", "pt"}});
  const SafetensorsHeader header = ParseSafetensors(sink.bytes(), "memory");
  EXPECT_EQ(header.data_offset % 8, 0u);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.entries[0].name, "z");
  const auto text_of = [&](const std::string& name) {
    const SafetensorsEntry* entry = header.Find(name);
    return AsText(
        ByteSpan(sink.bytes()).subspan(header.data_offset + entry->begin, entry->end - entry->begin));
  };
  EXPECT_EQ(text_of("z"), first);
  EXPECT_EQ(text_of("a"), second);
  EXPECT_EQ(text_of("none"), "");
}

TEST(SafetensorsTest, HeaderIsCanonicalJson) {
  const std::string data = "1234";
  MemorySink sink;
  WriteSafetensors(&sink, {{"w", "F32", {}, AsBytes(data)}}, {});
  EXPECT_EQ(AsText(ByteSpan(sink.bytes()).subspan(8)),
            R"({"w":{"data_offsets":[0,4],"dtype":"F32","shape":[]}}   )"
            "1234");
}

TEST(SafetensorsTest, AFileWithoutTensorsIsLegal) {
  EXPECT_TRUE(ParseSafetensors(FileOf("{}", 0), "a file").entries.empty());
}

TEST(SafetensorsTest, EveryProperPrefixIsRejected) {
  const std::string file = test::ReadFile(test::Fixture("formats/fixtures/python.safetensors"));
  for (size_t cut = 0; cut < file.size(); ++cut) {
    EXPECT_EQ(CodeOf([&] { ParseSafetensors(AsBytes(file).first(cut), "fixture"); }), ErrorCode::kBadInput)
        << cut;
  }
}

TEST(SafetensorsTest, EveryRuleOfTheFormatIsChecked) {
  struct Case {
    std::string header;
    size_t data_bytes;
    std::string complaint;
  };
  const std::vector<Case> cases = {
      {R"([])", 0, "no JSON object"},
      {R"( {})", 0, "no JSON object"},
      {R"({"a":})", 0, "not valid JSON"},
      {"{\"\xff\":1}", 0, "not valid JSON"},
      {R"({"a":1})", 0, "must have dtype"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "must have dtype"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "nothing else"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, "'F31' is unknown"},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "dtype is not a string"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "shape is not a list"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "non-negative"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "non-negative"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "not a pair"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "end before they begin"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}})", 0,
       "overflows"},
      {R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0, "overflows"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,0]}})", 0, "too large"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1, "whole byte"},
      {R"({"a":{"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]}})", 2, "whole byte"},
      {"{}\t", 0, "} and spaces"},
      {"{} x", 0, "} and spaces"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, "do not follow"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, "do not follow"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "do not follow"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "ends too early"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3, "bytes follow"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, "twice"},
      {R"({"__metadata__":{"a":1}})", 0, "other than strings"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "twice"},
      {R"({"__metadata__":null})", 0, "no JSON object"},
      {R"({"__metadata__":[]})", 0, "no JSON object"},
  };
  for (const Case& wrong : cases) {
    EXPECT_THAT(Complaint(wrong.header, wrong.data_bytes), HasSubstr(wrong.complaint)) << wrong.header;
  }
}

TEST(SafetensorsTest, AHugeHeaderIsRefusedBeforeItIsRead) {
  std::vector<uint8_t> file;
  AppendInteger(&file, uint64_t{1} << 40);
  EXPECT_THAT(MessageOf([&] { ParseSafetensors(file, "a file"); }), HasSubstr("too large"));
}

TEST(SafetensorsTest, DeepNestingIsRefused) {
  const std::string deep = R"({"a":)" + std::string(100'000, '[') + "}";
  EXPECT_EQ(CodeOf([&] { ParseSafetensors(FileOf(deep, 0), "a file"); }), ErrorCode::kBadInput);
}

TEST(SafetensorsTest, ElementSizesAreThoseOfTheFormat) {
  EXPECT_EQ(SafetensorsElementBits("BF16"), 16u);
  EXPECT_EQ(SafetensorsElementBits("C64"), 64u);
  EXPECT_EQ(SafetensorsElementBits("BOOL"), 8u);
  EXPECT_EQ(SafetensorsElementBits("F6_E3M2"), 6u);
  EXPECT_EQ(SafetensorsElementBits("float"), 0u);
}

}  // namespace
}  // namespace trainwright

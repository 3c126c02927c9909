#include "lib/packing/foreign_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/formats/document_parts.h"
#include "lib/formats/provenance.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/zip_archive.h"
#include "lib/packing/pack_job.h"
#include "lib/packing/shard_inspection.h"
#include "lib/packing/shard_set_summary.h"
#include "lib/tok/tokenizer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::CodeOf;
using test::MessageOf;
using test::ProcessResult;
using test::ReadFile;
using test::TemporaryFolder;
using test::WriteFile;
using testing::HasSubstr;

using Document = std::vector<uint32_t>;

std::string Foreign(const std::string& name) {
  return test::Fixture("packing/fixtures/foreign/" + name);
}

std::vector<Document> Read(const std::string& path, ImportOptions options = {.vocab_size = 200'000}) {
  ForeignDocuments source({path}, FormatOf(path, options), options);
  std::vector<Document> documents;
  DocumentPiece piece;
  bool open = false;
  while (source.Next(&piece)) {
    EXPECT_EQ(piece.begins, !open);
    if (piece.begins) documents.emplace_back();
    documents.back().insert(documents.back().end(), piece.tokens.begin(), piece.tokens.end());
    open = !piece.ends;
  }
  EXPECT_FALSE(open);
  return documents;
}

// numpy, torch and restated writers made the files (make_foreign_fixtures.py).
TEST(ForeignDocumentsTest, GivesTheDocumentsThatTheOtherProgramWrote) {
  const auto expected = nlohmann::json::parse(ReadFile(Foreign("expected.json")));
  ASSERT_GE(expected.size(), 15u);
  for (const auto& [name, documents] : expected.items()) {
    SCOPED_TRACE(name);
    ImportOptions options{.vocab_size = 200'000};
    if (name.starts_with("nanogpt")) options = {ForeignFormat::kNanoGpt, "", 50'257, 50'256};
    EXPECT_EQ(Read(Foreign(name), options), documents.get<std::vector<Document>>());
  }
}

TEST(ForeignDocumentsTest, HasTheUnknownTokenizerThatTheManPageDescribes) {
  const std::string page = ReadFile(test::Fixture("../man/trainwright-token-stream.5"));
  const std::string hashed = "unknown tokenizer of 50257 ids";
  EXPECT_THAT(page, HasSubstr("The kind\n.Dq unknown\n"));
  EXPECT_THAT(page, HasSubstr("\n.Dq " + hashed + " .\n"));
  const ImportOptions options = {ForeignFormat::kNanoGpt, "", 50'257, 50'256};
  const ForeignDocuments source({Foreign("nanogpt.bin.u16")}, ForeignFormat::kNanoGpt, options);
  const TokenizerIdentity& tokenizer = source.header().tokenizer;
  EXPECT_EQ(tokenizer.kind, "unknown");
  EXPECT_EQ(tokenizer.model, "");
  EXPECT_EQ(HexEncode(tokenizer.sha256), HexEncode(Sha256Of(AsBytes(hashed))));
}

TEST(ForeignDocumentsTest, KnowsEveryFormatThatSaysWhatItIs) {
  const std::map<std::string, ForeignFormat> formats = {
      {"gpt2.bin", ForeignFormat::kLlmC},          {"llama3.bin", ForeignFormat::kLlmC},
      {"short.idx", ForeignFormat::kMegatron},     {"short.bin", ForeignFormat::kMegatron},
      {"deflated.npz", ForeignFormat::kNpz},       {"list.pt", ForeignFormat::kTorch},
      {"nanogpt.bin.u16", ForeignFormat::kTokens}, {"expected.json", ForeignFormat::kTokens}};
  for (const auto& [name, format] : formats) EXPECT_EQ(FormatOf(Foreign(name), {}), format) << name;
}

TEST(ForeignDocumentsTest, APickleIsNeverRunAndWhatItNamesIsRefusedByName) {
  EXPECT_THAT(MessageOf([] { Read(Foreign("evil.pt")); }), HasSubstr("exec"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("numpy.pt")); }), HasSubstr("_reconstruct"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("float.pt")); }), HasSubstr("torch.FloatStorage"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("strided.pt")); }), HasSubstr("not contiguous"));
}

TEST(ForeignDocumentsTest, APickleThatWouldTakeTheStackOrTheMemoryIsRefused) {
  EXPECT_THAT(MessageOf([] { Read(Foreign("nested.pt")); }), HasSubstr("too deep"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("long_key.pt")); }), HasSubstr("1000 bytes"));
}

TEST(ForeignDocumentsTest, PaddingThatIsToldInAnotherWayThanTheIdsIsRefused) {
  EXPECT_THAT(MessageOf([] { Read(Foreign("list_lengths.pt")); }), HasSubstr("lengths or a mask"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("short_mask.pt")); }), HasSubstr("as many numbers"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("truth.npz")); }), HasSubstr("truth values"));
}

TEST(ForeignDocumentsTest, LengthsThatTheMaskOrTheShapeOfTheIdsContradictsAreRefused) {
  EXPECT_THAT(MessageOf([] { Read(Foreign("not_of_mask.npz")); }), HasSubstr("attention_mask keeps"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("not_of_mask.pt")); }), HasSubstr("attention_mask keeps 2"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("flat.npz")); }), HasSubstr("another shape"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("flat.pt")); }), HasSubstr("not one number"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("long_list.pt")); }), HasSubstr("row 0 has 19 ids"));
}

TEST(ForeignDocumentsTest, BothFilesOfAMegatronPairAreRefused) {
  const auto open = [](const std::string& first, const std::string& second) {
    return CodeOf([&] {
      ForeignDocuments({Foreign(first), Foreign(second)}, ForeignFormat::kMegatron, {.vocab_size = 200'000});
    });
  };
  EXPECT_EQ(open("short.bin", "short.idx"), ErrorCode::kUsage);
  EXPECT_EQ(open("wide.idx", "wide.idx"), ErrorCode::kUsage);
}

TEST(ForeignDocumentsTest, ArraysThatHoldNoIdsAreRefusedWithTheReason) {
  EXPECT_THAT(MessageOf([] { Read(Foreign("float.npz")); }), HasSubstr("<f8"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("negative.npz")); }), HasSubstr("-1"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("lengths.npz")); }), HasSubstr("row 0 has"));
  EXPECT_THAT(MessageOf([] { Read(Foreign("names.npz")); }), HasSubstr("first.npy, second.npy"));
}

TEST(ForeignDocumentsTest, AnIdOutsideTheVocabularyIsRefused) {
  for (const std::string name : {"gpt2.bin", "short.idx", "stored.npz", "list.pt"}) {
    EXPECT_THAT(MessageOf([&] { Read(Foreign(name), {.vocab_size = 100, .end_of_text = 99}); }),
                HasSubstr("the vocabulary has 100"))
        << name;
  }
}

TEST(ForeignDocumentsTest, WhatNothingTellsMustBeSaid) {
  const auto refusal = [](const std::string& name, const ImportOptions& options) {
    EXPECT_EQ(CodeOf([&] { Read(Foreign(name), options); }), ErrorCode::kUsage);
    return MessageOf([&] { Read(Foreign(name), options); });
  };
  EXPECT_THAT(refusal("stored.npz", {}), HasSubstr("--vocab"));
  EXPECT_THAT(refusal("nanogpt.bin.u16", {.format = ForeignFormat::kNanoGpt, .vocab_size = 50'257}),
              HasSubstr("--eot"));
  EXPECT_THAT(refusal("stored.npz", {.vocab_size = 10, .end_of_text = 10}), HasSubstr("--eot"));
  EXPECT_THAT(refusal("stored.npz", {.tokenizer = "bytes", .vocab_size = 10}), HasSubstr("--vocab"));
}

TEST(ForeignDocumentsTest, EndOfTextDividesAFileOfManyRunsAnywhere) {
  // Documents end before, at and behind the places where the reader pauses.
  for (const size_t length : {65'535u, 65'536u, 65'537u}) {
    SCOPED_TRACE(length);
    const TemporaryFolder folder;
    std::vector<uint16_t> ids(3 * length, 5);
    for (size_t i = length - 1; i < ids.size(); i += length) ids[i] = 7;
    WriteFile(folder.path("ids"), std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * 2));
    const auto documents = Read(folder.path("ids"), {ForeignFormat::kNanoGpt, "", 10, 7});
    ASSERT_EQ(documents.size(), 3u);
    for (const Document& document : documents) {
      EXPECT_EQ(document.size(), length);
      EXPECT_EQ(document.back(), 7u);
    }
    EXPECT_EQ(Read(folder.path("ids"), {ForeignFormat::kNanoGpt, "", 10, {}, true}).size(), 1u);
    // The same with the id before each document.
    std::vector<uint32_t> header(256, 0);
    header[0] = 20240520, header[1] = 1, header[2] = static_cast<uint32_t>(ids.size());
    std::rotate(ids.begin(), ids.end() - 1, ids.end());
    WriteFile(folder.path("llmc"),
              std::string(reinterpret_cast<const char*>(header.data()), 1024) +
                  std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * 2));
    const auto begun = Read(folder.path("llmc"), {.end_of_text = 7});
    ASSERT_EQ(begun.size(), 3u);
    for (const Document& document : begun) {
      const bool last = &document == &begun.back();
      EXPECT_EQ(document.size(), length + (last ? 0 : 1));
      EXPECT_EQ(document.front(), 7u);
      EXPECT_EQ(document.back(), last ? 5u : 7u);
    }
  }
}

/// Files made from one of the fixtures. All are written before any is read: the reader of a file that was
/// written to just now waits for the clock to tick.
class Variants {
 public:
  Variants(const TemporaryFolder& folder, const std::string& name)
      : folder_(folder), name_(name), whole_(ReadFile(Foreign(name))) {}

  const std::string& whole() const { return whole_; }
  void Add(const std::string& what, const std::string& content) {
    const std::string path = folder_.path(std::to_string(variants_.size()) + "." + name_);
    WriteFile(path, content);
    if (name_ == "short.idx") {
      WriteFile(path.substr(0, path.size() - 4) + ".bin", ReadFile(Foreign("short.bin")));
    }
    variants_.emplace_back(path, what);
  }
  void ForEach(const std::function<void(const std::string& path, const std::string& what)>& check) const {
    for (const auto& [path, what] : variants_) check(path, what);
  }

 private:
  const TemporaryFolder& folder_;
  std::string name_, whole_;
  std::vector<std::pair<std::string, std::string>> variants_;  ///< path, and what it is
};

TEST(ForeignDocumentsTest, CutFilesAreRefused) {
  const TemporaryFolder folder;
  for (const std::string name :
       {"gpt2.bin", "llama3.bin", "stored.npz", "deflated.npz", "list.pt", "dict.pt"}) {
    SCOPED_TRACE(name);
    Variants variants(folder, name);
    for (size_t size = 4; size < variants.whole().size(); size += 7) {
      variants.Add(std::to_string(size) + " bytes", variants.whole().substr(0, size));
    }
    variants.ForEach([](const std::string& path, const std::string& what) {
      EXPECT_EQ(CodeOf([&] { Read(path); }), ErrorCode::kBadInput) << what;
    });
  }
  WriteFile(folder.path("short.idx"), ReadFile(Foreign("short.idx")));
  WriteFile(folder.path("short.bin"), ReadFile(Foreign("short.bin")).substr(0, 100));
  EXPECT_EQ(CodeOf([&] { Read(folder.path("short.idx")); }), ErrorCode::kBadInput);
  WriteFile(folder.path("short.idx"), ReadFile(Foreign("short.idx")).substr(0, 150));
  EXPECT_EQ(CodeOf([&] { Read(folder.path("short.idx")); }), ErrorCode::kBadInput);
}

TEST(ForeignDocumentsTest, AFileThatIsWrittenToWhileItIsReadIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("ids.bin");
  const std::string ids(2'000'000, '\1'), others(2'000'000, '\2');
  const ImportOptions options{ForeignFormat::kNanoGpt, "", 50'257, 50'256};
  const auto read_across = [&](const std::function<void()>& change) {
    WriteFile(path, ids);
    ForeignDocuments source({path}, ForeignFormat::kNanoGpt, options);
    DocumentPiece piece;
    EXPECT_TRUE(source.Next(&piece));
    change();
    return CodeOf([&] {
      while (source.Next(&piece)) continue;
    });
  };
  EXPECT_EQ(read_across([] {}), std::nullopt);
  EXPECT_EQ(read_across([&] { WriteFile(path, others); }), ErrorCode::kBadInput);
  EXPECT_EQ(read_across([&] { std::filesystem::resize_file(path, 1000); }), ErrorCode::kBadInput);
  EXPECT_EQ(read_across([&] { WriteFile(path, ids + ids); }), ErrorCode::kBadInput);
}

TEST(ForeignDocumentsTest, FlippedBytesAreRefusedOrGiveSomeIdsAndNothingWorse) {
  const TemporaryFolder folder;
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE(test::TestSeed());
  for (const std::string name :
       {"gpt2.bin", "stored.npz", "deflated.npz", "records.pt", "protocol4.pt", "short.idx"}) {
    const ImportOptions options{.format = FormatOf(Foreign(name), {}), .vocab_size = 200'000};
    Variants variants(folder, name);
    for (int i = 0; i < 300; ++i) {
      std::string flipped = variants.whole();
      for (int k = 0; k < 1 + i % 3; ++k)
        flipped[random() % flipped.size()] ^= static_cast<char>(1 << random() % 8);
      variants.Add(std::to_string(i), flipped);
    }
    variants.ForEach([&](const std::string& path, const std::string& what) {
      try {
        Read(path, options);
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kUsage)
            << what << ": " << error.what();
      }
    });
  }
}

// The CRC-32 of an entry covers its content, and reading the content checks it.
TEST(ForeignDocumentsTest, NoFlippedBitInTheContentOfAnArchiveGivesOtherIds) {
  const TemporaryFolder folder;
  const auto expected = nlohmann::json::parse(ReadFile(Foreign("expected.json")));
  int refused = 0;
  for (const auto& [name, documents] : expected.items()) {
    if (!name.ends_with(".pt") && !name.ends_with(".npz")) continue;
    SCOPED_TRACE(name);
    Variants variants(folder, name);
    const ZipArchive archive(AsBytes(variants.whole()), name);
    for (const ZipEntry& entry : archive.entries()) {
      for (uint64_t at = 0; at < entry.stored_bytes; at += 5) {
        std::string flipped = variants.whole();
        flipped[entry.offset + at] ^= static_cast<char>(1 << at % 8);
        variants.Add(entry.name + ", byte " + std::to_string(at), flipped);
      }
    }
    const auto expected_documents = documents.get<std::vector<Document>>();
    variants.ForEach([&](const std::string& path, const std::string& what) {
      try {
        // Entries that nobody needs are not read.
        EXPECT_EQ(Read(path), expected_documents) << what;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kBadInput) << what << ": " << error.what();
        ++refused;
      }
    });
  }
  EXPECT_GT(refused, 500);
}

TEST(ForeignDocumentsTest, AnArrayThatEndsBeforeItsEntryIsRefused) {
  const TemporaryFolder folder;
  const ProcessResult made = test::RunShell("cd '" + folder.path() + R"(' && python3 - <<'PYTHON'
import io
import struct
import zipfile
header = "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }"
header += " " * (63 - (10 + len(header)) % 64) + "\n"
array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<3H", 1, 2, 3)
zipfile.ZipFile("ids.npz", "w").writestr("ids.npy", array)
PYTHON)");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  EXPECT_THAT(MessageOf([&] { Read(folder.path("ids.npz")); }), HasSubstr("goes on after its array"));
}

TEST(ForeignDocumentsTest, ANegativeNumberIsToldAsWhatItShouldBe) {
  const TemporaryFolder folder;
  const ProcessResult made = test::RunShell("cd '" + folder.path() + R"py(' && python3 - <<'PYTHON'
import struct
import zipfile
def array(descr, shape, *numbers):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    code = {"<u2": "H", "<i4": "i", "<f4": "f"}[descr]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<%d%s" % (len(numbers), code), *numbers)
ids = array("<u2", "(2, 3)", *range(6))
for name, members in {"lengths": {"ids": ids, "lengths": array("<i4", "(2,)", 2, -3)},
                      "mask": {"ids": ids, "attention_mask": array("<i4", "(2, 3)", 1, 1, -1, 1, 1, 1)},
                      "shape": {"ids": array("<u2", "(-2, 3)", *range(6))},
                      "shape_of_lengths": {"ids": ids, "lengths": array("<i4", "(-2,)", 2, 3)},
                      "float_lengths": {"ids": ids, "lengths": array("<f4", "(2,)", 2, 3)}}.items():
    with zipfile.ZipFile(name + ".npz", "w") as archive:
        for member, data in members.items():
            archive.writestr(member + ".npy", data)
PYTHON)py");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
  const auto message = [&](const char* name) { return MessageOf([&] { Read(folder.path(name)); }); };
  EXPECT_THAT(message("lengths.npz"), HasSubstr("lengths.npy: holds -3, which is no length of a row"));
  EXPECT_THAT(message("mask.npz"), HasSubstr("attention_mask.npy: holds -1, which is no value of a mask"));
  EXPECT_THAT(message("shape.npz"), HasSubstr("ids.npy: is no array of ids: its shape has a negative size"));
  EXPECT_THAT(message("shape_of_lengths.npz"),
              HasSubstr("lengths.npy: is no array of lengths: its shape has a negative size"));
  EXPECT_THAT(message("float_lengths.npz"),
              HasSubstr("lengths.npy: is no array of lengths: its elements are of type <f4"));
}

/// Runs a program of Python that has archive(name, members) for .npz files, array(descr, shape, *numbers) for
/// their members, and text, torch_tensor and torch_file for what torch.save writes.
void RunPython(const TemporaryFolder& folder, const std::string& program) {
  const ProcessResult made = test::RunShell("cd '" + folder.path() + R"py(' && python3 - <<'PYTHON'
import pickle
import struct
import zipfile
CODES = {"<i4": "i", "<i8": "q", "|b1": "?"}
def packed(descr, numbers):
    return struct.pack("<%d%s" % (len(numbers), CODES[descr]), *numbers)
def array(descr, shape, *numbers):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + packed(descr, numbers)
def archive(name, members):
    with zipfile.ZipFile(name, "w") as file:
        for member, data in members.items():
            file.writestr(member, data)
def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()
def torch_tensor(storage, key, *shape):
    sizes, strides, count = b"", b"", 1
    for size in reversed(shape):
        sizes, strides, count = bytes([75, size]) + sizes, bytes([75, count]) + strides, count * size
    storage = text("storage") + b"ctorch\n" + storage.encode() + b"\n" + text(key) + text("cpu")
    return (b"ctorch._utils\n_rebuild_tensor_v2\n((" + storage + bytes([75, count]) + b"tQK\0(" + sizes + b"t(" +
            strides + b"t\x89ccollections\nOrderedDict\n)RtR")
def torch_file(name, program, *storages):
    members = {"a/data.pkl": program}
    members.update(("a/data/%d" % i, storage) for i, storage in enumerate(storages))
    archive(name, members)
)py" + program + "PYTHON\n");
  ASSERT_EQ(made.exit_status, 0) << made.standard_error;
}

TEST(ForeignDocumentsTest, AnArrayThatLiesColumnByColumnGivesItsRows) {
  EXPECT_EQ(Read(Foreign("fortran.npz")),
            (std::vector<Document>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}));
  const TemporaryFolder folder;
  RunPython(folder, R"py(
def by_columns(descr, shape, *numbers):
    return array(descr, shape, *numbers).replace(b"'fortran_order': False", b"'fortran_order': True ")
ids = array("<i4", "(2, 3)", 5, 6, -1, 7, -1, -1)
archive("mask.npz", {"ids.npy": ids, "attention_mask.npy": by_columns("|b1", "(2, 3)", 1, 1, 1, 0, 0, 0)})
archive("flat.npz", {"ids.npy": by_columns("<i4", "(3,)", 1, 2, 3)})
archive("cut.npz", {"ids.npy": by_columns("<i4", "(2, 3)", 1, 2, 3, 4, 5)})
archive("long.npz", {"ids.npy": by_columns("<i4", "(2, 3)", 1, 2, 3, 4, 5, 6, 7)})
archive("huge.npz", {"ids.npy": by_columns("<i8", "(16385, 8192)", 1)})
)py");
  EXPECT_EQ(Read(folder.path("mask.npz")), (std::vector<Document>{{5, 6}, {7}}));
  EXPECT_EQ(Read(folder.path("flat.npz")), (std::vector<Document>{{1, 2, 3}}));
  EXPECT_THAT(MessageOf([&] { Read(folder.path("cut.npz")); }), HasSubstr("ends too early"));
  EXPECT_THAT(MessageOf([&] { Read(folder.path("long.npz")); }), HasSubstr("goes on after its array"));
  EXPECT_THAT(MessageOf([&] { Read(folder.path("huge.npz")); }), HasSubstr("numpy.ascontiguousarray"));
}

TEST(ForeignDocumentsTest, AFileOfManyTensorsOrNumbersIsReadThoughItsPickleIsLarge) {
  const TemporaryFolder folder;
  // Of the same size as 200,000 tensors with short names have, in less time.
  RunPython(folder, R"py(
tensors = (b"(" + torch_tensor("LongStorage", "k" * 900, 2) * 1000 + b"e") * 18
archive("tensors.pt", {"a/data.pkl": b"\x80\x02]" + tensors + b".", "a/data/" + "k" * 900: packed("<i8", (5, 6))})
torch_file("numbers.pt", b"\x80\x02]" + (b"(" + b"K\x05M\x00\x01" * 1000 + b"e") * 3500 + b".")
)py");
  EXPECT_EQ(Read(folder.path("tensors.pt")), std::vector<Document>(18'000, Document{5, 6}));
  const std::vector<Document> numbers = Read(folder.path("numbers.pt"));
  ASSERT_EQ(numbers.size(), 1u);
  ASSERT_EQ(numbers[0].size(), 7'000'000u);
  EXPECT_EQ(std::vector<uint32_t>(numbers[0].end() - 3, numbers[0].end()), (Document{256, 5, 256}));
}

TEST(ForeignDocumentsTest, APickleMayRecallWhatItKeptUnderAnyNumber) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
row = b"]q\x07(K\x01K\x02e"
torch_file("short.pt", b"\x80\x02](" + row + b"h\x07]r\x00\x01\x00\x00(K\x03ej\x00\x01\x00\x00e.")
torch_file("counted.pt", b"\x80\x04]\x94(]\x94(K\x01K\x02eh\x01]\x94(K\x03eh\x02e.")
)py");
  const std::vector<Document> expected = {{1, 2}, {1, 2}, {3}, {3}};
  EXPECT_EQ(Read(folder.path("short.pt")), expected);
  EXPECT_EQ(Read(folder.path("counted.pt")), expected);
}

TEST(ForeignDocumentsTest, PaddingIsNotJudgedWhateverNumbersItIsOf) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
ids = array("<i4", "(2, 3)", 5, 6, -1, 7, -1, -1)
archive("lengths.npz", {"ids.npy": ids, "lengths.npy": array("<i4", "(2,)", 2, 1)})
archive("mask.npz", {"ids.npy": array("<i8", "(2, 3)", -100, 5, 6, 7, -100, 1 << 62),
                     "attention_mask.npy": array("<i4", "(2, 3)", 0, 1, 1, 1, 0, 0)})
torch_file("lengths.pt", b"\x80\x02}(" + text("input_ids") + torch_tensor("IntStorage", "0", 2, 3) +
           text("lengths") + torch_tensor("IntStorage", "1", 2) + b"u.",
           packed("<i4", [5, 6, -1, 7, -1, -1]), packed("<i4", [2, 1]))
lists = [{"ids": [5, 6, -100], "lengths": 2}, {"ids": [-1, 7], "attention_mask": [0, 1]}]
torch_file("lists.pt", pickle.dumps(lists, 2))
)py");
  for (const char* name : {"lengths.npz", "mask.npz", "lengths.pt", "lists.pt"}) {
    EXPECT_EQ(Read(folder.path(name)), (std::vector<Document>{{5, 6}, {7}})) << name;
  }
}

TEST(ForeignDocumentsTest, TruthValuesOfTorchFilesAreMasksAndNoIds) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
lists = [{"ids": [5, 6, 0], "attention_mask": [True, True, False]}, {"ids": [7], "attention_mask": [1]}]
torch_file("lists.pt", pickle.dumps(lists, 2))
torch_file("tensors.pt", b"\x80\x02}(" + text("input_ids") + torch_tensor("IntStorage", "0", 2, 3) +
           text("attention_mask") + torch_tensor("BoolStorage", "1", 2, 3) + b"u.",
           packed("<i4", [5, 6, 0, 7, 0, 0]), packed("|b1", [True, True, False, True, False, False]))
torch_file("truth.pt", b"\x80\x02" + torch_tensor("BoolStorage", "0", 3) + b".", packed("|b1", [True, True, False]))
torch_file("truth_list.pt", pickle.dumps({"ids": [5, True]}, 2))
for name, size in [("length.pt", 1), ("lengths.pt", 2)]:
    ids = torch_tensor("IntStorage", "0", 2) if size == 1 else torch_tensor("IntStorage", "0", 2, 2)
    torch_file(name, b"\x80\x02}(" + text("input_ids") + ids + text("lengths") + torch_tensor("BoolStorage", "1", size) + b"u.",
               packed("<i4", [5, 6] * size), packed("|b1", [True] * size))
torch_file("none.pt", pickle.dumps({"ids": [5, 6], "attention_mask": [1, None]}, 2))
)py");
  for (const char* name : {"lists.pt", "tensors.pt"}) {
    EXPECT_EQ(Read(folder.path(name)), (std::vector<Document>{{5, 6}, {7}})) << name;
  }
  const auto message = [&](const char* name) { return MessageOf([&] { Read(folder.path(name)); }); };
  EXPECT_THAT(message("truth.pt"), HasSubstr("holds truth values, which are no ids"));
  EXPECT_THAT(message("truth_list.pt"), HasSubstr("holds a list of ids with something else in it"));
  EXPECT_THAT(message("none.pt"), HasSubstr("has a mask with something else in it"));
  for (const char* name : {"length.pt", "lengths.pt"}) {
    EXPECT_THAT(message(name), HasSubstr("holds truth values, which are no lengths of rows")) << name;
  }
}

TEST(ForeignDocumentsTest, ADictionaryOfListsHasADocumentARow) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
values = {
    "batch": {"input_ids": [[5, 6], [7]], "attention_mask": [[1, 1], [1]]},
    "padded": {"input_ids": [[5, 6, 0], [0, 0, 7]], "token_type_ids": [[0, 0, 0], [0, 0, 0]],
               "attention_mask": [[1, 1, 0], [0, 0, 1]]},
    "lengths": {"input_ids": [[5, 6, -100], [7, -100, -100]], "lengths": [2, 1]},
    "batches": [{"input_ids": [[5, 6]], "attention_mask": [[1, 1]]}, {"input_ids": [[], [7]]}],
}
for name, value in values.items():
    torch_file(name + ".pt", pickle.dumps(value, 2))
torch_file("tensors.pt", b"\x80\x02}(" + text("input_ids") + b"](" + torch_tensor("IntStorage", "0", 3) +
           torch_tensor("IntStorage", "1", 1) + b"e" + text("lengths") + torch_tensor("IntStorage", "2", 2) + b"u.",
           packed("<i4", [5, 6, 0]), packed("<i4", [7]), packed("<i4", [2, 1]))
)py");
  for (const char* name : {"batch.pt", "padded.pt", "lengths.pt", "batches.pt", "tensors.pt"}) {
    EXPECT_EQ(Read(folder.path(name)), (std::vector<Document>{{5, 6}, {7}})) << name;
  }
}

TEST(ForeignDocumentsTest, ListsOfRowsThatTheirMaskOrLengthsDoNotFitAreRefused) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
rows = [[5, 6], [7]]
values = {
    "rows": {"ids": rows, "attention_mask": [[1, 1]]},
    "flat": {"ids": rows, "attention_mask": [1, 1]},
    "row": {"ids": rows, "attention_mask": [[1, 1], [1, 0]]},
    "length": {"ids": rows, "lengths": [2, 2]},
    "lengths": {"ids": rows, "lengths": [2, None]},
    "number": {"ids": [[5, 6], 7]},
}
for name, value in values.items():
    torch_file(name + ".pt", pickle.dumps(value, 2))
)py");
  const auto message = [&](const char* name) { return MessageOf([&] { Read(folder.path(name)); }); };
  EXPECT_THAT(message("rows.pt"), HasSubstr("a mask that is no list of as many rows"));
  EXPECT_THAT(message("flat.pt"), HasSubstr("no list of as many numbers as there are ids"));
  EXPECT_THAT(message("row.pt"), HasSubstr("no list of as many numbers as there are ids"));
  EXPECT_THAT(message("length.pt"), HasSubstr("row 1 has 2 ids, and rows have 1"));
  EXPECT_THAT(message("lengths.pt"), HasSubstr("lengths that are not one number a row"));
  EXPECT_THAT(message("number.pt"), HasSubstr("a list of rows of ids with something else in it"));
}

TEST(ForeignDocumentsTest, FloatingPointMasksOfTorchFilesAreOf0And1AndNoIds) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
def masked(name, storage, mask):
    torch_file(name, b"\x80\x02}(" + text("input_ids") + torch_tensor("IntStorage", "0", 2, 3) +
               text("attention_mask") + torch_tensor(storage, "1", 2, 3) + b"u.", packed("<i4", [5, 6, 0, 7, 0, 0]), mask)
mask = [1, 1, 0, 1, -0.0, 0]
masked("float.pt", "FloatStorage", struct.pack("<6f", *mask))
masked("double.pt", "DoubleStorage", struct.pack("<6d", *mask))
masked("half.pt", "HalfStorage", struct.pack("<6e", *mask))
masked("bfloat16.pt", "BFloat16Storage", struct.pack("<6H", 0x3F80, 0x3F80, 0, 0x3F80, 0x8000, 0))
masked("fraction.pt", "FloatStorage", struct.pack("<6f", 1, 1, 0.5, 1, 0, 0))
lists = [{"ids": [5, 6, 0], "attention_mask": [1.0, 1.0, 0.0]}, {"ids": [7], "attention_mask": [1]}]
torch_file("lists.pt", pickle.dumps(lists, 2))
torch_file("fractions.pt", pickle.dumps({"ids": [5, 6], "attention_mask": [1.0, 0.5]}, 2))
torch_file("ids.pt", b"\x80\x02" + torch_tensor("HalfStorage", "0", 3) + b".", struct.pack("<3e", 1, 1, 0))
torch_file("lengths.pt", b"\x80\x02}(" + text("input_ids") + torch_tensor("IntStorage", "0", 2) + text("lengths") +
           torch_tensor("FloatStorage", "1", 1) + b"u.", packed("<i4", [5, 6]), struct.pack("<f", 1))
)py");
  for (const char* name : {"float.pt", "double.pt", "half.pt", "bfloat16.pt", "lists.pt"}) {
    EXPECT_EQ(Read(folder.path(name)), (std::vector<Document>{{5, 6}, {7}})) << name;
  }
  const auto message = [&](const char* name) { return MessageOf([&] { Read(folder.path(name)); }); };
  for (const char* name : {"fraction.pt", "fractions.pt"}) {
    EXPECT_THAT(message(name), HasSubstr("one of which is neither 0 nor 1")) << name;
  }
  EXPECT_THAT(message("ids.pt"), HasSubstr("has torch.HalfStorage for ids, and integers are read"));
  EXPECT_THAT(message("lengths.pt"), HasSubstr("has torch.FloatStorage for lengths, and integers are read"));
}

TEST(ForeignDocumentsTest, FloatingPointMasksOfArchivesAreOf0And1AndNoIds) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
CODES.update({"<f2": "e", "<f4": "f", "<f8": "d"})
ids = array("<i4", "(2, 3)", 5, 6, 0, 7, 0, 0)
for descr in "<f2", "<f4", "<f8":
    archive(descr[1:] + ".npz", {"input_ids.npy": ids,
                                 "attention_mask.npy": array(descr, "(2, 3)", 1, 1, 0, 1, -0.0, 0)})
archive("fraction.npz", {"input_ids.npy": ids, "attention_mask.npy": array("<f4", "(2, 3)", 1, 1, 0.5, 1, 0, 0)})
archive("ids.npz", {"input_ids.npy": array("<f4", "(2,)", 1, 1)})
)py");
  for (const char* name : {"f2.npz", "f4.npz", "f8.npz"}) {
    EXPECT_EQ(Read(folder.path(name)), (std::vector<Document>{{5, 6}, {7}})) << name;
  }
  const auto message = [&](const char* name) { return MessageOf([&] { Read(folder.path(name)); }); };
  EXPECT_THAT(message("fraction.npz"), HasSubstr("one of which is neither 0 nor 1"));
  EXPECT_THAT(message("ids.npz"), HasSubstr("its elements are of type <f4; little-endian integers are read"));
}

/// Options that pack these inputs and leave out those that are corrupt.
PackJobOptions SkippingOptions(std::vector<std::string> inputs, const TemporaryFolder& folder) {
  PackJobOptions options;
  options.inputs = std::move(inputs);
  options.output = folder.path("out.tws");
  options.packer.chunk_tokens = 64;
  options.skip_corrupt = true;
  return options;
}

TEST(ForeignDocumentsTest, AFileOfAnotherVocabularyIsNoCorruptOneToSkip) {
  const TemporaryFolder folder;
  WriteFile(folder.path("a.bin"), std::string("\1\0\2\0", 4));
  WriteFile(folder.path("b.bin"), std::string("\1\0\x63\0", 4));
  PackJobOptions options = SkippingOptions({folder.path("a.bin"), folder.path("b.bin")}, folder);
  options.import = {ForeignFormat::kNanoGpt, "", 50, {}, true};
  EXPECT_THAT(MessageOf([&] { RunPack(options, ProgressMode::kNever); }),
              HasSubstr("b.bin: holds id 99, and the vocabulary has 50"));
  EXPECT_FALSE(std::filesystem::exists(options.output));
}

TEST(ForeignDocumentsTest, DamageThatMakesAnIdOutsideTheVocabularyIsSkippedAsDamage) {
  const TemporaryFolder folder;
  std::string damaged = ReadFile(Foreign("stored.npz"));
  const ZipArchive archive(AsBytes(damaged), "stored.npz");
  const ZipEntry* ids = archive.Find("input_ids.npy");
  ASSERT_NE(ids, nullptr);
  constexpr size_t kNumpyHeaderBytes = 128;
  damaged[ids->offset + kNumpyHeaderBytes + 2] ^= 1;  // the first id becomes 65,536 more
  WriteFile(folder.path("damaged.npz"), damaged);
  EXPECT_THAT(MessageOf([&] { Read(folder.path("damaged.npz"), {.vocab_size = 65'536}); }),
              HasSubstr("the vocabulary has 65536"));
  PackJobOptions options = SkippingOptions({folder.path("damaged.npz"), Foreign("stored.npz")}, folder);
  options.import.vocab_size = 65'536;
  const PackReport report = RunPack(options, ProgressMode::kNever);
  EXPECT_EQ(report.files, 1u);
  EXPECT_EQ(report.files_skipped, 1u);
}

TEST(ForeignDocumentsTest, TheIdBetweenDocumentsOfLlmCIsALabelAtTheEndOfEach) {
  constexpr uint32_t kEnd = 50'256;
  const TemporaryFolder folder;
  PackJobOptions options;
  options.inputs = {Foreign("gpt2.bin")};
  options.output = folder.path("out.tws");
  options.packer.chunk_tokens = 64;
  RunPack(options, ProgressMode::kNever);
  const std::unique_ptr<ShardSet> set = ShardSet::Open(options.output);
  size_t documents = 0, ended = 0;
  for (uint64_t chunk = 0, first = 0; chunk < set->chunks(); ++chunk) {
    const std::vector<Chunk> frame = set->ReadFrameOf(chunk, &first);
    for (const DocumentPart& part : PartsOf(frame.at(chunk - first))) {
      ++documents;
      EXPECT_EQ(part.tokens.front(), kEnd);
      ended += part.tokens.back() == kEnd ? 1 : 0;
    }
  }
  EXPECT_EQ(documents, 5u);
  EXPECT_EQ(ended, 4u) << "nothing follows the last one";
  const ShardSetHeader& header = set->header();
  EXPECT_EQ(header.tokenizer.bos_id, kEnd);
  EXPECT_EQ(header.tokenizer.eos_id, kEnd);
  const auto provenance = nlohmann::ordered_json::parse(header.provenance_json);
  for (const char* mark : {"bos", "eos"}) {
    EXPECT_EQ(FlagInProvenance(provenance, "pretokenize", mark), true) << mark;
  }
}

TEST(ForeignDocumentsTest, IdsWithoutMarksAreAppendedToThoseOfAnUnknownTokenizerThatHaveThem) {
  const TemporaryFolder folder;
  WriteFile(folder.path("ids.bin"), std::string("\1\0\7\0\2\0", 6));
  PackJobOptions options;
  options.inputs = {folder.path("ids.bin")};
  options.output = folder.path("set") + "/";
  options.packer.chunk_tokens = 16;
  options.import = {ForeignFormat::kNanoGpt, "", 10, 7};
  RunPack(options, ProgressMode::kNever);
  options.append = true;
  options.import = {ForeignFormat::kNanoGpt, "", 10, {}, true};
  EXPECT_EQ(CodeOf([&] { RunPack(options, ProgressMode::kNever); }), std::nullopt);
  EXPECT_EQ(InspectShards(options.output).header.tokenizer.eos_id, 7u);
}

/// Each document's ids, those that are predicted with a mark: "5 6 7! 8!".
std::vector<std::string> ReadMarked(const std::string& path) {
  const ImportOptions options{.vocab_size = 100};
  ForeignDocuments source({path}, FormatOf(path, options), options);
  EXPECT_EQ(source.header().record_kind, RecordKind::kSft) << path;
  std::vector<std::string> documents;
  DocumentPiece piece;
  while (source.Next(&piece)) {
    if (piece.begins) documents.emplace_back();
    std::string& document = documents.back();
    for (const uint32_t id : piece.tokens) {
      document += (document.empty() ? "" : " ") + std::to_string(id) + (piece.loss ? "!" : "");
    }
  }
  return documents;
}

TEST(ForeignDocumentsTest, LabelsAndMasksBesideTheIdsSayWhichArePredicted) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
ids = array("<i8", "(2, 4)", 5, 6, 7, 8, 9, 10, 0, 0)
mask = array("<i8", "(2, 4)", 1, 1, 1, 1, 1, 1, 0, 0)
answers = array("<i8", "(2, 4)", 0, 0, 1, 1, 0, 1, 0, 0)
labels = array("<i8", "(2, 4)", -100, -100, 7, 8, -100, 10, -100, 3)
archive("labels.npz", {"input_ids.npy": ids, "attention_mask.npy": mask, "labels.npy": labels})
archive("completion.npz", {"input_ids.npy": ids, "attention_mask.npy": mask, "completion_mask.npy": answers})
archive("lengths.npz", {"input_ids.npy": ids, "lengths.npy": array("<i8", "(2,)", 4, 2), "assistant_masks.npy": answers})
archive("both.npz", {"input_ids.npy": ids, "attention_mask.npy": mask, "labels.npy": labels,
                     "completion_mask.npy": array("<i8", "(2, 4)", 1, 1, 1, 1, 0, 1, 0, 0),
                     "assistant_masks.npy": array("<i8", "(2, 4)", 0, 1, 1, 1, 1, 1, 1, 1)})
rows = [[5, 6, 7, 8], [9, 10]]
torch_file("parts.pt", pickle.dumps([{"input_ids": rows[0], "labels": [-100, -100, 7, 8]},
                                     {"input_ids": rows[1], "labels": [-100, 10]}], 2))
torch_file("batch.pt", pickle.dumps({"input_ids": rows, "completion_mask": [[0, 0, 1, 1], [False, True]]}, 2))
torch_file("tensors.pt", b"\x80\x02}(" + text("input_ids") + torch_tensor("LongStorage", "0", 2, 4) + text("lengths") +
           torch_tensor("LongStorage", "1", 2) + text("labels") + torch_tensor("LongStorage", "2", 2, 4) + b"u.",
           packed("<i8", [5, 6, 7, 8, 9, 10, 0, 0]), packed("<i8", [4, 2]),
           packed("<i8", [-100, -100, 7, 8, -100, 10, -100, -100]))
)py");
  for (const char* name :
       {"labels.npz", "completion.npz", "lengths.npz", "both.npz", "parts.pt", "batch.pt", "tensors.pt"}) {
    EXPECT_EQ(ReadMarked(folder.path(name)), (std::vector<std::string>{"5 6 7! 8!", "9 10!"})) << name;
  }
  PackJobOptions options;
  options.inputs = {folder.path("labels.npz")};
  options.output = folder.path("out.tws");
  options.import.vocab_size = 100;
  options.packer.chunk_tokens = 16;
  RunPack(options, ProgressMode::kNever);
  const ShardSetSummary packed = InspectShards(options.output);
  EXPECT_EQ(packed.header.record_kind, RecordKind::kSft);
  EXPECT_EQ(packed.totals.loss_tokens, 3u);
}

TEST(ForeignDocumentsTest, LabelsThatAreAllTheIdsMakeNoConversations) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
archive("text.npz", {"input_ids.npy": array("<i8", "(2, 2)", 5, 6, 7, 0),
                     "attention_mask.npy": array("<i8", "(2, 2)", 1, 1, 1, 0),
                     "labels.npy": array("<i8", "(2, 2)", 5, 6, 7, -100)})
)py");
  EXPECT_EQ(Read(folder.path("text.npz")), (std::vector<Document>{{5, 6}, {7}}));
  const ForeignDocuments source({folder.path("text.npz")}, ForeignFormat::kNpz, {.vocab_size = 100});
  EXPECT_EQ(source.header().record_kind, RecordKind::kLm);
}

TEST(ForeignDocumentsTest, WhatIsPredictedIsReadOrRefusedAndNeverLeftUnread) {
  const TemporaryFolder folder;
  RunPython(folder, R"py(
ids = array("<i8", "(1, 3)", 5, 6, 7)
def beside(name, **members):
    archive(name + ".npz", {"input_ids.npy": ids, **{member + ".npy": data for member, data in members.items()}})
beside("plain")
beside("answers", labels=array("<i8", "(1, 3)", -100, 6, 7))
beside("shifted", labels=array("<i8", "(1, 3)", 6, 7, -100))
beside("classes", labels=array("<i8", "(1,)", 1))
beside("loss_mask", loss_mask=array("<i8", "(1, 3)", 0, 1, 1))
beside("seq_lengths", seq_lengths=array("<i8", "(2,)", 1, 2))
values = {
    "loss_mask": {"input_ids": [5, 6], "loss_mask": [0, 1]},
    "seq_lengths": [{"input_ids": [5, 6], "seq_lengths": [1, 1]}],
    "short": {"input_ids": [5, 6], "labels": [5]},
    "rows": {"input_ids": [[5], [6]], "labels": [5, 6]},
    "words": {"input_ids": [5, 6], "labels": [5, "6"]},
    "some": [{"input_ids": [5, 6], "labels": [-100, 6]}, {"input_ids": [5, 6]}],
}
for name, value in values.items():
    torch_file(name + ".pt", pickle.dumps(value, 2))
)py");
  const auto message = [&](const std::vector<std::string>& names) {
    return MessageOf([&] {
      std::vector<std::string> paths;
      for (const std::string& name : names) paths.push_back(folder.path(name));
      const ImportOptions options{.vocab_size = 100};
      ForeignDocuments source(paths, FormatOf(paths[0], options), options);
      DocumentPiece piece;
      while (source.Next(&piece)) continue;
    });
  };
  for (const char* name : {"shifted.npz", "words.pt"}) {
    EXPECT_THAT(message({name}), HasSubstr("labels that are neither -100 nor the ids beside them")) << name;
  }
  for (const char* name : {"loss_mask", "seq_lengths"}) {
    for (const char* ending : {".npz", ".pt"}) {
      EXPECT_THAT(message({std::string(name) + ending}), HasSubstr(std::string("has ") + name)) << ending;
    }
  }
  EXPECT_THAT(message({"classes.npz"}), HasSubstr("labels.npy: has another shape than the ids"));
  EXPECT_THAT(message({"short.pt"}), HasSubstr("labels that are no list of as many numbers"));
  EXPECT_THAT(message({"rows.pt"}), HasSubstr("labels that are no list of as many numbers"));
  EXPECT_THAT(message({"some.pt"}), HasSubstr("marks which ids are predicted in some of its parts"));
  EXPECT_THAT(message({"answers.npz", "plain.npz"}), HasSubstr("plain.npz: does not say which ids"));
  EXPECT_THAT(message({"plain.npz", "answers.npz"}), HasSubstr("answers.npz: says that not all ids"));
}

TEST(ForeignDocumentsTest, PackedWithItsTokenizerTheTextIsThere) {
  const TemporaryFolder folder;
  const TokenizerIdentity bytes = LoadTokenizer("bytes")->identity();
  std::string ids;
  for (const char letter : std::string("one\ntwo\n")) ids += letter, ids += '\0';
  WriteFile(folder.path("ids.bin"), ids);
  PackJobOptions options;
  options.inputs = {folder.path("ids.bin")};
  options.output = folder.path("out.tws");
  options.import = {ForeignFormat::kNanoGpt, "bytes", {}, '\n'};
  options.packer.chunk_tokens = 16;
  RunPack(options, ProgressMode::kNever);
  MemorySink text;
  CatShardsAsText(folder.path("out.tws"), &text);
  EXPECT_EQ(AsText(text.bytes()), "one\n\ntwo\n\n");
  EXPECT_EQ(InspectShards(folder.path("out.tws")).header.tokenizer.sha256, bytes.sha256);

  MemorySink exported;
  ExportAsNanoGpt(folder.path("out.tws"), &exported);
  EXPECT_EQ(AsText(exported.bytes()), ids);
}

TEST(ForeignDocumentsTest, WithoutATokenizerTheShardsSayThatItIsUnknown) {
  const TemporaryFolder folder;
  PackJobOptions options;
  options.inputs = {Foreign("llama3.bin")};
  options.output = folder.path("out.tws");
  options.packer.chunk_tokens = 32;
  RunPack(options, ProgressMode::kNever);
  EXPECT_EQ(InspectShards(folder.path("out.tws")).header.tokenizer.kind, "unknown");
  MemorySink sink;
  EXPECT_EQ(CodeOf([&] { CatShardsAsText(folder.path("out.tws"), &sink); }), ErrorCode::kBadInput);
  EXPECT_THAT(MessageOf([&] { ExportAsNanoGpt(folder.path("out.tws"), &sink); }), HasSubstr("128256"));
}

TEST(ForeignDocumentsTest, AnArrayOfNumPyInNoArchiveIsRefusedWithWhatMakesOne) {
  const TemporaryFolder folder;
  const std::string path = folder.path("ids.npy");
  WriteFile(path, "\x93NUMPY\x01");
  PackJobOptions options;
  options.inputs = {path};
  options.output = folder.path("out.tws");
  for (const std::optional<uint32_t> vocab_size : {std::optional<uint32_t>(), std::optional<uint32_t>(7)}) {
    options.import.vocab_size = vocab_size;
    EXPECT_EQ(MessageOf([&] { RunPack(options, ProgressMode::kNever); }),
              path +
                  ": is one NumPy array (.npy), and pack reads archives of them | numpy.savez('ids.npz', "
                  "ids=numpy.load('" +
                  path + "')) makes one");
  }
}

TEST(ForeignDocumentsTest, AnOptionForOtherFilesIsRefusedWithTheInputThatIsReadAsATokenStream) {
  const TemporaryFolder folder;
  const std::string path = folder.path("ids.bin");
  WriteFile(path, "headerless");
  PackJobOptions options;
  options.inputs = {path};
  options.output = folder.path("out.tws");
  options.import.vocab_size = 7;
  EXPECT_THAT(MessageOf([&] { RunPack(options, ProgressMode::kNever); }),
              HasSubstr("--vocab: is for files of other programs, and " + path +
                        " is read as a token stream | leave it out"));
}

TEST(ForeignDocumentsTest, TokenStreamsRefuseWhatOnlyOtherFilesNeed) {
  const TemporaryFolder folder;
  WriteFile(folder.path("in"), "no token stream");
  PackJobOptions options;
  options.inputs = {folder.path("in")};
  options.output = folder.path("out.tws");
  options.import.vocab_size = 7;
  EXPECT_EQ(CodeOf([&] { RunPack(options, ProgressMode::kNever); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright

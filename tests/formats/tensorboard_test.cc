#include "lib/formats/tensorboard.h"

#include <gtest/gtest.h>

#include <array>

#include "lib/base/checksum.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::TemporaryFolder;

constexpr std::array<TensorboardScalar, 2> kScalars = {{{"loss/train", 2.25}, {"lr", 0.001}}};

// The expected bytes below are those of tensorboard 2.21: event_pb2.Event(...).SerializeToString().

TEST(TensorboardEvent, FileVersionIsTheProtocolBuffer) {
  EXPECT_EQ(HexEncode(EncodeFileVersionEvent(1.5)), "09000000000000f83f1a0d627261696e2e4576656e743a32");
}

TEST(TensorboardEvent, RestartIsTheProtocolBuffer) {
  EXPECT_EQ(HexEncode(EncodeRestartEvent(1.5, 101)), "09000000000000f83f10653a020801");
}

TEST(TensorboardEvent, ScalarsAreTheProtocolBuffer) {
  EXPECT_EQ(HexEncode(EncodeScalarsEvent(1.5, 300, kScalars)),
            "09000000000000f83f10ac022a1e0a110a0a6c6f73732f747261696e15000010400a090a026c72156f12833a");
}

// The bytes that tensorboard.summary.writer.record_writer.RecordWriter wrote for the event above.
TEST(TfRecord, HasMaskedChecksumsOfLengthAndContent) {
  EXPECT_EQ(HexEncode(FrameTfRecord(EncodeScalarsEvent(1.5, 300, kScalars))),
            "2c00000000000000f4aecc45"
            "09000000000000f83f10ac022a1e0a110a0a6c6f73732f747261696e15000010400a090a026c72156f12833a"
            "152c7244");
}

TEST(TensorboardWriter, WritesWholeEventsThatAreThereAtOnce) {
  const TemporaryFolder folder;
  TensorboardWriter writer(folder.path("tb"), 101, 1.5);
  writer.WriteScalars(1.5, 300, kScalars);
  std::string expected;
  for (const auto& event :
       {EncodeFileVersionEvent(1.5), EncodeRestartEvent(1.5, 101), EncodeScalarsEvent(1.5, 300, kScalars)}) {
    expected += AsText(FrameTfRecord(event));
  }
  EXPECT_EQ(test::ReadFile(writer.path()), expected);
}

TEST(TensorboardWriter, EachProcessTakesTheNextNameInOrder) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("events.out.tfevents.9999999999.host"), "another program's");
  EXPECT_EQ(TensorboardWriter(folder.path(), 0, 1.5).path(),
            folder.path("events.out.tfevents.0000000001.trainwright"));
  test::WriteFile(folder.path("events.out.tfevents.0000000009.trainwright"), "");
  EXPECT_EQ(TensorboardWriter(folder.path(), 7, 1.5).path(),
            folder.path("events.out.tfevents.0000000010.trainwright"));
}

TEST(TensorboardWriter, NamesTheFolderThatItCannotMake) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("tb"), "a file");
  EXPECT_EQ(test::CodeOf([&] { TensorboardWriter(folder.path("tb"), 0, 1.5); }), ErrorCode::kIo);
}

}  // namespace
}  // namespace trainwright

#include "lib/formats/tensorboard.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

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

std::string Framed(const std::vector<std::vector<uint8_t>>& events) {
  std::string framed;
  for (const auto& event : events) framed += AsText(FrameTfRecord(event));
  return framed;
}

/// The event file of a process that takes steps first + 1 to last.
std::string WriteSteps(const std::string& folder, int64_t first, int64_t last) {
  TensorboardWriter writer(folder, first == 0 ? 0 : first + 1, 1.5);
  for (int64_t step = first + 1; step <= last; ++step) writer.WriteScalars(1.5, step, kScalars);
  return writer.path();
}

TEST(CutEventFiles, LeavesTheEventsUpToTheCheckpoint) {
  const TemporaryFolder folder;
  const std::string first = WriteSteps(folder.path(), 0, 300), second = WriteSteps(folder.path(), 200, 260);
  const std::string all_of_second = test::ReadFile(second);
  CutEventFiles(folder.path(), 260);
  std::vector<std::vector<uint8_t>> kept = {EncodeFileVersionEvent(1.5), EncodeRestartEvent(1.5, 0)};
  for (int64_t step = 1; step <= 260; ++step) kept.push_back(EncodeScalarsEvent(1.5, step, kScalars));
  EXPECT_EQ(test::ReadFile(first), Framed(kept));
  EXPECT_EQ(test::ReadFile(second), all_of_second);
}

TEST(CutEventFiles, TakesAwayAFileThatIsLeftWithoutAScalar) {
  const TemporaryFolder folder;
  WriteSteps(folder.path(), 0, 3);
  WriteSteps(folder.path(), 2, 5);
  CutEventFiles(folder.path(), 2);
  EXPECT_EQ(test::NamesIn(folder.path()),
            std::set<std::string>{"events.out.tfevents.0000000001.trainwright"});
}

TEST(CutEventFiles, LeavesOutTheLastEvaluationWhereItIsMadeAgain) {
  const std::array<TensorboardScalar, 2> evaluation = {{{"loss/eval", 2.5}, {"perplexity/eval", 12}}};
  const TemporaryFolder folder;
  std::string path;
  {
    TensorboardWriter writer(folder.path(), 0, 1.5);
    for (const int64_t step : {2, 4}) {
      writer.WriteScalars(1.5, step, kScalars);
      writer.WriteScalars(1.5, step, evaluation);
    }
    path = writer.path();
  }
  const std::string all = test::ReadFile(path);
  CutEventFiles(folder.path(), 4);
  EXPECT_EQ(test::ReadFile(path), all);
  CutEventFiles(folder.path(), 4, kEvaluationTag);
  EXPECT_EQ(
      test::ReadFile(path),
      Framed({EncodeFileVersionEvent(1.5), EncodeRestartEvent(1.5, 0), EncodeScalarsEvent(1.5, 2, kScalars),
              EncodeScalarsEvent(1.5, 2, evaluation), EncodeScalarsEvent(1.5, 4, kScalars)}));
}

TEST(CutEventFiles, DropsALastRecordTornByACrash) {
  const TemporaryFolder folder;
  const std::string path = WriteSteps(folder.path(), 0, 2), whole = test::ReadFile(path);
  const std::string next = Framed({EncodeScalarsEvent(1.5, 3, kScalars)});
  std::string damaged = next;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  for (const std::string& torn : {next.substr(0, 5), next.substr(0, 20), damaged}) {
    test::WriteFile(path, whole + torn);
    CutEventFiles(folder.path(), 9);
    EXPECT_EQ(test::ReadFile(path), whole);
  }
}

TEST(CutEventFiles, TakesAwayAllOfARunThatIsBegunAnewAndNothingOfOtherPrograms) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("events.out.tfevents.9999999999.host"), "another program's");
  WriteSteps(folder.path(), 0, 3);
  WriteSteps(folder.path(), 2, 5);
  CutEventFiles(folder.path(), -1);
  EXPECT_EQ(test::NamesIn(folder.path()), std::set<std::string>{"events.out.tfevents.9999999999.host"});
}

TEST(CutEventFiles, LeavesAMissingFolderMissing) {
  const TemporaryFolder folder;
  CutEventFiles(folder.path("tb"), 1);
  EXPECT_EQ(test::NamesIn(folder.path()), std::set<std::string>{});
}

TEST(TensorboardWriter, NamesTheFolderThatItCannotMake) {
  const TemporaryFolder folder;
  test::WriteFile(folder.path("tb"), "a file");
  EXPECT_EQ(test::CodeOf([&] { TensorboardWriter(folder.path("tb"), 0, 1.5); }), ErrorCode::kIo);
}

}  // namespace
}  // namespace trainwright

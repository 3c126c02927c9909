// What a write to a pipe that nobody reads comes to in a process that others wait for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/io/descriptor.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::ExitedWithCode;

/// Ends the process with the status of the error.
/// \param disposition of SIGPIPE before
void WriteToClosedPipe(void (*disposition)(int)) {
  signal(SIGPIPE, disposition);
  OutliveClosedPipes();
  int ends[2];
  if (pipe(ends) != 0) _exit(1);
  close(ends[0]);
  const auto code = test::CodeOf([&] { WriteAll(ends[1], "pipe", AsBytes("text"), OnStop::kFinish); });
  _exit(static_cast<int>(code.value_or(ErrorCode::kNo)));
}

TEST(ClosedPipeDeathTest, OfAFilterAReaderThatWentAwayIsAnErrorOfTheStatusThatItWouldDieWith) {
  EXPECT_EXIT(WriteToClosedPipe(SIG_DFL), ExitedWithCode(128 + SIGPIPE), "");
}

TEST(ClosedPipeDeathTest, OfAProgramThatIgnoresItItIsAFailedWrite) {
  EXPECT_EXIT(WriteToClosedPipe(SIG_IGN), ExitedWithCode(static_cast<int>(ErrorCode::kIo)), "");
}

}  // namespace
}  // namespace trainwright

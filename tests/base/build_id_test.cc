#include "lib/base/build_id.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/support.h"

namespace trainwright {
namespace {

TEST(BuildIdTest, IsWhatReadelfReadsInTheProgramsFile) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const test::ProcessResult notes =
      test::RunShell("readelf -n '" + program + "' | sed -n 's/.*Build ID: //p'");
  ASSERT_EQ(notes.exit_status, 0) << notes.standard_error;
  EXPECT_EQ(ProgramBuildId() + "\n", notes.standard_output);
}

}  // namespace
}  // namespace trainwright

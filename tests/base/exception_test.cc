#include "lib/base/exception.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

namespace trainwright {
namespace {

template <typename Thrown>
Error ErrorFor(const Thrown& thrown) {
  return ErrorOf(std::make_exception_ptr(thrown));
}

TEST(ExceptionTest, AnErrorStaysAsItIs) {
  const Error error =
      ErrorFor(Error(ErrorCode::kBadInput, "shards/", "is corrupt", "byte 7", "pack it again"));
  EXPECT_EQ(error.code(), ErrorCode::kBadInput);
  EXPECT_EQ(error.what(), std::string("shards/: is corrupt (byte 7)"));
  EXPECT_EQ(error.hint(), "pack it again");
}

TEST(ExceptionTest, OthersHaveTheStatusOfTheirKindAndTheFirstLineOfTheirMessage) {
  EXPECT_EQ(ErrorFor(std::bad_alloc()).code(), ErrorCode::kIo);
  EXPECT_EQ(ErrorFor(std::system_error(EAGAIN, std::generic_category(), "thread")).code(), ErrorCode::kIo);
  EXPECT_EQ(ErrorFor(std::system_error(EACCES, std::generic_category(), "folder")).object(), "system");
  const Error bug = ErrorFor(std::runtime_error("first line\nstack trace"));
  EXPECT_EQ(bug.code(), ErrorCode::kInternal);
  EXPECT_EQ(bug.problem(), "first line");
  EXPECT_EQ(ErrorFor(7).code(), ErrorCode::kInternal);
}

TEST(ExceptionTest, AThreadThatCannotBeStartedIsToldAsWantOfMemory) {
  const Error error = ErrorFor(std::system_error(EAGAIN, std::generic_category(), "thread"));
  EXPECT_EQ(error.object(), "memory or threads");
  EXPECT_EQ(error.hint(), ErrorFor(std::bad_alloc()).hint());
}

}  // namespace
}  // namespace trainwright

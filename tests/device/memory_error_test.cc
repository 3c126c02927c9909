#include "lib/device/memory_error.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <dnnl.hpp>

#include <new>
#include <stdexcept>
#include <system_error>

namespace trainwright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr c10::SourceLocation kHere = {"malloc", "CUDACachingAllocator.cpp", 1};
/// As torch 2.11's caching allocator words it.
constexpr char kTorchsWords[] =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.81 GiB of which "
    "1.19 GiB is free. Including non-PyTorch memory, this process has 138.60 GiB memory in use. Of the "
    "allocated memory 137.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF";

MemoryUser Training() {
  return {"step 12", "lower --batch"};
}

/// What WithMemoryErrors makes of an exception that `work` throws.
template <typename Work>
Error Translated(const Work& work) {
  try {
    WithMemoryErrors(&Training, [&]() -> int { return work(), 0; });
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::kInternal, "", "");
}

TEST(WithMemoryErrorsTest, MemoryOfAGpuIsADeviceErrorThatNamesTheAllocationTheWorkAndTheFlags) {
  const Error error = Translated([] { throw c10::OutOfMemoryError(kHere, kTorchsWords); });
  EXPECT_EQ(error.code(), ErrorCode::kDevice);
  EXPECT_STREQ(error.what(),
               "device memory: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
               "of 139.81 GiB of which 1.19 GiB is free (step 12)");
  EXPECT_EQ(error.hint(), "lower --batch");
}

TEST(WithMemoryErrorsTest, MemoryThatALibraryOfCudaMissesIsADeviceErrorToo) {
  const Error error =
      Translated([] { throw c10::AcceleratorError(kHere, 2, "CUDA error: out of memory\nSearch for it"); });
  EXPECT_EQ(error.code(), ErrorCode::kDevice);
  EXPECT_EQ(error.problem(), "CUDA error: out of memory");
}

TEST(WithMemoryErrorsTest, MemoryOfTheHostIsNoDeviceError) {
  const Error refused = Translated([] { at::empty({int64_t{1} << 58}, at::kByte); });
  EXPECT_EQ(refused.code(), ErrorCode::kIo);
  EXPECT_EQ(refused.object(), "memory");
  EXPECT_THAT(refused.problem(), HasSubstr("you tried to allocate 288230376151711744 bytes"));
  EXPECT_THAT(refused.problem(), Not(HasSubstr("enforce fail")));
  EXPECT_EQ(refused.hint(), "lower --batch, or give the process more memory");
  EXPECT_EQ(Translated([] { throw std::bad_alloc(); }).code(), ErrorCode::kIo);
}

TEST(WithMemoryErrorsTest, AMessageThatFoundNoMemoryItselfIsThatOfTheHost) {
  for (const char* cut : {"[enforce fail a", "DefaultCPUAlloc"}) {
    const Error error = Translated([&] { throw c10::Error(kHere, cut); });
    EXPECT_STREQ(error.what(), "memory: the machine has no more of it to give (step 12)") << cut;
    EXPECT_EQ(error.code(), ErrorCode::kIo) << cut;
  }
  EXPECT_THROW(WithMemoryErrors(&Training, []() -> int { throw c10::Error(kHere, "[enforce fail at x.cc"); }),
               c10::Error);
}

TEST(WithMemoryErrorsTest, MemoryThatOneDnnMissesIsThatOfTheHost) {
  const Error error = Translated([] { throw dnnl::error(dnnl_out_of_memory, "could not create a kernel"); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_STREQ(error.what(), "memory: oneDNN could not create a kernel (step 12)");
}

TEST(WithMemoryErrorsTest, OtherExceptionsAndResultsPassUnchanged) {
  const auto run = [](const auto& work) { return WithMemoryErrors(&Training, work); };
  EXPECT_EQ(run([] { return 7; }), 7);
  EXPECT_THROW(run([]() -> int { throw std::logic_error("shapes differ"); }), std::logic_error);
  EXPECT_THROW(run([]() -> int { throw dnnl::error(dnnl_invalid_arguments, "shapes differ"); }), dnnl::error);
  EXPECT_THROW(run([]() -> int { throw c10::AcceleratorError(kHere, 700, "CUDA error: illegal address"); }),
               c10::AcceleratorError);
  EXPECT_EQ(Translated([] { throw Error(ErrorCode::kNonFinite, "loss", "is not finite"); }).code(),
            ErrorCode::kNonFinite);
}

TEST(WithMemoryErrorsTest, AThreadThatGetsNoStackIsMemoryOfTheHost) {
  const Error error = Translated(
      [] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_EQ(error.object(), "memory");
}

}  // namespace
}  // namespace trainwright

#include "lib/device/memory_error.h"

#include <c10/util/Exception.h>
#include <dnnl.hpp>

#include <new>
#include <string_view>
#include <system_error>

namespace trainwright {
namespace {

/// cudaErrorMemoryAllocation: for memory that CUDA's libraries take and torch does not hand out.
constexpr int32_t kCudaErrorMemoryAllocation = 2;
constexpr char kNoMore[] = "the machine has no more of it to give";
/// Begins the message of torch's host allocator, which throws a plain c10::Error.
constexpr std::string_view kHostAllocator = "DefaultCPUAllocator: ";
/// What torch sets before the host allocator's words where a check of its own fails.
constexpr std::string_view kFailedCheck = "[enforce fail at alloc_cpu.cpp";

/// Torch's message without its prefix, its statistics of the process and its advice on its own settings.
std::string Essence(const c10::Error& error) {
  std::string_view text = error.what_without_backtrace();
  text = text.substr(0, text.find('\n'));
  if (const size_t at = text.find(kHostAllocator); at != std::string_view::npos) {
    text.remove_prefix(at + kHostAllocator.size());
  }
  constexpr std::string_view kFree = " is free.";
  if (const size_t at = text.find(kFree); at != std::string_view::npos) {
    text = text.substr(0, at + kFree.size());
  }
  while (text.ends_with('.') || text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

/// Whether torch's text ends where a stream without memory to grow stops taking in: with what a std::string
/// holds in itself. Then the allocation whose failure it began to tell is that of the host.
bool IsCutForWantOfMemory(std::string_view text) {
  return text.size() == std::string().capacity() &&
         (kHostAllocator.starts_with(text) || kFailedCheck.starts_with(text));
}

std::string UnderCap(const MemoryUser& user) {
  return user.cap.empty() ? "" : ", under " + user.cap;
}

Error DeviceMemory(const c10::Error& error, const MemoryUser& user) {
  return Error(ErrorCode::kDevice, "device memory", Essence(error) + UnderCap(user), user.doing, user.hint);
}

Error HostMemory(const std::string& problem, const MemoryUser& user) {
  if (!user.cap.empty()) {
    return Error(ErrorCode::kDevice, "memory", problem + UnderCap(user), user.doing,
                 user.hint + (user.hint.empty() ? "" : ", or ") + "raise --mem-fraction");
  }
  return Error(ErrorCode::kIo, "memory", problem, user.doing,
               user.hint + (user.hint.empty() ? "" : ", or ") + "give the process more memory");
}

}  // namespace

std::optional<Error> AsMemoryError(const std::exception& exception, const MemoryUser& user) {
  if (const auto* rank = dynamic_cast<const RankOutOfMemory*>(&exception)) {
    return Error(ErrorCode::kIo, rank->who(), "ran out of memory", user.doing, user.hint);
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return HostMemory(kNoMore, user);
  }
  // A thread that does not get its stack.
  if (const auto* system = dynamic_cast<const std::system_error*>(&exception);
      system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return HostMemory("the machine has no room for another thread", user);
  }
  if (const auto* onednn = dynamic_cast<const dnnl::error*>(&exception);
      onednn != nullptr && onednn->status == dnnl_out_of_memory) {
    return HostMemory(std::string("oneDNN ") + onednn->what(), user);
  }
  const auto* error = dynamic_cast<const c10::Error*>(&exception);
  if (error == nullptr) return std::nullopt;
  if (dynamic_cast<const c10::OutOfMemoryError*>(error) != nullptr) return DeviceMemory(*error, user);
  if (const auto* cuda = dynamic_cast<const c10::AcceleratorError*>(error);
      cuda != nullptr && cuda->get_error_code() == kCudaErrorMemoryAllocation) {
    return DeviceMemory(*error, user);
  }
  const std::string_view text = error->what_without_backtrace();
  if (IsCutForWantOfMemory(text)) return HostMemory(kNoMore, user);
  if (text.find(kHostAllocator) != std::string_view::npos) return HostMemory(Essence(*error), user);
  return std::nullopt;
}

}  // namespace trainwright

#include "lib/base/exception.h"

#include <new>
#include <string>
#include <system_error>

namespace trainwright {
namespace {

constexpr char kMoreMemory[] = "lower the batch, the buffers or --threads, or give the process more memory";

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

Error ErrorOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kIo, "memory", "the machine has no more of it to give", "", kMoreMemory);
  } catch (const std::system_error& error) {
    // A thread's stack is memory, too.
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return Error(ErrorCode::kIo, "memory or threads",
                   "the machine has no more to give: no thread can be started", "", kMoreMemory);
    }
    return Error(ErrorCode::kIo, "system", FirstLine(error.what()));
  } catch (const std::exception& exception) {
    return Error(ErrorCode::kInternal, "internal error", FirstLine(exception.what()), "",
                 "this is a bug; please report it with the command line");
  } catch (...) {
    return Error(ErrorCode::kInternal, "internal error", "an exception of unknown type");
  }
}

}  // namespace trainwright

#include "tests/support/cuda_emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "lib/base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace trainwright::cuda_emulation {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

[[noreturn, gnu::noinline, gnu::no_sanitize("address")]] void Jump(void** to) {
  __builtin_longjmp(to, 1);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_size_(kStackBytes), entered_(false) {
  const auto guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw SystemError("stack of an emulated thread", "mmap", errno);
  mprotect(memory, guard, PROT_NONE);
  stack_ = static_cast<char*>(memory) + guard;
  getcontext(&context_);
  context_.uc_stack.ss_sp = const_cast<void*>(stack_);
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  if (!body_) return;
  const auto guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, stack_size_);
#endif
  munmap(static_cast<char*>(const_cast<void*>(stack_)) - guard, guard + kStackBytes);
}

void Fiber::Enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  self->Arrived();
  self->body_();
}

void Fiber::Arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &before_->stack_, &before_->stack_size_);
#endif
}

// Not instrumented: AddressSanitizer would take the jump for one that ends the frames below, and unpoison
// them.
[[gnu::noinline, gnu::no_sanitize("address")]] void Fiber::SwitchTo(Fiber* other) {
  other->before_ = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, other->stack_, other->stack_size_);
#endif
  if (__builtin_setjmp(jump_) == 0) {
    if (other->entered_) Jump(other->jump_);
    other->entered_ = true;
    setcontext(&other->context_);
  }
  Arrived();
}

}  // namespace trainwright::cuda_emulation

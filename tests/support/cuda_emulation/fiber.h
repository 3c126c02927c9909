/// A function with a stack of its own that is left and entered again at will.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>

namespace trainwright::cuda_emulation {

/// Not thread-safe: a fiber stays in the thread of the host that has made it. AddressSanitizer is told of
/// every switch.
class Fiber {
 public:
  /// The stack that the caller is on.
  Fiber() = default;
  /// \param body never returns; entered by the first SwitchTo
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Leaves this fiber, which is the running one, and goes on with another.
  void SwitchTo(Fiber* other);

 private:
  static void Enter(unsigned high, unsigned low);
  /// After a switch to this fiber.
  void Arrived();

  std::function<void()> body_;
  ucontext_t context_{};         ///< by which it is entered first
  void* jump_[5] = {};           ///< where it goes on: without the system calls of swapcontext
  const void* stack_ = nullptr;  ///< above its guard page
  size_t stack_size_ = 0;
  bool entered_ = true;
  void* fake_stack_ = nullptr;  ///< of AddressSanitizer
  Fiber* before_ = nullptr;     ///< from which the last switch came
};

}  // namespace trainwright::cuda_emulation

/// Hooks as libtorch_cuda registers them when it is loaded, which say when torch first asks for a GPU. For
/// tests with a process of their own, on machines without a GPU.
#pragma once

#include <ATen/detail/CUDAHooksInterface.h>

#include <memory>

namespace trainwright::test {

class FakeCudaHooks final : public at::CUDAHooksInterface {
 public:
  /// How often torch has made hooks: once at most in a process, when it is first asked.
  inline static int made = 0;
  /// How often it has initialised the allocator of GPU memory through them.
  inline static int initialised = 0;

  /// \returns false where real ones are registered: this machine has a GPU
  static bool Register() {
    if (at::CUDAHooksRegistry()->Has("CUDAHooks")) return false;
    at::CUDAHooksRegistry()->Register("CUDAHooks", [](const at::CUDAHooksArgs&) {
      ++made;
      return std::unique_ptr<at::CUDAHooksInterface>(std::make_unique<FakeCudaHooks>());
    });
    return true;
  }

  bool hasCUDA() const override { return true; }
  void init() const override { ++initialised; }
};

}  // namespace trainwright::test

// The project's operators on the refusing device: the functions that the CUDA plugin registers, over the
// kernels of its sources, which the host emulates; or the CPU's.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <atomic>
#include <string>
#include <tuple>
#include <type_traits>

#include "lib/nn/cuda/operators.h"
#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/host_view.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright::test {
namespace {

std::atomic<int> cpu_kernels = 0;  // scopes that ask for them

/// An operator of the plugin, or the CPU's of the same name, with the views of its tensors.
template <auto Operator>
struct OnDevice;
template <typename Result, typename... Arguments, Result (*Operator)(Arguments...)>
struct OnDevice<Operator> {
  /// In torch's library "trainwright". A dynamic initialiser of its own could run after the one that sets it.
  static inline const char* name = nullptr;

  static Result Call(Arguments... arguments) {
    CountKernel();
    HostViews views;
    std::tuple<std::decay_t<Arguments>...> of_kernel{View(views, arguments)...};
    if (cpu_kernels == 0) return std::apply(Operator, of_kernel);
    static const auto of_cpu = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow((std::string("trainwright::") + name).c_str(), "")
                                   .typed<Result(Arguments...)>();
    return std::apply([](auto&... views) { return of_cpu.call(views...); }, of_kernel);
  }

 private:
  template <typename Argument>
  static auto View(HostViews& views, const Argument& argument) {
    if constexpr (std::is_arithmetic_v<Argument>) {
      return argument;
    } else {
      return views.Of(argument);
    }
  }
};

struct Register {
  torch::Library* library;
  template <auto Operator>
  void operator()(const char* name) const {
    OnDevice<Operator>::name = name;
    library->impl(name, &Kept<&OnDevice<Operator>::Call>::Call);
  }
};

TORCH_LIBRARY_IMPL(trainwright, PrivateUse1, library) {
  cuda::ForEachOperator(Register{&library});
}

}  // namespace

CpuKernels::CpuKernels() {
  ++cpu_kernels;
}
CpuKernels::~CpuKernels() {
  --cpu_kernels;
}

}  // namespace trainwright::test

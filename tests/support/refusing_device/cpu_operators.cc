// Every other operator of the refusing device: the CPU's kernel, on views of the device's memory. The
// project's own operators are in project_operators.cc.
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/refusing_device/device_clock.h"
#include "tests/support/refusing_device/host_view.h"
#include "tests/support/refusing_device/recorded_work.h"
#include "tests/support/refusing_device/refusing_device.h"

namespace trainwright::test {
namespace {

using Stack = torch::jit::Stack;

/// Whose results' sizes, or results, a host must know before it goes on.
/// \param last argument: the size of what is repeated, where somebody knew it
bool MakesTheHostWait(const std::string& name, const c10::IValue& last) {
  if (name == "aten::repeat_interleave") return last.isNone();
  static const std::set<std::string> names = {
      "aten::nonzero",  "aten::masked_select", "aten::_unique",
      "aten::_unique2", "aten::unique_dim",    "aten::unique_consecutive",
      "aten::equal",    "aten::bincount",      "aten::nonzero_static"};
  return names.count(name) > 0;
}

/// An operator takes indices of the host, which then go to the device; of a mask it must know the ones.
bool IsIndexed(const std::string& name) {
  return name.rfind("aten::index", 0) == 0 || name.rfind("aten::_index", 0) == 0;
}

/// A call of an operator: its arguments become views, its results tensors of the device.
class Call {
 public:
  explicit Call(const c10::OperatorHandle& op) : op_(op), name_(op.operator_name().name) {}

  void Run(Stack* stack) {
    const size_t count = op_.schema().arguments().size();
    for (auto argument = stack->end() - static_cast<ptrdiff_t>(count); argument != stack->end(); ++argument) {
      *argument = Argument(*argument);
    }
    if (MakesTheHostWait(name_, stack->back())) Wait(name_);
    CountKernel();
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    views_.TakeSizes();
    const size_t results = op_.schema().returns().size();
    for (auto result = stack->end() - static_cast<ptrdiff_t>(results); result != stack->end(); ++result) {
      *result = Result(*result);
    }
  }
  /// Runs again, with results where those of the first time are.
  void RunAgain(Stack arguments, const Stack& results) {
    Run(&arguments);
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].isTensor()) CopyResult(results[i].toTensor(), arguments[i].toTensor());
      TORCH_CHECK(!results[i].isTensorList(), name_, ": lists of tensors cannot be recorded");
    }
  }

 private:
  c10::IValue Argument(const c10::IValue& value) {
    if (value.isTensor()) return View(value.toTensor());
    if (value.isDevice() && value.toDevice().is_privateuseone()) return c10::Device(c10::kCPU);
    if (value.isTensorList()) {
      c10::List<at::Tensor> views;
      for (const at::Tensor& tensor : value.toTensorVector()) views.push_back(View(tensor));
      return views;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> views;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        views.push_back(tensor ? std::optional(View(*tensor)) : std::nullopt);
      }
      return views;
    }
    return value;
  }

  at::Tensor View(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (IsIndexed(name_) && tensor.scalar_type() == at::kBool) Wait(name_ + " by a mask");
    if (tensor.is_privateuseone() || tensor.dim() == 0) return views_.Of(tensor);
    TORCH_CHECK(tensor.is_cpu() && IsIndexed(name_), name_, ": a tensor of ", tensor.device(), " of sizes ",
                tensor.sizes(), " among tensors of the device");
    Wait(name_ + " by indices of the host");
    return tensor;
  }

  c10::IValue Result(const c10::IValue& value) {
    if (value.isTensor()) return views_.OnDevice(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(views_.OnDevice(tensor));
      return tensors;
    }
    return value;
  }

  const c10::OperatorHandle& op_;
  std::string name_;
  HostViews views_;
};

void RunOnCpu(const c10::OperatorHandle& op, Stack* stack) {
  if (!IsRecording()) return Call(op).Run(stack);
  const auto last = [&](size_t count) {
    return Stack(stack->end() - static_cast<ptrdiff_t>(count), stack->end());
  };
  const Stack arguments = last(op.schema().arguments().size());
  Call(op).Run(stack);
  const Stack results = last(op.schema().returns().size());
  Keep([op, arguments, results] { Call(op).RunAgain(arguments, results); });
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&RunOnCpu>());
}

}  // namespace
}  // namespace trainwright::test

#include "lib/model/recurrent_state.h"

#include <ATen/ops/empty.h>

namespace trainwright {
namespace {

/// Calls function(name, tensor) with all tensors that are defined.
/// \tparam State RecurrentState, constant or not
template <typename State, typename Function>
void Visit(State& state, const Function& function) {
  const auto visit = [&](const std::string& name, auto& tensor) {
    if (tensor.defined()) function(name, tensor);
  };
  for (size_t l = 0; l < state.layers.size(); ++l) {
    auto& layer = state.layers[l];
    const std::string prefix = "layers." + std::to_string(l) + ".";
    visit(prefix + "scan", layer.scan_z);
    visit(prefix + "conv", layer.conv_3z);
    for (size_t i = 0; i < layer.windows.size(); ++i) {
      auto& window = layer.windows[i];
      const std::string name = prefix + "windows." + std::to_string(i) + ".";
      visit(name + "scan", window.scan_z);
      visit(name + "sum", window.sum_d);
    }
  }
  visit("hidden", state.hidden_d);
}

}  // namespace

void ForEachTensor(const RecurrentState& state,
                   const std::function<void(const std::string& name, const at::Tensor& tensor)>& function) {
  Visit(state, function);
}

RecurrentState CopyTo(at::Device device, const RecurrentState& state) {
  RecurrentState copy = state;
  Visit(copy, [&](const std::string&, at::Tensor& tensor) {
    const at::Tensor target = at::empty(tensor.sizes(), tensor.options().device(device));
    target.copy_(tensor);
    tensor = target;
  });
  return copy;
}

int64_t SizeOf(const RecurrentState& state) {
  int64_t bytes = 0;
  ForEachTensor(state, [&](const std::string&, const at::Tensor& tensor) {
    bytes += static_cast<int64_t>(tensor.nbytes());
  });
  return bytes;
}

}  // namespace trainwright

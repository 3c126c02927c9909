/// What a body without keys and values keeps of a sequence: the state of its recurrences, whose size does not
/// depend on how many tokens there were.
///
/// Tensors of a state are never written to again: who goes on from it puts others in their place. So a copy
/// of a state is one of a few references, and states may share memory.
///
/// Shapes as in lib/nn/scan/diagonal_scan.h (K eigenstates, Z = 2 K: real parts, then imaginary parts); D
/// hidden size. All tensors are fp32 and contiguous, under every precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trainwright {

/// Of one window length of a layer's multi-scale block, which has its own eigenstates: z, two numbers each.
struct WindowState {
  at::Tensor scan_z;  ///< after the last complete window
  at::Tensor sum_d;   ///< [z]: of the rows of the window that is open; zero where there are none
  int64_t seen = 0;   ///< how many those are: the tokens so far modulo the window's length
};

struct LayerState {
  at::Tensor scan_z;  ///< [Z]
  at::Tensor
      conv_3z;  ///< [taps - 1, Z]: inputs of the convolution, the latest one last; undefined without it
  std::vector<WindowState> windows;  ///< in the order of their lengths; empty without a multi-scale block
};

/// Of each layer; what a body starts from and leaves (Ten::NewState, Ten::ForwardFrom).
using LayerStates = std::vector<LayerState>;

/// Of a sequence, where it can go on also without another token.
struct RecurrentState {
  LayerStates layers;
  at::Tensor hidden_d;  ///< normalised, after the last token; undefined where there was none
  int64_t tokens = 0;   ///< how many there were
  std::string init;     ///< what the trained numbers of a decay mean: the state's numbers depend on it, too
};

/// Calls function(name, tensor) with all tensors: "layers.0.scan", "layers.0.conv", "layers.0.windows.1.sum",
/// ..., "hidden"; those that are not defined are left out. Counts of windows are not tensors.
void ForEachTensor(const RecurrentState& state,
                   const std::function<void(const std::string& name, const at::Tensor& tensor)>& function);

/// A copy that shares no memory.
RecurrentState CopyTo(at::Device device, const RecurrentState& state);

/// Bytes of its tensors.
int64_t SizeOf(const RecurrentState& state);

}  // namespace trainwright

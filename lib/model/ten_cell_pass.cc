#include "lib/model/ten_cell_pass.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lib/nn/activation/elementwise.h"
#include "lib/nn/activation/sigmoid_gate.h"
#include "lib/nn/scan/causal_convolution.h"
#include "lib/nn/scan/channel_scale.h"
#include "lib/nn/scan/selective_decay.h"

namespace trainwright {

void Ten::CellPass::Forward(const TenCell& cell, const at::Tensor& normed_nd, const TenEnds& starts,
                            TenViews& views, TenEnds& ends) {
  cell.in.Forward(normed_nd, views.beta_nz);
  if (cell.memory) AddMemory(*cell.memory, views);
  const Decay decay = DecayOf(cell, normed_nd);
  MakeScanInput(cell, decay.eigen.gamma_k, starts, views, ends);
  ScanEnds scan_ends = {starts.scan_sz, ends.scan_sz};
  DiagonalScan(numerics_, scan_options(), decay.scan, views.b_nz, input_.spans, scan_ends, views.c_nz,
               views.states_cz);
  at::Tensor coupled_nz = Get(Scratch::kCoupled);
  cell.coupling.Forward(views.c_nz, coupled_nz);
  cell.out.Forward(coupled_nz, views.out_nd);
  cell.gate.ForwardWithoutBias(normed_nd, views.gate_nd);
}

void Ten::CellPass::ScanInputAgain(const TenCell& cell, const TenEnds& starts, TenViews& views) {
  TenEnds nowhere;
  MakeScanInput(cell, DecayOfChannels(cell).gamma_k, starts, views, nowhere);
}

void Ten::CellPass::AddMemory(const TenMemory& memory, TenViews& views) {
  const int64_t eigenstates = this->eigenstates();
  at::Tensor mixed_nz = Get(Scratch::kMixed);
  for (const int64_t part : {int64_t{0}, eigenstates}) {
    at::Tensor mixed_nk = mixed_nz.narrow(1, part, eigenstates);
    memory.mix.Forward(views.memory_nz.narrow(1, part, eigenstates), mixed_nk);
  }
  views.beta_nz.add_(mixed_nz.mul_(model_.Value(memory.gate).sigmoid()));
}

void Ten::CellPass::MakeScanInput(const TenCell& cell, const at::Tensor& gamma_k, const TenEnds& starts,
                                  TenViews& views, TenEnds& ends) {
  if (cell.convolution) {
    CausalConvolution(numerics_, views.beta_nz, model_.Value(*cell.convolution), gamma_k, input_.spans,
                      starts.inputs_spz, views.b_nz, ends.inputs_spz);
  } else if (gamma_k.defined()) {
    ChannelScale(numerics_, views.beta_nz, gamma_k, views.b_nz);
  }
}

EigenDecay Ten::CellPass::DecayOfChannels(const TenCell& cell) const {
  return EigenDecayOf(model_.fields_.init, model_.Value(cell.dynamics.log_decay),
                      model_.Value(cell.dynamics.frequency));
}

Ten::CellPass::Decay Ten::CellPass::DecayOf(const TenCell& cell, const at::Tensor& normed_nd) {
  Decay decay;
  decay.eigen = DecayOfChannels(cell);
  if (!cell.selective) {
    decay.scan = decay.eigen.decay;
    return decay;
  }
  decay.shift_nz = Get(Scratch::kShift);
  cell.selective->Forward(normed_nd, decay.shift_nz);
  decay.scan.lambda_nz = model_.GetFp32(Scratch::kLambda, rows_, channels());
  SelectiveDecay(numerics_, model_.fields_.init, model_.Value(cell.dynamics.log_decay),
                 model_.Value(cell.dynamics.frequency), decay.shift_nz, decay.scan.lambda_nz);
  return decay;
}

at::Tensor Ten::CellPass::Backward(const TenCell& cell, const at::Tensor& d_update_nd,
                                   const at::Tensor& normed_nd, const TenEnds& starts, TenViews& views,
                                   bool below) {
  const at::Tensor d_c_nz = StatesBackward(cell, d_update_nd, views);
  Decay decay = DecayOf(cell, normed_nd);
  const at::Tensor d_beta_nz = ScanBackward(cell, starts, views, decay, d_c_nz);
  d_memory_nz_ = at::Tensor();
  if (cell.memory) MemoryBackward(*cell.memory, views, d_beta_nz, below);
  return ProjectionsBackward(cell, normed_nd, d_beta_nz, views.gate_nd, decay.shift_nz, below);
}

at::Tensor Ten::CellPass::StatesBackward(const TenCell& cell, const at::Tensor& d_update_nd,
                                         TenViews& views) {
  SigmoidGateBackward(numerics_, d_update_nd, cell.gate.bias(), views.gate_nd, views.out_nd);
  at::Tensor coupled_nz = Get(Scratch::kCoupled), d_coupled_nz = Get(Scratch::kDCoupled),
             d_c_nz = Get(Scratch::kDStates);
  cell.coupling.Forward(views.c_nz, coupled_nz);
  cell.out.Backward(views.out_nd, coupled_nz, d_coupled_nz);
  cell.coupling.Backward(d_coupled_nz, views.c_nz, d_c_nz);
  if (d_memory_nz_.defined()) d_c_nz.add_(d_memory_nz_);
  return d_c_nz;
}

at::Tensor Ten::CellPass::ScanBackward(const TenCell& cell, const TenEnds& starts, const TenViews& views,
                                       Decay& decay, const at::Tensor& d_c_nz) {
  const TenInit init = model_.fields_.init;
  const at::Tensor &a_k = model_.Value(cell.dynamics.log_decay), &w_k = model_.Value(cell.dynamics.frequency);
  at::Tensor d_a_k = model_.Gradient(cell.dynamics.log_decay),
             d_w_k = model_.Gradient(cell.dynamics.frequency);
  const auto doubles = at::TensorOptions().dtype(at::kDouble).device(model_.device());
  ScanGradients gradients;
  gradients.b_nz = Get(Scratch::kDInputs);
  if (cell.selective) {
    gradients.lambda_nz = model_.GetFp32(Scratch::kDLambda, rows_, channels());
  } else if (d_a_k.defined()) {
    gradients.lambda_z = at::empty({channels()}, doubles);
  }
  DiagonalScanBackward(numerics_, scan_options(), decay.scan, views.b_nz, input_.spans,
                       {starts.scan_sz, at::Tensor()}, views.states_cz, d_c_nz, at::Tensor(), gradients);
  at::Tensor d_gamma_k;
  if (d_a_k.defined() && decay.eigen.gamma_k.defined()) {
    d_gamma_k = at::empty({eigenstates()}, doubles);
  }
  at::Tensor d_beta_nz =
      ScanInputBackward(cell, decay.eigen.gamma_k, starts, views, gradients.b_nz, d_gamma_k);
  if (cell.selective) {
    SelectiveDecayBackward(numerics_, init, a_k, w_k, gradients.lambda_nz, d_gamma_k, decay.shift_nz, d_a_k,
                           d_w_k);
  } else if (d_a_k.defined()) {
    EigenDecayBackward(init, a_k, w_k, gradients.lambda_z, d_gamma_k, d_a_k, d_w_k);
  }
  return d_beta_nz;
}

at::Tensor Ten::CellPass::ScanInputBackward(const TenCell& cell, const at::Tensor& gamma_k,
                                            const TenEnds& starts, const TenViews& views, at::Tensor& d_b_nz,
                                            at::Tensor& d_gamma_k) {
  if (cell.convolution) {
    ConvolutionGradients gradients;
    gradients.x_nz = Get(Scratch::kDCoupled);
    gradients.kernel_zt = model_.Gradient(*cell.convolution);
    gradients.scale_k = d_gamma_k;
    CausalConvolutionBackward(numerics_, views.beta_nz, model_.Value(*cell.convolution), gamma_k,
                              input_.spans, starts.inputs_spz, d_b_nz, gradients);
    return gradients.x_nz;
  }
  if (gamma_k.defined()) ChannelScaleBackward(numerics_, views.beta_nz, gamma_k, d_b_nz, d_b_nz, d_gamma_k);
  return d_b_nz;
}

void Ten::CellPass::MemoryBackward(const TenMemory& memory, const TenViews& views,
                                   const at::Tensor& d_beta_nz, bool below) {
  const int64_t eigenstates = this->eigenstates();
  MemoryGateBackward(memory, views, d_beta_nz);
  at::Tensor d_mixed_nz = Get(Scratch::kMixed);
  d_mixed_nz.copy_(d_beta_nz).mul_(model_.Value(memory.gate).sigmoid());
  if (numerics_.emulated()) RoundInto(numerics_, d_mixed_nz, d_mixed_nz);
  if (below) d_memory_nz_ = Get(Scratch::kDMemory);
  for (const int64_t part : {int64_t{0}, eigenstates}) {
    at::Tensor d_memory_nk;
    if (below) d_memory_nk = d_memory_nz_.narrow(1, part, eigenstates);
    memory.mix.Backward(d_mixed_nz.narrow(1, part, eigenstates), views.memory_nz.narrow(1, part, eigenstates),
                        d_memory_nk);
  }
}

void Ten::CellPass::MemoryGateBackward(const TenMemory& memory, const TenViews& views,
                                       const at::Tensor& d_beta_nz) {
  at::Tensor d_gate = model_.Gradient(memory.gate);
  if (!d_gate.defined()) return;
  // The sum of d_beta (P c) over all rows is that of P (d_beta^T c) over the matrix.
  const int64_t eigenstates = this->eigenstates();
  const at::Tensor products_kk =
      at::zeros({eigenstates, eigenstates}, at::TensorOptions().dtype(at::kFloat).device(model_.device()));
  for (const int64_t part : {int64_t{0}, eigenstates}) {
    AccumulateWeightGradient(d_beta_nz.narrow(1, part, eigenstates),
                             views.memory_nz.narrow(1, part, eigenstates), products_kk);
  }
  const at::Tensor mix_kk =
      model_.parameters().ComputeMatrix(memory.weight, eigenstates, eigenstates).to(at::kFloat);
  const at::Tensor open = model_.Value(memory.gate).sigmoid(), slope = open.mul(open.neg().add(1));
  // Row by row: no sum is split among threads.
  d_gate.add_(products_kk.mul(mix_kk).sum(1).sum(-1, /*keepdim=*/true).mul(slope));
}

at::Tensor Ten::CellPass::ProjectionsBackward(const TenCell& cell, const at::Tensor& normed_nd,
                                              const at::Tensor& d_beta_nz, const at::Tensor& d_gate_nd,
                                              const at::Tensor& d_shift_nz, bool below) {
  at::Tensor d_normed_nd, d_other_nd;
  if (below) {
    d_normed_nd = model_.Get(Scratch::kDNormed, rows_, normed_nd.size(1));
    d_other_nd = model_.Get(Scratch::kDOther, rows_, normed_nd.size(1));
  }
  cell.in.Backward(d_beta_nz, normed_nd, d_normed_nd);
  cell.gate.Backward(d_gate_nd, normed_nd, d_other_nd);
  if (below) d_normed_nd.add_(d_other_nd);
  if (!cell.selective) return d_normed_nd;
  cell.selective->Backward(d_shift_nz, normed_nd, d_other_nd);
  if (below) d_normed_nd.add_(d_other_nd);
  return d_normed_nd;
}

}  // namespace trainwright

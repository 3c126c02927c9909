#include "lib/model/ten_multi_scale.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <utility>

#include "lib/base/error.h"
#include "lib/device/accelerator.h"
#include "lib/device/upload.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/activation/sigmoid_gate.h"
#include "lib/nn/scan/channel_scale.h"
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

/// Where the biases of gates start: mostly closed.
constexpr double kGateStart = -2;
/// Views of a layer: those of the block, and of each of its windows.
enum BlockView : size_t { kInput, kStatistics, kGate, kOut, kBlockViews };
enum WindowView : size_t { kMeans, kStates, kScanned, kWindowViews };

}  // namespace

std::vector<KeptTensor> TenMultiScale::KeptTensors(const ModelConfig& config, const Numerics& numerics) {
  const TenFields& fields = TenFieldsOf(config);
  const int64_t width = config.hidden_size, channels = 2 * fields.window_eigenstates();
  const KeptTensor of_gate{.stays = Stays::kUnlessFull, .width = width, .dtype = numerics.storage};
  // In the order of BlockView, and then for each window in that of WindowView.
  std::vector<KeptTensor> kept = {
      {.stays = Stays::kUnlessFull, .width = width}, {.width = 2, .tokens_last = true}, of_gate, of_gate};
  for (const int64_t size : fields.windows) {
    // At most one window for each so many rows that a pass has of a span, and for what is left of it: one
    // that an earlier pass began takes some of these rows, too.
    const KeptTensor of_windows{
        .stays = Stays::kUnlessFull, .width = channels, .dtype = numerics.storage, .chunk = size};
    const KeptTensor states{
        .stays = Stays::kUnlessFull, .width = channels, .chunk = size * fields.scan_chunk};
    kept.insert(kept.end(), {of_windows, states, of_windows});
  }
  return kept;
}

TenMultiScale::TenMultiScale(const ModelConfig& config, ScanKind scan, const Numerics& numerics,
                             at::Device device, FlatParameters* parameters)
    : config_(config),
      fields_(TenFieldsOf(config)),
      scan_{.kind = scan, .chunk = fields_.scan_chunk},
      numerics_(numerics),
      device_(device),
      parameters_(parameters) {
  TRAINWRIGHT_CHECK(fields_.multi_scale());
}

void TenMultiScale::AddLayer(const std::string& prefix) {
  const int64_t width = config_.hidden_size, eigenstates = fields_.window_eigenstates();
  const std::string block = prefix + "multi_scale.";
  const auto of_window = [&](size_t i, const char* name) { return block + std::to_string(i) + "." + name; };
  Layer layer;
  layer.norm_weight = parameters_->Add(prefix + "multi_scale_norm.weight", {width}, false);
  layer.norm_bias = parameters_->Add(prefix + "multi_scale_norm.bias", {width}, false);
  layer.cells.resize(fields_.windows.size());
  // Neighbours in the buffer are one product.
  for (size_t i = 0; i < layer.cells.size(); ++i) {
    layer.cells[i].in = parameters_->Add(of_window(i, "in_proj.weight"), {2 * eigenstates, width}, true);
  }
  for (size_t i = 0; i < layer.cells.size(); ++i) {
    Cell& cell = layer.cells[i];
    cell.log_decay = parameters_->Add(of_window(i, "log_decay"), {eigenstates}, false, fields_.dynamics_rate);
    cell.frequency = parameters_->Add(of_window(i, "frequency"), {eigenstates}, false, fields_.dynamics_rate);
    cell.out = parameters_->Add(of_window(i, "out_proj.weight"), {width, 2 * eigenstates}, true);
  }
  layer.gate = parameters_->Add(block + "gate_proj.weight", {width, width}, true);
  layer.gate_bias = parameters_->Add(block + "gate_proj.bias", {width}, false);
  layers_.push_back(std::move(layer));
}

void TenMultiScale::Bind() {
  for (Layer& layer : layers_) {
    std::vector<size_t> in;
    for (const Cell& cell : layer.cells) {
      in.push_back(cell.in);
      layer.out.emplace_back(parameters_, std::vector<size_t>{cell.out});
    }
    layer.in = Linear(parameters_, in);
    layer.gate_proj = Linear(parameters_, {layer.gate}, {layer.gate_bias});
  }
}

void TenMultiScale::Initialize(uint64_t seed) {
  const auto layers = static_cast<int64_t>(layers_.size());
  for (int64_t l = 0; l < layers; ++l) {
    const Layer& layer = layers_[static_cast<size_t>(l)];
    for (const Cell& cell : layer.cells) {
      const Parameter &log_decay = parameters_->all()[cell.log_decay],
                      &frequency = parameters_->all()[cell.frequency];
      const DecayStart start =
          StartDecay(seed, log_decay.name, frequency.name, fields_, fields_.window_eigenstates(), l, layers);
      log_decay.value.copy_(start.a_k);
      frequency.value.copy_(start.w_k);
    }
    Value(layer.gate_bias).fill_(kGateStart);
  }
}

bool TenMultiScale::Starts(const std::string& parameter) {
  if (parameter.find(".multi_scale.") == std::string::npos) return false;
  return parameter.ends_with(".log_decay") || parameter.ends_with(".frequency") ||
         parameter.ends_with(".gate_proj.bias");
}

TenMultiScale::Rows TenMultiScale::RowsOf(const DeviceInput& input,
                                          const std::vector<int64_t>& rows_before) const {
  Rows rows{.windows = {}, .rows_before = rows_before};
  for (const int64_t size : fields_.windows) {
    rows.windows.emplace_back(size, input.spans, rows_before, device_, /*pin=*/IsAccelerator(device_));
  }
  return rows;
}

at::Tensor TenMultiScale::OfWindow(const at::Tensor& of_all, size_t window) const {
  if (!of_all.defined()) return of_all;
  return of_all.narrow(1, static_cast<int64_t>(window) * window_channels(), window_channels());
}

/// One window of a layer: from what is projected for it to what its rows see, and back.
class TenMultiScale::Window {
 public:
  Window(TenMultiScale* block, size_t layer, size_t index, const CausalWindows& windows,
         std::span<const at::Tensor> views, const Ends& from)
      : block_(*block),
        cell_(block->layers_[layer].cells[index]),
        index_(index),
        windows_(windows),
        views_(views.subspan(kBlockViews + index * kWindowViews, kWindowViews)),
        scan_before_sz_(block->OfWindow(from.scan_sz, index)),
        sum_before_sz_(block->OfWindow(from.sum_sz, index)),
        eigen_(EigenDecayOf(block->fields_.init, block->Value(cell_.log_decay),
                            block->Value(cell_.frequency))) {}

  /// \param projected_nz columns of all windows
  /// \param to null: not wanted
  /// \returns what the rows see, [N, z], in scratch
  at::Tensor Forward(const at::Tensor& projected_nz, Ends* to) {
    const at::Tensor sum_before_sz = sum_before_sz_.defined() ? sum_before_sz_.contiguous() : at::Tensor();
    at::Tensor means_mz = Means(), sum_after_sz;
    if (to != nullptr) sum_after_sz = EmptySpans(windows_.num_spans());
    WindowMeans(windows_, block_.OfWindow(projected_nz, index_), sum_before_sz, means_mz, sum_after_sz);
    at::Tensor last_sz;
    if (windows_.count() > 0) last_sz = Scan(to != nullptr);
    if (to != nullptr) Leave(sum_after_sz, last_sz, to);
    return Seen();
  }

  /// What the rows see, again.
  at::Tensor Seen() {
    at::Tensor seen_nz = block_.Temporary(block_.seen_, windows_.num_rows(), channels());
    at::Tensor before_sz;
    if (scan_before_sz_.defined()) {
      before_sz = at::empty(scan_before_sz_.sizes(), seen_nz.options());
      RoundInto(block_.numerics_, scan_before_sz_.contiguous(), before_sz);
    }
    SpreadWindows(windows_, Scanned(), before_sz, seen_nz);
    return seen_nz;
  }

  /// Adds to the gradients of the decay.
  /// \param d_seen_nz rounded
  /// \param d_projected_nz columns of this window are written
  void Backward(const at::Tensor& d_seen_nz, at::Tensor& d_projected_nz) {
    at::Tensor d_own_nz = block_.OfWindow(d_projected_nz, index_);
    at::Tensor d_means_mz = block_.Temporary(block_.d_scaled_, windows_.count(), channels());
    if (windows_.count() > 0) ScanBackward(d_seen_nz, d_means_mz);
    WindowMeansBackward(windows_, d_means_mz, d_own_nz);
  }

 private:
  int64_t channels() const { return block_.window_channels(); }
  at::Tensor Means() const { return views_[kMeans].narrow(0, 0, windows_.count()); }
  at::Tensor Scanned() const { return views_[kScanned].narrow(0, 0, windows_.count()); }
  at::Tensor States() const {
    return views_[kStates].narrow(0, 0, CountScanChunks(windows_.spans, block_.scan_.chunk));
  }
  at::Tensor EmptySpans(int64_t count) const {
    return at::empty({count, channels()}, at::TensorOptions().dtype(at::kFloat).device(block_.device_));
  }
  int64_t num_scanned() const { return static_cast<int64_t>(windows_.spans_with_windows.size()); }
  /// The numbers of the spans that are scanned.
  at::Tensor ScannedSpans() const {
    return Upload(at::tensor(windows_.spans_with_windows, at::TensorOptions().dtype(at::kLong)),
                  block_.device_, /*pin=*/IsAccelerator(block_.device_));
  }
  ScanEnds Starts() const {
    ScanEnds ends;
    if (!scan_before_sz_.defined()) return ends;
    ends.initial_sz = num_scanned() == windows_.num_spans() ? scan_before_sz_.contiguous()
                                                            : scan_before_sz_.index_select(0, ScannedSpans());
    return ends;
  }
  /// What the scan reads; in scratch.
  at::Tensor ScanInput() {
    at::Tensor means_mz = Means();
    if (!eigen_.gamma_k.defined()) return means_mz;
    at::Tensor scaled_mz = block_.Temporary(block_.scaled_, windows_.count(), channels());
    ChannelScale(block_.numerics_, means_mz, eigen_.gamma_k, scaled_mz);
    return scaled_mz;
  }

  /// \returns the states after the spans that are scanned; undefined: not wanted
  at::Tensor Scan(bool wants_last) {
    ScanEnds ends = Starts();
    if (wants_last) ends.last_sz = EmptySpans(num_scanned());
    at::Tensor scanned_mz = Scanned(), states_cz = States();
    DiagonalScan(block_.numerics_, block_.scan_, eigen_.decay, ScanInput(), windows_.spans, ends, scanned_mz,
                 states_cz);
    return ends.last_sz;
  }

  /// A span that completes no window keeps the state that it began with.
  void Leave(const at::Tensor& sum_after_sz, const at::Tensor& last_sz, Ends* to) {
    block_.OfWindow(to->sum_sz, index_).copy_(sum_after_sz);
    const at::Tensor scan_after_sz = block_.OfWindow(to->scan_sz, index_);
    if (num_scanned() == windows_.num_spans()) {
      scan_after_sz.copy_(last_sz);
      return;
    }
    if (scan_before_sz_.defined()) {
      scan_after_sz.copy_(scan_before_sz_);
    } else {
      scan_after_sz.zero_();
    }
    if (last_sz.defined()) scan_after_sz.index_copy_(0, ScannedSpans(), last_sz);
  }

  void ScanBackward(const at::Tensor& d_seen_nz, at::Tensor& d_means_mz) {
    at::Tensor d_scanned_mz = block_.Temporary(block_.d_scanned_, windows_.count(), channels());
    SpreadWindowsBackward(windows_, d_seen_nz, d_scanned_mz);
    const at::TensorOptions doubles = at::TensorOptions().dtype(at::kDouble).device(block_.device_);
    const bool trained = block_.IsTrained(cell_.log_decay);
    ScanGradients gradients{.b_nz = d_means_mz};
    if (trained) gradients.lambda_z = at::empty({channels()}, doubles);
    DiagonalScanBackward(block_.numerics_, block_.scan_, eigen_.decay, ScanInput(), windows_.spans, Starts(),
                         States(), d_scanned_mz, /*d_last_sz=*/{}, gradients);
    at::Tensor d_gamma_k;
    if (eigen_.gamma_k.defined()) {
      if (trained) d_gamma_k = at::empty({channels() / 2}, doubles);
      ChannelScaleBackward(block_.numerics_, Means(), eigen_.gamma_k, d_means_mz, d_means_mz, d_gamma_k);
    }
    if (!trained) return;
    at::Tensor d_a_k = block_.parameters_->Gradient(cell_.log_decay),
               d_w_k = block_.parameters_->Gradient(cell_.frequency);
    EigenDecayBackward(block_.fields_.init, block_.Value(cell_.log_decay), block_.Value(cell_.frequency),
                       gradients.lambda_z, d_gamma_k, d_a_k, d_w_k);
  }

  TenMultiScale& block_;
  const Cell& cell_;
  const size_t index_;
  const CausalWindows& windows_;
  const std::span<const at::Tensor> views_;
  const at::Tensor scan_before_sz_, sum_before_sz_;
  const EigenDecay eigen_;
};

void TenMultiScale::Forward(size_t layer, const Rows& rows, std::span<const at::Tensor> views,
                            const Ends& from, Ends* to, const Scratch& scratch, Residual& residual) {
  const Layer& own = layers_[layer];
  const int64_t num_rows = views[kInput].size(0), columns = 2 * fields_.eigenstates;
  at::Tensor input_nd = views[kInput], normed_nd = scratch.normed_nd, gate_nd = views[kGate],
             out_nd = views[kOut], wide_nd = scratch.wide_nd;
  LayerNormStatistics statistics = {views[kStatistics][0], views[kStatistics][1]};
  AddLayerNorm(numerics_, residual.stream_nd, residual.update_nd, residual.update_bias, NormOf(own),
               config_.rms_norm_eps, input_nd, normed_nd, statistics);
  at::Tensor projected_nz = Temporary(projected_, num_rows, columns);
  own.in.Forward(normed_nd, projected_nz);
  if (numerics_.emulated()) RoundInto(numerics_, projected_nz, projected_nz);
  if (to != nullptr) {
    const int64_t spans = rows.windows.front().num_spans();
    const at::TensorOptions floats = at::TensorOptions().dtype(at::kFloat).device(device_);
    *to = {at::empty({spans, columns}, floats), at::empty({spans, columns}, floats)};
  }
  for (size_t i = 0; i < own.cells.size(); ++i) {
    const at::Tensor seen_nz = Window(this, layer, i, rows.windows[i], views, from).Forward(projected_nz, to);
    own.out[i].Forward(seen_nz, i == 0 ? out_nd : wide_nd);
    if (i > 0) out_nd.add_(wide_nd);
  }
  own.gate_proj.ForwardWithoutBias(normed_nd, gate_nd);
  SigmoidGate(numerics_, gate_nd, own.gate_proj.bias(), out_nd, residual.update_nd);
  residual.stream_nd = input_nd;
  residual.update_bias = at::Tensor();
}

void TenMultiScale::Backward(size_t layer, const Rows& rows, std::span<const at::Tensor> views,
                             const Ends& from, const Scratch& scratch, const at::Tensor& d_short_nd,
                             bool below, at::Tensor& d_stream_nd) {
  const Layer& own = layers_[layer];
  const int64_t num_rows = views[kInput].size(0);
  const bool below_cells = below || own.in.trains() || TrainsDynamics(own);
  const LayerNormStatistics statistics = {views[kStatistics][0], views[kStatistics][1]};
  at::Tensor d_gate_nd = views[kGate], d_out_nd = views[kOut], normed_nd = scratch.normed_nd,
             d_normed_nd = scratch.d_normed_nd, wide_nd = scratch.wide_nd, unwanted;
  SigmoidGateBackward(numerics_, d_short_nd, own.gate_proj.bias(), d_gate_nd, d_out_nd);
  LayerNormAgain(numerics_, views[kInput], statistics, NormOf(own), normed_nd);
  own.gate_proj.Backward(d_gate_nd, normed_nd, below ? d_normed_nd : unwanted);
  at::Tensor d_projected_nz = Temporary(d_projected_, num_rows, 2 * fields_.eigenstates);
  for (size_t i = 0; i < own.cells.size(); ++i) {
    Window window(this, layer, i, rows.windows[i], views, from);
    at::Tensor d_seen_nz = Temporary(d_seen_, num_rows, window_channels());
    own.out[i].Backward(d_out_nd, window.Seen(), below_cells ? d_seen_nz : unwanted);
    if (!below_cells) continue;
    if (numerics_.emulated()) RoundInto(numerics_, d_seen_nz, d_seen_nz);
    window.Backward(d_seen_nz, d_projected_nz);
  }
  if (!below && !own.in.trains()) return;
  if (numerics_.emulated()) RoundInto(numerics_, d_projected_nz, d_projected_nz);
  own.in.Backward(d_projected_nz, normed_nd, below ? wide_nd : unwanted);
  if (!below) return;
  d_normed_nd.add_(wide_nd);
  at::Tensor d_weight_d = parameters_->Gradient(own.norm_weight),
             d_bias_d = parameters_->Gradient(own.norm_bias);
  LayerNormBackward(numerics_, d_normed_nd, views[kInput], statistics, Value(own.norm_weight), d_stream_nd,
                    d_weight_d, d_bias_d, unwanted);
}

bool TenMultiScale::TrainsDynamics(const Layer& layer) const {
  for (const Cell& cell : layer.cells) {
    if (IsTrained(cell.log_decay) || IsTrained(cell.frequency)) return true;
  }
  return false;
}

bool TenMultiScale::trains(size_t layer) const {
  const Layer& own = layers_[layer];
  bool trains = own.in.trains() || own.gate_proj.trains() || TrainsDynamics(own);
  for (const Linear& out : own.out) trains |= out.trains();
  return trains;
}

int64_t TenMultiScale::workspace_bytes() const {
  int64_t bytes = 0;
  for (const Buffer* buffer :
       {&projected_, &seen_, &scaled_, &d_projected_, &d_seen_, &d_scanned_, &d_scaled_}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

void TenMultiScale::ReleaseWorkspace() {
  for (Buffer* buffer : {&projected_, &seen_, &scaled_, &d_projected_, &d_seen_, &d_scanned_, &d_scaled_}) {
    *buffer = Buffer();
  }
}

}  // namespace trainwright

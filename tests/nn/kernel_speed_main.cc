// The speed of every operator of lib/nn/ops.h beside torch's own operators of the same maths: time, and GB/s
// of the bytes that the maths must move at least (each input read once, each output written once).
// scripts/gpu-check.sh runs it on a GPU; on a CPU the numbers show only that it works.
#include <ATen/Parallel.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/_fused_rms_norm_backward.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/units.h"
#include "lib/cli/tool.h"
#include "lib/device/device.h"
#include "lib/nn/activation/gelu_kind.h"
#include "lib/nn/linear/nf4_books.h"
#include "lib/nn/ops.h"
#include "lib/nn/precision.h"
#include "lib/nn/scan/scan_pieces.h"
#include "lib/nn/scan/torch_scan.h"
#include "lib/nn/update/adamw_8bit.h"
#include "lib/nn/update/step_decision.h"
#include "lib/report/table.h"
#include "tests/nn/torch_dropout.h"

namespace trainwright {
namespace {

struct Options {
  std::string device = "auto";
  Precision precision = Precision::kBf16;
  int64_t rows = 16384, width = 4096, vocabulary = 32768;
  int64_t span = 0;  ///< rows of a document of the scans; 0: all
  int rounds = 7;
  std::string only;  ///< how the names of those that are measured begin
};

/// A round lasts at least this long, so that launches and the look at the clock do not count.
constexpr double kRoundSeconds = 0.02;
constexpr int64_t kHeadDim = 64;
constexpr int64_t kScanChunk = 256;
constexpr double kEpsilon = 1e-5;

/// Of one run, in seconds.
struct Times {
  double wall_s = 0;
  double processor_s = 0;  ///< of all threads of this process
};

struct Row {
  std::string name;
  int64_t bytes = 0;
  Times time = {}, torch_time = {};  ///< medians; torch's 0: it has no such operator
  double difference = 0;             ///< of the two results, relative to torch's in the Euclidean norm
};

using Operator = std::function<at::Tensor()>;

class KernelSpeed {
 public:
  explicit KernelSpeed(const Options& options)
      : options_(options),
        device_(ChooseDevice(options.device)),
        storage_(device_.is_cpu() && options.precision == Precision::kFp16
                     ? at::kFloat
                     : PrecisionDtype(options.precision)),
        code_(static_cast<int64_t>(options.precision)) {}

  /// Runs every operator. They share nothing, so that each has the memory for itself.
  const std::vector<Row>& Run() {
    Round();
    AddNorm();
    NormAgain();
    NormBackward();
    AddLayerNorm();
    LayerNormAgain();
    LayerNormBackward();
    Gelu();
    GeluBackward();
    AddBias();
    BiasBackward();
    Rope();
    JoinHeads();
    Swiglu();
    SwigluBackward();
    Dropout();
    ScaleColumnsBackward();
    DequantizeNf4();
    Embed();
    AddEmbedding();
    EmbedBackward();
    CrossEntropy();
    SumOfSquares();
    HeadRows();
    FinishStep();
    AdamWBf16Moments();
    AdamW8Bit();
    Lion();
    DiagonalScan();
    DiagonalScanBackward();
    return rows_;
  }
  at::Device device() const { return device_; }

 private:
  at::TensorOptions Type(at::ScalarType dtype) const {
    return at::TensorOptions().dtype(dtype).device(device_);
  }
  at::Tensor Random(const std::vector<int64_t>& shape, at::ScalarType dtype) const {
    return at::randn(shape, Type(at::kFloat)).to(PrecisionDtype(options_.precision)).to(dtype);
  }
  at::Tensor RandomIds(int64_t count, int64_t end) const {
    return at::randint(end, {count}, at::TensorOptions().dtype(at::kLong)).to(device_);
  }
  int64_t storage_bytes() const { return static_cast<int64_t>(at::elementSize(storage_)); }

  void Wait() const {
    if (!device_.is_cpu()) {
      const c10::DeviceIndex index = device_.has_index() ? device_.index() : c10::DeviceIndex{0};
      c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(index);
    }
  }
  static double ProcessorSeconds() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  Times TimesOf(const Operator& run, int64_t repeats) const {
    Wait();
    const auto start = std::chrono::steady_clock::now();
    const double processor_start_s = ProcessorSeconds();
    for (int64_t i = 0; i < repeats; ++i) run();
    Wait();
    const auto count = static_cast<double>(repeats);
    return {SecondsSince(start) / count, (ProcessorSeconds() - processor_start_s) / count};
  }

  /// Of each clock by itself.
  static Times MedianOf(const std::vector<Times>& rounds) {
    const auto median = [&](double Times::*clock) {
      std::vector<double> values;
      for (const Times& round : rounds) values.push_back(round.*clock);
      const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      return *middle;
    };
    return {median(&Times::wall_s), median(&Times::processor_s)};
  }

  /// \param bytes least traffic of one run
  /// \param torch may be empty. Both give the same result at their first run; later ones may work on their
  ///     own output.
  void Measure(const std::string& name, int64_t bytes, const Operator& ours, const Operator& torch) {
    if (!name.starts_with(options_.only)) return;
    Row row{.name = name, .bytes = bytes};
    const at::Tensor result = ours().to(at::kDouble);
    if (torch) {
      const at::Tensor expected = torch().to(at::kDouble);
      row.difference = result.sub(expected).norm().item<double>() / expected.norm().item<double>();
    }
    // Round by round beside each other, so that clocks and neighbours are the same for both.
    std::vector<Times> times, torch_times;
    const auto repeats = [&](const Operator& run) {
      return std::clamp<int64_t>(static_cast<int64_t>(kRoundSeconds / TimesOf(run, 1).wall_s), 1, 10000);
    };
    const int64_t ours_repeats = repeats(ours), torch_repeats = torch ? repeats(torch) : 0;
    for (int round = 0; round < options_.rounds; ++round) {
      times.push_back(TimesOf(ours, ours_repeats));
      if (torch) torch_times.push_back(TimesOf(torch, torch_repeats));
    }
    row.time = MedianOf(times);
    if (torch) row.torch_time = MedianOf(torch_times);
    rows_.push_back(std::move(row));
  }

  void Round() {
    const at::Tensor in = at::randn({rows(), width()}, Type(at::kFloat));
    at::Tensor out = at::empty(in.sizes(), Type(storage_)), copy = at::empty_like(out);
    Measure(
        "round_into", in.numel() * (4 + storage_bytes()), [&] { return ops::RoundInto(in, code_, out), out; },
        [&] { return copy.copy_(in.to(PrecisionDtype(options_.precision))); });
  }
  void AddNorm() {
    const at::Tensor residual = at::randn({rows(), width()}, Type(at::kFloat)),
                     update = Random({rows(), width()}, storage_),
                     weight = at::randn({width()}, Type(at::kFloat));
    at::Tensor sum = at::empty_like(residual), normed = at::empty_like(update),
               rstd = at::empty({rows()}, Type(at::kFloat));
    Measure(
        "add_rms_norm", residual.numel() * (8 + 2 * storage_bytes()),
        [&] {
          ops::AddRmsNorm(residual, update, weight, kEpsilon, code_, sum, normed, rstd);
          return normed;
        },
        [&] { return at::rms_norm(residual.add(update), {width()}, weight, kEpsilon).to(storage_); });
  }
  /// 1 / rms of the rows of x.
  at::Tensor Rstd(const at::Tensor& x) const { return x.square().mean(1).add_(kEpsilon).rsqrt_(); }
  void NormAgain() {
    const at::Tensor x = at::randn({rows(), width()}, Type(at::kFloat)),
                     weight = at::randn({width()}, x.options()), rstd = Rstd(x);
    at::Tensor normed = at::empty({rows(), width()}, Type(storage_));
    Measure(
        "rms_norm_again", x.numel() * (4 + storage_bytes()),
        [&] { return ops::RmsNormAgain(x, rstd, weight, code_, normed), normed; },
        [&] { return at::rms_norm(x, {width()}, weight, kEpsilon).to(storage_); });
  }
  void NormBackward() {
    const at::Tensor x = at::randn({rows(), width()}, Type(at::kFloat)),
                     weight = at::randn({width()}, x.options()),
                     d_normed = Random({rows(), width()}, storage_), rstd = Rstd(x),
                     rstd_n1 = rstd.unsqueeze(1);
    at::Tensor d_x = at::zeros_like(x), d_weight = at::zeros_like(weight), torchs_d_x = at::zeros_like(x),
               torchs_d_weight = at::zeros_like(weight);
    const auto torch = [&] {
      const at::Tensor dy = d_normed.to(at::kFloat);
      if (device_.is_cuda()) {
        const auto [dx, dw] = at::_fused_rms_norm_backward(dy, x, {width()}, rstd_n1, weight, {true, true});
        torchs_d_weight.add_(dw);
        return torchs_d_x.add_(dx);
      }
      const at::Tensor unit = x.mul(rstd_n1), wdy = dy.mul(weight);  // torch's CPU has no such operator
      torchs_d_weight.add_(dy.mul(unit).sum(0));
      return torchs_d_x.add_(wdy.sub(unit.mul(wdy.mul(unit).mean(1, true))).mul(rstd_n1));
    };
    Measure(
        "rms_norm_backward", x.numel() * (12 + storage_bytes()),
        [&] {
          ops::RmsNormBackward(d_normed, x, rstd, weight, code_, d_x, d_weight, {});
          return d_x;
        },
        torch);
  }
  void AddLayerNorm() {
    const at::Tensor residual = at::randn({rows(), width()}, Type(at::kFloat)),
                     update = Random({rows(), width()}, storage_),
                     update_bias = at::randn({width()}, Type(at::kFloat)),
                     weight = at::randn({width()}, Type(at::kFloat)),
                     bias = at::randn({width()}, Type(at::kFloat));
    at::Tensor sum = at::empty_like(residual), normed = at::empty_like(update),
               mean = at::empty({rows()}, Type(at::kFloat)), rstd = at::empty_like(mean);
    Measure(
        "add_layer_norm", residual.numel() * (8 + 2 * storage_bytes()),
        [&] {
          ops::AddLayerNorm(residual, update, update_bias, weight, bias, kEpsilon, code_, sum, normed, mean,
                            rstd);
          return normed;
        },
        [&] {
          return at::layer_norm(residual.add(update).add_(update_bias), {width()}, weight, bias, kEpsilon)
              .to(storage_);
        });
  }
  void LayerNormAgain() {
    const at::Tensor x = at::randn({rows(), width()}, Type(at::kFloat)),
                     weight = at::randn({width()}, x.options()), bias = at::randn({width()}, x.options());
    const auto [expected, mean_n1, rstd_n1] = at::native_layer_norm(x, {width()}, weight, bias, kEpsilon);
    const at::Tensor mean = mean_n1.view({rows()}), rstd = rstd_n1.view({rows()});
    at::Tensor normed = at::empty({rows(), width()}, Type(storage_));
    Measure(
        "layer_norm_again", x.numel() * (4 + storage_bytes()),
        [&] { return ops::LayerNormAgain(x, mean, rstd, weight, bias, code_, normed), normed; },
        [&] { return at::layer_norm(x, {width()}, weight, bias, kEpsilon).to(storage_); });
  }
  void LayerNormBackward() {
    const at::Tensor x = at::randn({rows(), width()}, Type(at::kFloat)),
                     weight = at::randn({width()}, x.options()), bias = at::randn({width()}, x.options()),
                     d_normed = Random({rows(), width()}, storage_);
    const auto [normed, mean_n1, rstd_n1] = at::native_layer_norm(x, {width()}, weight, bias, kEpsilon);
    const at::Tensor mean = mean_n1.view({rows()}), rstd = rstd_n1.view({rows()});
    at::Tensor d_x = at::zeros_like(x), d_weight = at::zeros_like(weight), d_bias = at::zeros_like(bias),
               torchs_d_x = at::zeros_like(x), torchs_d_weight = at::zeros_like(weight),
               torchs_d_bias = at::zeros_like(bias);
    Measure(
        "layer_norm_backward", x.numel() * (12 + storage_bytes()),
        [&] {
          ops::LayerNormBackward(d_normed, x, mean, rstd, weight, code_, d_x, d_weight, d_bias, {});
          return d_x;
        },
        [&] {
          const auto [dx, dw, db] = at::native_layer_norm_backward(
              d_normed.to(at::kFloat), x, {width()}, mean_n1, rstd_n1, weight, bias, {true, true, true});
          torchs_d_weight.add_(dw);
          torchs_d_bias.add_(db);
          return torchs_d_x.add_(dx);
        });
  }
  static constexpr auto kGeluCode = static_cast<int64_t>(GeluKind::kTanh);
  void Gelu() {
    const at::Tensor in = Random({rows(), 4 * width()}, storage_),
                     bias = at::randn({4 * width()}, Type(at::kFloat));
    at::Tensor out = at::empty_like(in);
    Measure(
        "gelu", in.numel() * 2 * storage_bytes(),
        [&] { return ops::Gelu(in, kGeluCode, bias, code_, out), out; },
        [&] { return at::gelu(in.add(bias), "tanh").to(storage_); });
  }
  /// With the gradient of the bias.
  void GeluBackward() {
    const at::Tensor in = Random({rows(), 4 * width()}, storage_), d_out = Random(in.sizes().vec(), storage_),
                     bias = at::randn({4 * width()}, Type(at::kFloat));
    at::Tensor ours = in.clone(), d_bias = at::zeros_like(bias), torchs_d_bias = at::zeros_like(bias);
    Measure(
        "gelu_backward", in.numel() * 3 * storage_bytes(),
        [&] { return ops::GeluBackward(d_out, kGeluCode, bias, code_, ours, d_bias), ours; },
        [&] {
          const at::Tensor gradient = at::gelu_backward(d_out, in.add(bias), "tanh").to(storage_);
          torchs_d_bias.add_(gradient.sum(0, /*keepdim=*/false, at::kFloat));
          return gradient;
        });
  }
  void AddBias() {
    const at::Tensor in = Random({rows(), width()}, storage_), bias = at::randn({width()}, Type(at::kFloat));
    at::Tensor ours = in.clone(), torchs = in.clone();
    Measure(
        "add_bias", in.numel() * 2 * storage_bytes(), [&] { return ops::AddBias(bias, code_, ours), ours; },
        [&] { return torchs.add_(bias); });
  }
  void BiasBackward() {
    const at::Tensor dy = Random({rows(), width()}, storage_);
    at::Tensor ours = at::zeros({width()}, Type(at::kFloat)), torchs = at::zeros_like(ours);
    Measure(
        "bias_backward", dy.numel() * storage_bytes(),
        [&] { return ops::BiasBackward(dy, code_, ours), ours; },
        [&] { return torchs.add_(dy.sum(0, /*keepdim=*/false, at::kFloat)); });
  }
  void Rope() {
    const int64_t heads = width() / kHeadDim, kv_heads = std::max<int64_t>(1, heads / 4),
                  turned = heads + kv_heads;
    const at::Tensor qkv = Random({rows(), (heads + 2 * kv_heads) * kHeadDim}, storage_),
                     positions = RandomIds(rows(), 2048),
                     angles = at::randn({2048, kHeadDim / 2}, Type(at::kFloat)), cosines = angles.cos(),
                     sines = angles.sin();
    at::Tensor ours = qkv.clone();
    const auto torch = [&] {
      const at::Tensor halves = qkv.narrow(1, 0, turned * kHeadDim).view({rows(), turned, 2, kHeadDim / 2});
      const at::Tensor a = halves.select(2, 0), b = halves.select(2, 1);
      const at::Tensor c = cosines.index_select(0, positions).unsqueeze(1),
                       s = sines.index_select(0, positions).unsqueeze(1);
      return at::cat({a.mul(c).sub(b.mul(s)), b.mul(c).add(a.mul(s))}, 2)
          .to(storage_)
          .view({rows(), turned * kHeadDim});
    };
    Measure(
        "rope", rows() * turned * kHeadDim * 2 * storage_bytes(),
        [&] {
          ops::Rope(ours, positions, cosines, sines, heads, kv_heads, code_, /*backward=*/false);
          return ours.narrow(1, 0, turned * kHeadDim);
        },
        torch);
  }
  /// Beside three copies, without the turn.
  void JoinHeads() {
    const int64_t heads = width() / kHeadDim, kv_heads = std::max<int64_t>(1, heads / 4), half = kHeadDim / 2;
    const at::Tensor q = Random({rows(), heads, kHeadDim}, storage_),
                     k = Random({rows(), kv_heads, kHeadDim}, storage_),
                     v = Random({rows(), kv_heads, kHeadDim}, storage_);
    const at::Tensor angles = at::rand({rows(), half}, Type(at::kFloat)), cosines = angles.cos(),
                     sines = angles.sin(), positions = at::arange(rows(), Type(at::kLong));
    at::Tensor ours = at::empty({rows(), (heads + 2 * kv_heads) * kHeadDim}, Type(storage_)),
               torchs = at::empty_like(ours);
    Measure(
        "join_heads", 2 * ours.numel() * storage_bytes(),
        [&] {
          ops::JoinHeads(q, k, v, positions, cosines, sines, code_, ours);
          return ours.narrow(1, (heads + kv_heads) * kHeadDim, kv_heads * kHeadDim);
        },
        [&] {
          const at::Tensor all = torchs.view({rows(), heads + 2 * kv_heads, kHeadDim});
          all.narrow(1, 0, heads).copy_(q);
          all.narrow(1, heads, kv_heads).copy_(k);
          all.narrow(1, heads + kv_heads, kv_heads).copy_(v);
          return torchs.narrow(1, (heads + kv_heads) * kHeadDim, kv_heads * kHeadDim);
        });
  }
  int64_t wide() const { return width() * 8 / 3 / 64 * 64; }
  void Swiglu() {
    const at::Tensor gate_up = Random({rows(), 2 * wide()}, storage_);
    at::Tensor out = at::empty({rows(), wide()}, Type(storage_));
    Measure(
        "swiglu", out.numel() * 3 * storage_bytes(), [&] { return ops::Swiglu(gate_up, code_, out), out; },
        [&] { return at::silu(gate_up.narrow(1, 0, wide())).mul_(gate_up.narrow(1, wide(), wide())); });
  }
  void SwigluBackward() {
    const at::Tensor gate_up = Random({rows(), 2 * wide()}, storage_),
                     d_out = Random({rows(), wide()}, storage_);
    const at::Tensor gate = gate_up.narrow(1, 0, wide()), up = gate_up.narrow(1, wide(), wide());
    at::Tensor ours = gate_up.clone();
    Measure(
        "swiglu_backward", d_out.numel() * 5 * storage_bytes(),
        [&] { return ops::SwigluBackward(d_out, code_, ours), ours; },
        [&] {
          return at::cat({at::silu_backward(d_out.mul(up), gate), at::silu(gate).mul_(d_out)}, 1);
        });
  }
  void Dropout() {
    constexpr double kProbability = 0.1;
    const at::Tensor x = Random({rows(), width()}, storage_), numbers = at::arange(rows(), Type(at::kLong));
    at::Tensor out = at::empty_like(x), torchs = at::empty_like(x);
    const Numerics numerics{.precision = options_.precision, .storage = storage_};
    Measure(
        "dropout", x.numel() * 2 * storage_bytes(),
        [&] { return ops::Dropout(x, numbers, /*key=*/7, kProbability, code_, out), out; },
        [&] { return test::DropoutByTorch(numerics, /*key=*/7, numbers, kProbability, x, torchs), torchs; });
  }
  void ScaleColumnsBackward() {
    const at::Tensor y = Random({rows(), width()}, storage_), dy = Random({rows(), width()}, storage_),
                     scale = at::rand({width()}, Type(at::kFloat)), norm = scale.add(1);
    at::Tensor ours = y.clone(), d_magnitude = at::zeros({width()}, Type(at::kFloat)),
               torchs_d_magnitude = at::zeros_like(d_magnitude);
    Measure(
        "scale_columns_backward", y.numel() * 3 * storage_bytes(),
        [&] { return ops::ScaleColumnsBackward(scale, norm, dy, ours, d_magnitude), ours; },
        [&] {
          torchs_d_magnitude.add_(y.mul(dy).sum(0, /*keepdim=*/false, at::kFloat).div_(norm));
          return dy.mul(scale).to(storage_);
        });
  }
  /// Beside torch's operators on the same parts.
  void DequantizeNf4() {
    const int64_t size = rows() * width(), blocks = (size + kNf4Block - 1) / kNf4Block;
    const at::Tensor codes = at::randint(256, {(size + 1) / 2}, Type(at::kByte)),
                     scales = at::randint(256, {blocks}, Type(at::kByte)),
                     magnitudes =
                         at::rand({(blocks + kNf4ScaleBlock - 1) / kNf4ScaleBlock}, Type(at::kFloat)),
                     mean = at::rand({1}, Type(at::kFloat));
    const auto book = [&](std::span<const float> values) {
      return at::from_blob(const_cast<float*>(values.data()), {static_cast<int64_t>(values.size())},
                           at::kFloat)
          .to(device_);
    };
    const at::Tensor map = book(DynamicMap()), code_book = book(Nf4CodeBook());
    at::Tensor out = at::empty({size}, Type(storage_));
    Measure(
        "dequantize_nf4", codes.numel() + scales.numel() + size * storage_bytes(),
        [&] { return ops::DequantizeNf4(codes, scales, magnitudes, mean, code_, out), out; },
        [&] {
          const at::Tensor of_blocks =
              map.index_select(0, scales.to(at::kInt))
                  .mul_(magnitudes.repeat_interleave(kNf4ScaleBlock).narrow(0, 0, blocks))
                  .add_(mean);
          const at::Tensor halves = at::stack({codes.__rshift__(4), codes.__and__(15)}, 1).flatten();
          return code_book.index_select(0, halves.narrow(0, 0, size).to(at::kInt))
              .mul(of_blocks.repeat_interleave(kNf4Block).narrow(0, 0, size))
              .to(PrecisionDtype(options_.precision))
              .to(storage_);
        });
  }
  void Embed() {
    const at::Tensor table = at::randn({vocabulary(), width()}, Type(at::kFloat)),
                     tokens = RandomIds(rows(), vocabulary());
    at::Tensor out = at::empty({rows(), width()}, Type(at::kFloat));
    Measure(
        "embed", out.numel() * 8, [&] { return ops::Embed(table, tokens, out), out; },
        [&] { return at::embedding(table, tokens); });
  }
  void AddEmbedding() {
    const at::Tensor table = at::randn({vocabulary(), width()}, Type(at::kFloat)),
                     indices = RandomIds(rows(), vocabulary());
    at::Tensor ours = at::zeros({rows(), width()}, Type(at::kFloat)), torchs = at::zeros_like(ours);
    Measure(
        "add_embedding", ours.numel() * 12, [&] { return ops::AddEmbedding(table, indices, ours), ours; },
        [&] { return torchs.add_(at::embedding(table, indices)); });
  }
  void EmbedBackward() {
    const at::Tensor d_out = at::randn({rows(), width()}, Type(at::kFloat)),
                     tokens = RandomIds(rows(), vocabulary());
    at::Tensor d_table = at::zeros({vocabulary(), width()}, Type(at::kFloat)),
               torchs = at::zeros({vocabulary(), width()}, Type(at::kFloat));
    const at::Tensor sorted = std::get<0>(tokens.cpu().sort());
    const int64_t distinct = 1 + sorted.slice(0, 1).ne(sorted.slice(0, 0, -1)).sum().item<int64_t>();
    Measure(
        "embed_backward", (rows() + 2 * distinct) * width() * 4,
        [&] { return ops::EmbedBackward(d_out, tokens, d_table), d_table; },
        [&] { return torchs.add_(at::embedding_dense_backward(d_out, tokens, vocabulary(), -1, false)); });
  }
  void CrossEntropy() {
    const int64_t slice = std::max<int64_t>(1, rows() / 16);  // a slice of logits is not all rows'
    const at::Tensor logits = Random({slice, vocabulary()}, storage_),
                     targets = RandomIds(slice, vocabulary());
    at::Tensor ours = logits.clone(), losses = at::empty({slice, 3}, Type(at::kDouble));
    const at::Tensor one = at::ones({}, Type(at::kFloat));
    const auto torch = [&] {
      const at::Tensor log_p = at::log_softmax(logits.to(at::kFloat), 1);
      const auto [loss, total] = at::nll_loss_forward(log_p, targets, {}, at::Reduction::Sum, -100);
      const at::Tensor d_log_p =
          at::nll_loss_backward(one, log_p, targets, {}, at::Reduction::Sum, -100, total);
      return at::_log_softmax_backward_data(d_log_p, log_p, 1, at::kFloat).to(storage_);
    };
    Measure(
        "softmax_cross_entropy", logits.numel() * 2 * storage_bytes(),
        [&] {
          ops::SoftmaxCrossEntropy(ours, targets, ours.size(1), 0, 0, 1, {}, code_, /*gradients=*/true,
                                   losses);
          return ours;
        },
        torch);
  }
  void SumOfSquares() {
    const at::Tensor values = at::randn({rows() * width()}, Type(at::kFloat));
    at::Tensor out = at::empty({1}, Type(at::kDouble));
    Measure(
        "sum_of_squares", values.numel() * 4, [&] { return ops::SumOfSquares(values, out), out; },
        [&] { return at::linalg_vector_norm(values, 2, {}, false, at::kDouble).square().view({1}); });
  }
  /// Of labels of which every second is missing.
  void HeadRows() {
    const int64_t labelled = (rows() + 1) / 2;
    const at::Tensor numbers = at::arange(rows(), Type(at::kInt));
    const at::Tensor labels = at::where(numbers.remainder(2).eq(0), numbers, -1).to(at::kInt);
    at::Tensor row_numbers = at::empty({labelled}, Type(at::kLong)), row_labels = at::empty_like(row_numbers);
    Measure(
        "head_rows", rows() * 8 + labelled * 16,
        [&] { return ops::HeadRows(labels, row_numbers, row_labels), row_numbers; },
        [&] { return labels.ge(0).nonzero().view(-1); });
  }
  void FinishStep() {
    const at::Tensor squares = at::ones({1}, Type(at::kDouble));
    at::Tensor state = at::ones({kStepStateFields}, Type(at::kDouble)),
               term_rows = at::ones({kStepTermRows, 3}, Type(at::kDouble)),
               outputs = at::empty({kStepOutputFields}, Type(at::kFloat));
    const at::Tensor inputs = at::ones({kStepInputFields + 3}, Type(at::kDouble));
    Measure(
        "finish_step", (kStepInputFields + kStepStateFields + 3 * kStepTermRows) * 16 + kStepOutputFields * 4,
        [&] {
          ops::FinishStep(squares, inputs, /*max_norm=*/1, /*scaled=*/false, state, term_rows, outputs);
          return outputs;
        },
        nullptr);
  }

  /// Beside torch's with moments in fp32. The values of the first update are the same: they come from the
  /// moments before these are rounded.
  void AdamWBf16Moments() {
    const int64_t size = rows() * width();
    at::Tensor values = at::randn({size}, Type(at::kFloat)), torch_values = values.clone(),
               gradients = at::randn({size}, Type(at::kFloat));
    at::Tensor first = at::zeros({size}, Type(at::kBFloat16)), second = at::zeros_like(first);
    at::Tensor torch_first = at::zeros_like(values), torch_second = at::zeros_like(values);
    const at::Tensor step = at::ones({}, Type(at::kFloat));
    Measure(
        "adamw_bf16_moments", size * (2 * 4 + 4 + 2 * 2 * 2),
        [&] {
          ops::AdamWBf16Moments(values, gradients, first, second, /*first=*/0, /*learning_rate=*/1e-3,
                                /*beta1=*/0.9,
                                /*beta2=*/0.95, /*weight_decay=*/0.1, /*epsilon=*/1e-8, /*key=*/1, step,
                                std::nullopt, std::nullopt);
          return values;
        },
        [&] {
          at::_fused_adamw_({torch_values}, {gradients}, {torch_first}, {torch_second}, {}, {step}, 1e-3, 0.9,
                            0.95, 0.1, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
          return torch_values;
        });
  }

  /// Torch has no moments in 8 bits; from moments of zero its step in fp32 is the same.
  void AdamW8Bit() {
    const int64_t size = rows() * width();
    at::Tensor values = at::randn({size}, Type(at::kFloat)), torch_values = values.clone(),
               gradients = at::randn({size}, Type(at::kFloat));
    at::Tensor first = at::zeros({size}, Type(at::kByte)), second = at::zeros_like(first);
    at::Tensor first_largest = at::zeros({MomentBlocks(size)}, Type(at::kFloat)),
               second_largest = at::zeros_like(first_largest);
    const at::Tensor signed_map = at::linspace(-1, 1, kMapSize, Type(at::kFloat)),
                     unsigned_map = at::linspace(0, 1, kMapSize, Type(at::kFloat));
    at::Tensor torch_first = at::zeros_like(values), torch_second = at::zeros_like(values);
    const at::Tensor step = at::ones({}, Type(at::kFloat));
    Measure(
        "adamw_8bit", size * (2 * 4 + 4 + 2 * 2),
        [&] {
          ops::AdamW8Bit(values, gradients, first, first_largest, second, second_largest, signed_map,
                         unsigned_map, /*learning_rate=*/1e-3, /*beta1=*/0.9, /*beta2=*/0.95,
                         /*weight_decay=*/0.1, /*epsilon=*/1e-8, step, std::nullopt, std::nullopt);
          return values;
        },
        [&] {
          at::_fused_adamw_({torch_values}, {gradients}, {torch_first}, {torch_second}, {}, {step}, 1e-3, 0.9,
                            0.95, 0.1, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
          return torch_values;
        });
  }

  void Lion() {
    const int64_t size = rows() * width();
    at::Tensor values = at::randn({size}, Type(at::kFloat)), torch_values = values.clone(),
               gradients = at::randn({size}, Type(at::kFloat)), average = at::zeros_like(values),
               torch_average = at::zeros_like(values);
    Measure(
        "lion", size * (2 * 4 + 4 + 2 * 4),
        [&] {
          ops::Lion(values, gradients, average, /*learning_rate=*/1e-3, /*beta1=*/0.9, /*beta2=*/0.99,
                    /*weight_decay=*/0.1, std::nullopt, std::nullopt);
          return values;
        },
        [&] {
          torch_values.mul_(1 - 1e-3 * 0.1).sub_(torch_average.lerp(gradients, 1 - 0.9).sign_(), 1e-3);
          torch_average.lerp_(gradients, 1 - 0.99);
          return torch_values;
        });
  }

  /// A channel has two columns.
  struct ScanCase {
    SpanTable spans;
    ScanDecay decay;
    at::Tensor pieces_c5, b_nz, d_c_nz, states_cz;
  };
  ScanCase MakeScan() const {
    const int64_t span = options_.span > 0 ? options_.span : rows();
    std::vector<int32_t> starts;
    for (int64_t row = 0; row < rows(); row += span) starts.push_back(static_cast<int32_t>(row));
    starts.push_back(static_cast<int32_t>(rows()));
    ScanCase scan{.spans = SpanTable(std::move(starts))};
    scan.decay.log_modulus_k = at::randn({width() / 2}, Type(at::kDouble)).sub(3).exp().neg();
    scan.decay.angle_k = at::randn({width() / 2}, Type(at::kDouble));
    scan.pieces_c5 = ScanPieceTable(scan.spans, kScanChunk).to(device_);
    scan.b_nz = Random({rows(), width()}, storage_);
    scan.d_c_nz = Random({rows(), width()}, storage_);
    scan.states_cz = at::empty({scan.pieces_c5.size(0), width()}, Type(at::kFloat));
    return scan;
  }
  void Scan(ScanCase& scan, at::Tensor& c_nz) const {
    ops::DiagonalScan(scan.b_nz, scan.decay.log_modulus_k, scan.decay.angle_k, std::nullopt, scan.pieces_c5,
                      std::nullopt, kScanChunk, code_, c_nz, scan.states_cz, std::nullopt);
  }
  /// Beside torch's operators in chunks of as many rows, in fp32.
  void DiagonalScan() {
    ScanCase scan = MakeScan();
    at::Tensor c_nz = at::empty_like(scan.b_nz);
    Measure(
        "diagonal_scan", scan.b_nz.numel() * 2 * storage_bytes(),
        [&] {
          Scan(scan, c_nz);
          return c_nz;
        },
        [&] {
          ScanEnds ends;
          return TorchScan({ScanKind::kChunked, kScanChunk}, scan.decay, scan.b_nz.to(at::kFloat), scan.spans,
                           ends)
              .to(storage_);
        });
  }
  void DiagonalScanBackward() {
    ScanCase scan = MakeScan();
    at::Tensor d_b_nz = at::empty_like(scan.b_nz), d_lambda_z = at::empty({width()}, Type(at::kDouble)),
               torchs_d_lambda_z = at::empty_like(d_lambda_z);
    Scan(scan, d_b_nz);  // for the states before chunks
    Measure(
        "diagonal_scan_backward", scan.b_nz.numel() * 3 * storage_bytes(),
        [&] {
          ops::DiagonalScanBackward(scan.b_nz, scan.decay.log_modulus_k, scan.decay.angle_k, std::nullopt,
                                    scan.pieces_c5, scan.states_cz, scan.d_c_nz, std::nullopt, kScanChunk,
                                    code_, d_b_nz, d_lambda_z, std::nullopt, std::nullopt);
          return d_b_nz;
        },
        [&] {
          ScanGradients gradients{.b_nz = at::empty(scan.b_nz.sizes(), Type(at::kFloat)),
                                  .lambda_z = torchs_d_lambda_z};
          TorchScanBackward({ScanKind::kChunked, kScanChunk}, scan.decay, scan.b_nz.to(at::kFloat),
                            scan.spans, {}, scan.d_c_nz.to(at::kFloat), {}, gradients);
          return gradients.b_nz.to(storage_);
        });
  }

  int64_t rows() const { return options_.rows; }
  int64_t width() const { return options_.width; }
  int64_t vocabulary() const { return options_.vocabulary; }

  const Options options_;
  const at::Device device_;
  const at::ScalarType storage_;
  const int64_t code_;
  std::vector<Row> rows_;
};

double GigabytesPerSecond(int64_t bytes, double time_s) {
  return 1e-9 * static_cast<double>(bytes) / time_s;
}

std::string FormatRows(const std::vector<Row>& rows) {
  Table table({"operator", "MB", "us", "GB/s", "torch us", "torch GB/s", "times torch"});
  for (const Row& row : rows) {
    const auto torch = [&](double value, int digits) {
      return row.torch_time.wall_s > 0 ? FormatFixed(value, digits) : "-";
    };
    table.AddRow({row.name, FormatFixed(1e-6 * static_cast<double>(row.bytes), 1),
                  FormatFixed(1e6 * row.time.wall_s, 1),
                  FormatFixed(GigabytesPerSecond(row.bytes, row.time.wall_s), 1),
                  torch(1e6 * row.torch_time.wall_s, 1),
                  torch(GigabytesPerSecond(row.bytes, row.torch_time.wall_s), 1),
                  torch(row.torch_time.wall_s / row.time.wall_s, 2)});
  }
  return table.ToString();
}

nlohmann::ordered_json EncodeRows(const std::vector<Row>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json one = {{"operator", row.name},
                                  {"bytes", row.bytes},
                                  {"time_s", row.time.wall_s},
                                  {"cpu_time_s", row.time.processor_s},
                                  {"bytes_per_s", static_cast<double>(row.bytes) / row.time.wall_s}};
    if (row.torch_time.wall_s > 0) {
      one["torch_time_s"] = row.torch_time.wall_s;
      one["torch_cpu_time_s"] = row.torch_time.processor_s;
      one["torch_bytes_per_s"] = static_cast<double>(row.bytes) / row.torch_time.wall_s;
      one["difference"] = row.difference;
    }
    all.push_back(std::move(one));
  }
  return all;
}

void DefineSpeedOptions(CLI::App& app, Options* options) {
  app.add_option("--device", options->device, "where to run: auto, cpu or cuda");
  AddChoice(app, "--precision", &options->precision,
            {{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}, {"fp16", Precision::kFp16}},
            "stored type");
  app.add_option("--rows", options->rows, "tokens")->check(CLI::PositiveNumber);
  app.add_option("--width", options->width, "hidden size, a multiple of 64")->check(CLI::PositiveNumber);
  app.add_option("--vocabulary", options->vocabulary, "columns of the logits")->check(CLI::PositiveNumber);
  app.add_option("--span", options->span, "rows of a document of the scans (default: all)");
  app.add_option("--only", options->only, "measure only operators whose names begin so");
  app.add_option("--rounds", options->rounds, "rounds whose median counts")->check(CLI::PositiveNumber);
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  using namespace trainwright;
  Options options;
  const ToolInfo info = {.name = "kernel_speed",
                         .summary = "measure the operators beside torch's own",
                         .filter = false,
                         .stdout_is_data = false};
  return RunTool(
      argc, argv, info, [&](CLI::App& app) { DefineSpeedOptions(app, &options); },
      [&](ToolRun& run) {
        if (options.width % kHeadDim != 0) {
          throw Error(ErrorCode::kUsage, "--width", "must be a multiple of 64");
        }
        KernelSpeed speed(options);
        const std::vector<Row>& rows = speed.Run();
        run.summary = {{"device", speed.device().str()},   {"precision", PrecisionName(options.precision)},
                       {"threads", at::get_num_threads()}, {"rows", options.rows},
                       {"width", options.width},           {"vocabulary", options.vocabulary},
                       {"operators", EncodeRows(rows)}};
        std::fputs(FormatRows(rows).c_str(), stdout);
        return 0;
      });
}

#include "lib/nn/scan/fused_scan.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "lib/base/error.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/scan/scan_pieces.h"

namespace trainwright::cpu {
namespace {

/// Channels that a thread takes at least: two lines of the cache.
constexpr int64_t kBlock = 32;

/// A power of a constant decay for all channels, as sums of two fp32 numbers.
struct DecayPower {
  std::vector<float> high_z, low_z;  ///< empty: the decay is selective

  /// \param sign 1, or -1 for the conjugate
  DecayPower(const ScanDecay& decay, int64_t exponent, double sign) {
    if (decay.selective()) return;
    const int64_t channels = decay.log_modulus_k.numel();
    const auto *log_modulus = decay.log_modulus_k.const_data_ptr<double>(),
               *angle = decay.angle_k.const_data_ptr<double>();
    high_z.resize(2 * channels);
    low_z.resize(2 * channels);
    const auto set = [this](int64_t at, double value) {
      high_z[at] = static_cast<float>(value);
      low_z[at] = static_cast<float>(value - static_cast<double>(high_z[at]));
    };
    const auto times = static_cast<double>(exponent);
    for (int64_t i = 0; i < channels; ++i) {
      const double modulus = std::exp(times * log_modulus[i]);
      set(i, modulus * std::cos(times * angle[i]));
      set(channels + i, sign * modulus * std::sin(times * angle[i]));
    }
  }
};

/// What both directions have in common.
class ChunkedScan {
 public:
  ChunkedScan(const Numerics& numerics, int64_t chunk, const ScanDecay& decay, const at::Tensor& b_nz,
              const SpanTable& spans, double sign)
      : codec_(CodecOf(numerics)),
        pieces_(ScanPieces(spans, chunk)),
        rows_(b_nz.size(0)),
        channels_(b_nz.size(1) / 2),
        lambda_(decay, 1, 1.0),
        power_(decay, chunk, sign),
        lambda_nz_(DataOrNull(decay.lambda_nz)) {
    if (decay.selective()) products_.resize(pieces_.size() * row());
  }

 protected:
  int64_t row() const { return 2 * channels_; }
  int64_t count() const { return std::ssize(pieces_); }
  const ScanPiece& piece(int64_t n) const { return pieces_[static_cast<size_t>(n)]; }
  ScanChunk Chunk(int64_t n) const {
    return {.first = piece(n).first,
            .rows = piece(n).rows,
            .channels = channels_,
            .decay_nz = lambda_nz_,
            .high_z = lambda_.high_z.data(),
            .low_z = lambda_.low_z.data()};
  }
  float* Product(int64_t n) { return products_.empty() ? nullptr : &products_[n * row()]; }
  /// end_z += the power of a whole chunk times state_z.
  void Carry(int64_t n, const float* state_z, float* end_z, int64_t begin, int64_t end) {
    const float* high = lambda_nz_ != nullptr ? Product(n) : power_.high_z.data();
    const float* low = lambda_nz_ != nullptr ? nullptr : power_.low_z.data();
    kernels_.scan_carry(high, low, channels_, state_z, end_z, begin, end);
  }
  void CopyState(const float* from_z, float* to_z, int64_t begin, int64_t end) const {
    for (const int64_t at : {int64_t{0}, channels_}) {
      if (from_z == nullptr) {
        std::fill(to_z + at + begin, to_z + at + end, 0.0f);
      } else {
        std::copy(from_z + at + begin, from_z + at + end, to_z + at + begin);
      }
    }
  }

  /// Calls end(n), carry(n) and apply(n), each with a range of channels, for all chunks: carry in the order
  /// of `n`, after all ends that it reads, and apply after the carries that it reads.
  /// \param nth the chunk that comes n-th
  template <typename Nth, typename End, typename Carry, typename Apply>
  void Run(const Nth& nth, const End& end, const Carry& carry, const Apply& apply) const {
    const int64_t blocks = (channels_ + kBlock - 1) / kBlock, pieces = count();
    constexpr int64_t kElementsAThread = 16384;
    if (blocks >= at::get_num_threads() || rows_ * kBlock < kElementsAThread) {
      at::parallel_for(0, blocks, kElementsAThread / (rows_ * kBlock) + 1, [&](int64_t first, int64_t last) {
        const int64_t from = first * kBlock, to = std::min(last * kBlock, channels_);
        for (int64_t n = 0; n < pieces; ++n) {
          end(nth(n), from, to);
          carry(nth(n), from, to);
          apply(nth(n), from, to);
        }
      });
      return;
    }
    const auto all = [&](const auto& phase) {
      at::parallel_for(0, pieces * blocks, 1, [&](int64_t first, int64_t last) {
        for (int64_t task = first; task < last; ++task) {
          const int64_t from = task % blocks * kBlock;
          phase(nth(task / blocks), from, std::min(from + kBlock, channels_));
        }
      });
    };
    all(end);
    at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      const int64_t from = first * kBlock, to = std::min(last * kBlock, channels_);
      for (int64_t n = 0; n < pieces; ++n) carry(nth(n), from, to);
    });
    all(apply);
  }

  const Kernels& kernels_ = BestKernels();
  const Codec codec_;
  const std::vector<ScanPiece> pieces_;
  const int64_t rows_, channels_;

 private:
  const DecayPower lambda_, power_;
  const float* lambda_nz_;
  std::vector<float> products_;  ///< of the decays of each chunk, [C, Z]
};

class ForwardScan final : public ChunkedScan {
 public:
  ForwardScan(const Numerics& numerics, int64_t chunk, const ScanDecay& decay, const at::Tensor& b_nz,
              const SpanTable& spans, ScanEnds& ends, at::Tensor& c_nz, at::Tensor& states_cz)
      : ChunkedScan(numerics, chunk, decay, b_nz, spans, 1.0),
        b_nz_(b_nz.const_data_ptr()),
        initial_sz_(DataOrNull(ends.initial_sz)),
        last_sz_(ends.last_sz.defined() ? ends.last_sz.mutable_data_ptr<float>() : nullptr),
        c_nz_(c_nz.mutable_data_ptr()),
        states_cz_(states_cz.mutable_data_ptr<float>()) {}

  void Run() {
    ChunkedScan::Run([](int64_t n) { return n; },
                     [this](int64_t n, int64_t begin, int64_t end) { End(n, begin, end); },
                     [this](int64_t n, int64_t begin, int64_t end) { CarryOn(n, begin, end); },
                     [this](int64_t n, int64_t begin, int64_t end) { Apply(n, begin, end); });
  }

 private:
  float* State(int64_t n) { return states_cz_ + n * row(); }
  const float* Initial(int64_t n) const {
    return initial_sz_ == nullptr ? nullptr : initial_sz_ + piece(n).span * row();
  }
  /// Where the next chunk's state will be: what this one ends with, from its true state if it is a span's
  /// first, else from zero.
  void End(int64_t n, int64_t begin, int64_t end) {
    if (piece(n).begins_span) CopyState(Initial(n), State(n), begin, end);
    if (piece(n).ends_span) return;
    CopyState(piece(n).begins_span ? Initial(n) : nullptr, State(n + 1), begin, end);
    kernels_.scan_end(codec_, Chunk(n), b_nz_, State(n + 1), Product(n), begin, end);
  }
  void CarryOn(int64_t n, int64_t begin, int64_t end) {
    if (piece(n).begins_span || piece(n).ends_span) return;
    Carry(n, State(n), State(n + 1), begin, end);
  }
  void Apply(int64_t n, int64_t begin, int64_t end) {
    std::vector<float> state_z(row());
    CopyState(State(n), state_z.data(), begin, end);
    kernels_.scan_rows(codec_, Chunk(n), b_nz_, state_z.data(), c_nz_, begin, end);
    if (last_sz_ != nullptr && piece(n).ends_span) {
      CopyState(state_z.data(), last_sz_ + piece(n).span * row(), begin, end);
    }
  }

  const void* b_nz_;
  const float* initial_sz_;
  float* last_sz_;
  void* c_nz_;
  float* states_cz_;
};

class BackwardScan final : public ChunkedScan {
 public:
  BackwardScan(const Numerics& numerics, int64_t chunk, const ScanDecay& decay, const at::Tensor& b_nz,
               const SpanTable& spans, const at::Tensor& states_cz, const at::Tensor& d_c_nz,
               const at::Tensor& d_last_sz, ScanGradients& gradients)
      : ChunkedScan(numerics, chunk, decay, b_nz, spans, -1.0),
        b_nz_(b_nz.const_data_ptr()),
        d_c_nz_(d_c_nz.const_data_ptr()),
        states_cz_(states_cz.const_data_ptr<float>()),
        d_last_sz_(DataOrNull(d_last_sz)),
        d_b_nz_(gradients.b_nz.mutable_data_ptr()),
        d_initial_sz_(gradients.initial_sz.defined() ? gradients.initial_sz.mutable_data_ptr<float>()
                                                     : nullptr),
        d_lambda_nz_(gradients.lambda_nz.defined() ? gradients.lambda_nz.mutable_data_ptr<float>() : nullptr),
        carries_(count() * row()),
        d_lambdas_(gradients.lambda_z.defined() ? count() * row() : 0) {}

  void Run() {
    ChunkedScan::Run([last = count() - 1](int64_t n) { return last - n; },
                     [this](int64_t n, int64_t begin, int64_t end) { End(n, begin, end); },
                     [this](int64_t n, int64_t begin, int64_t end) { CarryOn(n, begin, end); },
                     [this](int64_t n, int64_t begin, int64_t end) { Apply(n, begin, end); });
  }
  /// The sum over the chunks, in their order.
  void SumDecays(at::Tensor& d_lambda_z) const {
    auto* sums = d_lambda_z.mutable_data_ptr<double>();
    std::fill(sums, sums + row(), 0.0);
    for (int64_t n = 0; n < count(); ++n) {
      for (int64_t i = 0; i < row(); ++i) sums[i] += d_lambdas_[n * row() + i];
    }
  }

 private:
  /// The gradient of the state after a chunk.
  float* CarryOf(int64_t n) { return &carries_[n * row()]; }
  const float* Last(int64_t n) const {
    return d_last_sz_ == nullptr ? nullptr : d_last_sz_ + piece(n).span * row();
  }
  void End(int64_t n, int64_t begin, int64_t end) {
    if (piece(n).ends_span) CopyState(Last(n), CarryOf(n), begin, end);
    if (piece(n).begins_span) return;
    CopyState(piece(n).ends_span ? Last(n) : nullptr, CarryOf(n - 1), begin, end);
    kernels_.scan_backward_end(codec_, Chunk(n), d_c_nz_, CarryOf(n - 1), Product(n), begin, end);
  }
  void CarryOn(int64_t n, int64_t begin, int64_t end) {
    if (piece(n).begins_span || piece(n).ends_span) return;
    Carry(n, CarryOf(n), CarryOf(n - 1), begin, end);
  }
  void Apply(int64_t n, int64_t begin, int64_t end) {
    std::vector<float> carry_z(row());
    CopyState(CarryOf(n), carry_z.data(), begin, end);
    const bool of_decay = !d_lambdas_.empty() || d_lambda_nz_ != nullptr;
    const auto scratch =
        std::make_unique_for_overwrite<float[]>(of_decay ? ScanScratch(piece(n).rows, end - begin) : 0);
    kernels_.scan_backward_rows(codec_, Chunk(n),
                                {.b_nz = b_nz_,
                                 .d_c_nz = d_c_nz_,
                                 .state_z = states_cz_ + n * row(),
                                 .carry_z = carry_z.data(),
                                 .d_b_nz = d_b_nz_,
                                 .d_decay_z = d_lambdas_.empty() ? nullptr : &d_lambdas_[n * row()],
                                 .d_decay_nz = d_lambda_nz_,
                                 .scratch = scratch.get()},
                                begin, end);
    if (d_initial_sz_ != nullptr && piece(n).begins_span) {
      CopyState(carry_z.data(), d_initial_sz_ + piece(n).span * row(), begin, end);
    }
  }

  const void *b_nz_, *d_c_nz_;
  const float *states_cz_, *d_last_sz_;
  void* d_b_nz_;
  float *d_initial_sz_, *d_lambda_nz_;
  std::vector<float> carries_;     ///< [C, Z]
  std::vector<double> d_lambdas_;  ///< of each chunk, [C, Z]; empty: not wanted
};

}  // namespace

void FusedScan(const Numerics& numerics, int64_t chunk, const ScanDecay& decay, const at::Tensor& b_nz,
               const SpanTable& spans, ScanEnds& ends, at::Tensor& c_nz, at::Tensor& states_cz) {
  ForwardScan(numerics, chunk, decay, b_nz, spans, ends, c_nz, states_cz).Run();
}

void FusedScanBackward(const Numerics& numerics, int64_t chunk, const ScanDecay& decay,
                       const at::Tensor& b_nz, const SpanTable& spans, const at::Tensor& states_cz,
                       const at::Tensor& d_c_nz, const at::Tensor& d_last_sz, ScanGradients& gradients) {
  BackwardScan scan(numerics, chunk, decay, b_nz, spans, states_cz, d_c_nz, d_last_sz, gradients);
  scan.Run();
  if (gradients.lambda_z.defined()) scan.SumDecays(gradients.lambda_z);
}

}  // namespace trainwright::cpu

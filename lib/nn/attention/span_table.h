/// The spans of a packed micro-batch, on the host and where attention needs them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace trainwright {

struct SpanTable {
  SpanTable() = default;
  /// On the CPU, as tests and CPU models have it.
  /// \param starts [S+1]: span s is rows [starts[s], starts[s+1])
  SpanTable(std::vector<int32_t> starts) : starts(std::move(starts)) {}  // NOLINT: a list of starts is one
  /// Copies the starts to a GPU.
  /// \param pin as of Upload
  SpanTable(std::vector<int32_t> starts, at::Device device, bool pin = true);

  std::vector<int32_t> starts;
  at::Tensor starts_on_device;  ///< int32 [S+1]; undefined on the CPU
  int64_t bound = 0;            ///< where not 0, what kernels are to take for the longest span
  int64_t longest() const;      ///< rows of the longest span, or `bound`
  /// Neighbours of one length, as many together as there are; empty spans are left out.
  struct Run {
    int64_t begin = 0, spans = 0, length = 0;  ///< first row, and the rows of each
    int64_t rows() const { return spans * length; }
    bool operator==(const Run&) const = default;
  };
  std::vector<Run> EqualRuns() const;
  /// Whether all spans that are not empty have one length.
  bool all_equal() const { return EqualRuns().size() <= 1; }
};

}  // namespace trainwright

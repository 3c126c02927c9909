/// What a tile of scores goes through on its way to losses and gradients.
///
/// A tile holds the dot products of T own vectors with all C of the other side: fp32 [T, C], contiguous. A
/// score is a dot product over the temperature, s = f x. Of a row, with its pairs k, K of them, and the
/// others j that are not excluded:
///
///   N = log sum_j e^s_j,  loss = mean_k softplus(N - s_k),  c = mean_k sigmoid(N - s_k)
///   d loss / d s_k = -sigmoid(N - s_k) / K,  d loss / d s_j = c e^(s_j - N) = weight e^(f (x_j - largest))
///
/// where `largest` is the largest dot product among the others and weight = c / sum_j e^(f (x_j - largest)):
/// two numbers a row give the gradients of all of its others. With K = 1 the loss is the cross-entropy of the
/// pair. A row without others has the loss 0, and 0 for both numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace trainwright {

/// The pairs in a tile, row after row.
struct TilePairs {
  at::Tensor places_n;   ///< int64: row * C + column
  at::Tensor lengths_t;  ///< int64, at least 1: those of each row
};

/// The dot products at some places.
at::Tensor ReadPlaces(const at::Tensor& tile_tc, const at::Tensor& places_n);
/// \param values_n fp32
void WritePlaces(const at::Tensor& places_n, const at::Tensor& values_n, at::Tensor* tile_tc);
/// Excludes them: their products become minus infinity.
void ExcludePlaces(const at::Tensor& places_n, at::Tensor* tile_tc);
/// Excludes dot products above a limit.
/// \param limits fp32 [T, 1] or [1, C]
void ExcludeAbove(const at::Tensor& limits, at::Tensor* tile_tc);

/// Excludes places that come one by one, some thousands at a time. Not thread-safe.
class PlaceExcluder {
 public:
  /// \param tile_tc outlives this
  explicit PlaceExcluder(at::Tensor* tile_tc) : tile_tc_(tile_tc) {}
  void Add(int64_t place);
  /// Excludes those that wait; after the last.
  void Flush();

 private:
  at::Tensor* tile_tc_;
  std::vector<int64_t> places_;
};

/// What the rows of a tile come to.
struct RowLosses {
  at::Tensor loss_t;      ///< fp64
  at::Tensor gradient_n;  ///< fp64, of each pair: sigmoid(N - s_k) / K
  at::Tensor first_t;  ///< fp64: 1 where a pair's score is above all others', 0 where not or without others
  at::Tensor scalars_t2;  ///< fp32: largest and weight
};

/// \param factor f
/// \param lengths_t as TilePairs
/// \param products_n of the pairs, fp32
/// \param tile_tc with all pairs excluded; becomes e^(f (x - largest))
RowLosses LossesOfRows(double factor, const at::Tensor& lengths_t, const at::Tensor& products_n,
                       at::Tensor* tile_tc);

/// tile = weight e^(f (x - largest)) with both numbers of the row, where these are given, plus the same with
/// those of the column.
/// \param rows_t2 as RowLosses::scalars_t2; undefined: none
/// \param columns_c2 likewise
/// \param tile_tc with the excluded; these become 0
void WeighTile(double factor, const at::Tensor& rows_t2, const at::Tensor& columns_c2, at::Tensor* tile_tc);

/// The implementations for devices other than the CPU, out of torch's operators; they run there, too.
namespace on_device {

struct RowSums {
  at::Tensor largest_t;  ///< fp32
  at::Tensor total_t;    ///< fp64
};

/// tile = e^(f (x - largest)), and the sum of each row.
RowSums ToWeights(double factor, at::Tensor* tile_tc);
void WeighTile(double factor, const at::Tensor& rows_t2, const at::Tensor& columns_c2, at::Tensor* tile_tc);

}  // namespace on_device
}  // namespace trainwright

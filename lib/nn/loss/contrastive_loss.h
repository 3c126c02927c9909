/// The contrastive loss (InfoNCE) of a step: every query finds its positives among all passages of all ranks.
/// The matrix of scores, Q x P, never exists: it is computed in tiles of rows.
/// \source van den Oord et al. 2018, arXiv:1807.03748, equation 4; in-batch negatives: Karpukhin et al. 2020,
/// arXiv:2004.04906, equation 2
///
/// A query i has K_i positives k; its others j are all passages but its positives and those that
/// ContrastiveOptions::false_negatives leaves out, the negatives of its record among them. With the scores
/// s = q p / temperature
///
///   N_i = log sum_j e^s_ij,  L_i = mean_k log(1 + e^(N_i - s_ik)),  loss = mean_i L_i
///
/// which for one positive is the cross-entropy of its row. `symmetric` adds the same over the columns: of a
/// positive k the others are all queries but its own, and the loss is half of mean_i (L_i + mean_k L_k). What
/// has no others has no loss and no gradient.
///
/// A rank computes the rows of its queries and the columns of its passages, from the vectors of all ranks:
/// its sums are complete and nothing of the size of vectors is added up between ranks. What the column of a
/// passage has to know of the rows are two numbers each:
///
///   ContrastiveLoss loss(options, groups, share);
///   ScalarShare own = loss.RowsAndScalars(q, p);
///   loss.Gradients(<own of all ranks, one below the other>, q, p, scale, d_q, d_p);
///
/// Numerics: GEMMs in fp32 through Matmul, sums over a row and what is made of them in fp64, numbers that
/// travel and gradients in fp32. Every GEMM has the shape of a tile of one leaf by all of the other side,
/// so that a leaf's bits are the same in every world. A tile is the largest tensor that is made, but for
/// copies of the vectors where there are several sizes. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/nn/buffer.h"
#include "lib/nn/loss/contrastive_groups.h"
#include "lib/nn/loss/contrastive_options.h"
#include "lib/nn/loss/contrastive_tile.h"
#include "lib/nn/loss/cross_entropy.h"

namespace trainwright {

/// What a rank has found of its rows and columns, and all ranks need: two numbers for each of the M sizes,
/// see contrastive_tile.h. Where there are several ranks those of all come one below the other, in their
/// order.
struct ScalarShare {
  at::Tensor rows_q2m;  ///< fp32 [own or all Q, 2 M]
  /// fp32 [own or all P, 2 M], of passages that are no positives 0; undefined but under `symmetric`.
  at::Tensor columns_p2m;
};

/// Of one step.
class ContrastiveLoss {
 public:
  /// \param groups with hashes under FalseNegatives::kSameText
  ContrastiveLoss(ContrastiveOptions options, ContrastiveGroups groups, const ContrastiveShare& share);
  ContrastiveLoss(const ContrastiveLoss&) = delete;
  ContrastiveLoss& operator=(const ContrastiveLoss&) = delete;

  /// The losses of own queries. Once.
  /// \param unit_qd, unit_pd of all ranks, fp32 [Q, d] and [P, d], contiguous, on one device, which is not
  ///     the meta device; left as they are until Gradients is done
  ScalarShare RowsAndScalars(const at::Tensor& unit_qd, const at::Tensor& unit_pd);
  /// Adds the gradients of own vectors, of the mean of the loss over all Q, times scale. Once.
  /// \param all scalars of all ranks; what RowsAndScalars gave where there is one rank
  /// \param d_q, d_p fp32 [own queries, d] and [own passages, d]
  void Gradients(const ScalarShare& all, const at::Tensor& unit_qd, const at::Tensor& unit_pd,
                 const GradientScale& scale, at::Tensor& d_q, at::Tensor& d_p);

  /// fp64 [own queries], where the vectors are: the sums over sizes, weighted. Their sum over all ranks over
  /// Q is the loss.
  const at::Tensor& losses() const { return losses_; }
  /// Likewise, 1 where a positive of the query is closer to it than all of its others, else 0, as where there
  /// are none; of the largest size.
  const at::Tensor& top1() const { return top1_; }

 private:
  /// Queries or passages, cut to a size: T vectors of m elements.
  struct SizedRows {
    at::Tensor vectors_tm;
    at::Tensor norms_t;  ///< before they had unit length again; undefined: they are whole

    /// Some of them.
    SizedRows Part(int64_t begin, int64_t count) const {
      return {vectors_tm.narrow(0, begin, count),
              norms_t.defined() ? norms_t.narrow(0, begin, count) : at::Tensor()};
    }
  };
  /// The vectors of all ranks, cut to a size.
  struct SizedVectors {
    SizedRows queries, passages;
  };

  int64_t queries() const { return groups_.queries(); }
  int64_t passages() const { return groups_.passages(); }
  /// What dot products are multiplied by: a number that fp32 holds, so that all terms of a row have the same.
  double factor() const { return static_cast<double>(static_cast<float>(1 / options_.temperature)); }
  /// What the gradients of a size's dot products, of the sum over rows, are multiplied by.
  double WeightOfGradients(size_t size) const;
  double WeightOfLosses(size_t size) const;
  /// Those of the options, or the whole.
  void ResolveSizes(int64_t width);
  SizedVectors OfSize(size_t size, const at::Tensor& unit_qd, const at::Tensor& unit_pd) const;
  /// Of kMargin: fp32 [Q], the dot products above which passages are left out, from the vectors of all ranks,
  /// so that all ranks have the same.
  at::Tensor LimitsOf(const SizedVectors& vectors) const;
  /// Once the device is known.
  void SetPairCounts();
  at::Tensor OnDevice(const std::vector<int64_t>& numbers) const;

  /// A tile of own_tm with all of `others`.
  at::Tensor TileOf(const at::Tensor& own_tm, const SizedRows& others);
  /// Adds weight * device_scale times the gradient of own rows, whose tile with all of `others` holds the
  /// derivatives.
  /// \param device_scale fp32 [1], or undefined: 1
  void AddRows(const at::Tensor& tile_tc, const SizedRows& others, const SizedRows& own, double weight,
               const at::Tensor& device_scale, at::Tensor target_td);
  /// Both numbers of each row of a ScalarShare that are those of a size.
  static at::Tensor ScalarsOf(const at::Tensor& share_t2m, size_t size) {
    return share_t2m.narrow(1, 2 * static_cast<int64_t>(size), 2);
  }

  // Rows: contrastive_rows.cc.
  /// Losses and scalars of own queries, and without `symmetric` their gradients.
  void ScoreQueries(size_t size, const SizedVectors& vectors, ScalarShare* share);
  void AddQueryGradients(size_t size, const SizedVectors& vectors, const ScalarShare& all,
                         const GradientScale& scale, at::Tensor& d_q);
  TilePairs PairsOfQueries(const TileRange& range) const;
  void ExcludeOfQueries(size_t size, const TileRange& range, const TilePairs& pairs, at::Tensor* tile) const;
  /// Of the pairs in a range of own queries.
  TileRange PairRange(const TileRange& range) const;

  // Columns: contrastive_columns.cc.
  /// Losses and scalars of own positives, under `symmetric`.
  void ScorePositives(size_t size, const SizedVectors& vectors, ScalarShare* share);
  void AddPassageGradients(size_t size, const SizedVectors& vectors, const ScalarShare& all,
                           const GradientScale& scale, at::Tensor& d_p);
  /// \param passages number among all of each row of the tile
  void ExcludeOfPassages(size_t size, const std::vector<int64_t>& passages, const at::Tensor& pair_places,
                         at::Tensor* tile) const;

  ContrastiveOptions options_;
  const ContrastiveGroups groups_;
  const ContrastiveShare share_;
  const OwnPairs pairs_;
  const ContrastiveTiles tiles_;
  std::optional<TextMasks> masks_;
  at::Device device_ = at::kCPU;
  at::Tensor pair_shares_n_;                ///< fp64, of each own pair 1 / K
  at::Tensor pairs_of_query_q_;             ///< int64 [own queries]: K
  std::vector<at::Tensor> pair_gradients_;  ///< of each size, fp64: of own pairs, minus d loss / d s
  std::vector<at::Tensor> limits_;          ///< of each size, see LimitsOf
  at::Tensor losses_, top1_;
  at::Tensor d_queries_;  ///< fp32 [own queries, d], without `symmetric`: their gradients, of a scale of 1
  Buffer tile_, d_tile_;
};

}  // namespace trainwright

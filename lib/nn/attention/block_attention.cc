#include "lib/nn/attention/block_attention.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lib/nn/linear/micro_kernel.h"

namespace trainwright::cpu {
namespace {

constexpr int64_t kBlock = kPanelColumns;  // queries, or keys, of a block
constexpr int64_t kReach = 512;            // the most of the other kind that a block meets at once
constexpr float kNever = 1e30f;            // the lse of padding: e^(score - lse) is 0

/// What the passes over one span and one group of heads share. "Rows" are positions of the span, padded with
/// zeros to whole blocks.
class SpanTask {
 public:
  SpanTask(Codec codec, const AttentionShape& shape, const AttentionTask& task)
      : codec_(codec),
        work_codec_(codec == Codec::kBf16 && WidensBf16() ? Codec::kRoundedBf16 : codec),
        bf16_(work_codec_ == Codec::kBf16),
        stored_bytes_(codec == Codec::kBf16 ? 2 : 4),
        element_bytes_(bf16_ ? 2 : 4),
        shape_(shape),
        begin_(task.begin),
        length_(task.end - task.begin),
        padded_(RoundUp(length_, kBlock)),
        size_(shape.head_dim),
        window_(shape.window),
        causal_(shape.mask == AttentionMask::kCausal),
        scale_(1.0f / std::sqrt(static_cast<float>(size_))) {}

 protected:
  /// `count` elements of operands (or of fp32), 64-byte aligned.
  uint8_t* Take(int64_t count, bool fp32 = false) {
    buffers_.push_back(
        at::empty({count * (fp32 ? 4 : element_bytes_)}, at::TensorOptions().dtype(at::kByte)));
    return buffers_.back().mutable_data_ptr<uint8_t>();
  }
  float* TakeFp32(int64_t count) { return reinterpret_cast<float*>(Take(count, true)); }

  /// The first block of keys that the block of queries from `query` on sees any of.
  int64_t FirstKey(int64_t query) const {
    return window_ == 0 ? 0 : std::max(int64_t{0}, query + 1 - window_) / kBlock * kBlock;
  }
  /// One past the last block of keys that it sees any of.
  int64_t EndOfKeys(int64_t query) const {
    if (causal_) return query + kBlock;
    return window_ == 0 ? padded_ : std::min(padded_, RoundUp(query + kBlock - 1 + window_, kBlock));
  }
  /// The first block of queries that sees any of the block of keys from `key` on.
  int64_t FirstQuery(int64_t key) const { return causal_ ? key : FirstKey(key); }
  /// One past the last block of queries that sees any of the block of keys from `key` on.
  int64_t EndOfQueries(int64_t key) const {
    return window_ == 0 ? padded_ : std::min(padded_, RoundUp(key + kBlock - 1 + window_, kBlock));
  }
  /// Where a head's first row lies in a buffer whose rows are `stride` elements.
  template <typename Pointer>
  Pointer HeadAt(Pointer data, int64_t stride, int64_t column) const {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const uint8_t, uint8_t>;
    return static_cast<Byte*>(data) + (begin_ * stride + column) * stored_bytes_;
  }
  int64_t KeyColumn(int64_t group) const { return (shape_.num_heads + group) * size_; }
  int64_t ValueColumn(int64_t group) const {
    return (shape_.num_heads + shape_.num_kv_heads + group) * size_;
  }
  int64_t heads_a_group() const { return shape_.num_heads / shape_.num_kv_heads; }

  /// Rows as a left operand: contiguous.
  void CopyRows(const void* from, int64_t stride, uint8_t* to) const {
    const auto* bytes = static_cast<const uint8_t*>(from);
    const int64_t row_bytes = size_ * element_bytes_;
    for (int64_t r = 0; r < length_; ++r) {
      const uint8_t* row = bytes + r * stride * stored_bytes_;
      if (element_bytes_ == stored_bytes_) {
        std::memcpy(to + r * row_bytes, row, row_bytes);
      } else {
        BestKernels().widen(reinterpret_cast<const uint16_t*>(row), size_,
                            reinterpret_cast<float*>(to + r * row_bytes));
      }
    }
    std::memset(to + length_ * row_bytes, 0, (padded_ - length_) * row_bytes);
  }
  /// Contiguous rows as a right operand whose depth is the rows.
  void PackRows(const uint8_t* rows, uint8_t* to) const {
    if (bf16_) {
      BestKernels().interleave_pairs(reinterpret_cast<const uint16_t*>(rows), size_, padded_, size_,
                                     reinterpret_cast<uint32_t*>(to), size_);
    } else {
      std::memcpy(to, rows, padded_ * size_ * 4);
    }
  }
  /// Contiguous rows as a right operand whose columns are the rows: panels of [head size][kBlock].
  void PackTransposed(const uint8_t* rows, uint8_t* to) const {
    const int64_t units = bf16_ ? size_ / 2 : size_;  // 32-bit elements of a row
    for (int64_t r = 0; r < padded_; r += kBlock) {
      BestKernels().transpose(reinterpret_cast<const uint32_t*>(rows) + r * units, units, kBlock, units,
                              reinterpret_cast<uint32_t*>(to) + r * units, kBlock);
    }
  }
  /// scores [kBlock, columns] = left block times the panels of a PackTransposed operand from row `first` on.
  void Scores(const uint8_t* left, const uint8_t* panels, int64_t first, int64_t columns,
              float* scores) const {
    for (int64_t c = 0; c < columns; c += kBlock) {
      Multiply({.bf16 = bf16_,
                .rows = kBlock,
                .columns = kBlock,
                .depth = size_,
                .left = left,
                .left_stride = size_,
                .right = panels + (first + c) * size_ * element_bytes_,
                .right_stride = kBlock,
                .out = scores + c,
                .out_stride = kReach});
    }
  }
  /// sums [kBlock, head size] += weights [kBlock, depth] times rows of a PackRows operand from `first` on.
  void AddWeighted(const uint8_t* weights, int64_t weights_stride, const uint8_t* rows, int64_t first,
                   int64_t depth, float* sums) const {
    Multiply({.bf16 = bf16_,
              .rows = kBlock,
              .columns = size_,
              .depth = depth,
              .left = weights,
              .left_stride = weights_stride,
              .right = rows + first * size_ * element_bytes_,
              .right_stride = size_,
              .out = sums,
              .out_stride = size_,
              .accumulate = true});
  }
  void StoreRows(const float* rows, void* to, int64_t stride) const {
    BestKernels().store_tile(codec_, rows, size_, length_, size_, to, stride, /*accumulate=*/false);
  }

  const Codec codec_;       ///< of what is read and written
  const Codec work_codec_;  ///< of operands: widened, fp32 that holds values rounded to bf16
  const bool bf16_;         ///< operands are bf16 in pairs
  const int64_t stored_bytes_, element_bytes_;  ///< of an element of the two
  const AttentionShape shape_;
  const int64_t begin_, length_, padded_, size_, window_;
  const bool causal_;
  const float scale_;

 private:
  std::vector<at::Tensor> buffers_;
};

class ForwardTask : SpanTask {
 public:
  using SpanTask::SpanTask;

  void Run(const void* qkv, int64_t group, void* out_nhk, float* lse_hn) {
    const int64_t row = shape_.row(), out_row = shape_.num_heads * size_;
    uint8_t *rows = Take(padded_ * size_), *keys = Take(padded_ * size_), *values = Take(padded_ * size_),
            *weights = Take(kBlock * kReach);
    float *scores = TakeFp32(kBlock * kReach), *sums = TakeFp32(padded_ * size_);
    CopyRows(HeadAt(qkv, row, KeyColumn(group)), row, rows);
    PackTransposed(rows, keys);
    CopyRows(HeadAt(qkv, row, ValueColumn(group)), row, rows);
    PackRows(rows, values);
    for (int64_t head = group * heads_a_group(); head < (group + 1) * heads_a_group(); ++head) {
      CopyRows(HeadAt(qkv, row, head * size_), row, rows);
      std::fill_n(sums, padded_ * size_, 0.0f);
      for (int64_t query = 0; query < padded_; query += kBlock) {
        float largest[kBlock], total[kBlock] = {}, *block_sums = sums + query * size_;
        std::fill_n(largest, kBlock, -1e30f);
        const int64_t end = EndOfKeys(query);
        for (int64_t key = FirstKey(query); key < end; key += kReach) {
          const int64_t columns = std::min(kReach, end - key), diagonal = query - key;
          // Padding comes after all that a query under a causal mask sees.
          const int64_t first = window_ == 0 ? -kBlock : diagonal + 1 - window_,
                        seen = causal_        ? diagonal + 1
                               : window_ == 0 ? columns
                                              : diagonal + window_,
                        seen_end = causal_ ? columns : std::min(columns, length_ - key);
          Scores(rows + query * size_ * element_bytes_, keys, key, columns, scores);
          BestKernels().attention_softmax(work_codec_, scores, kReach, kBlock, columns, first, seen, seen_end,
                                          scale_, largest, total, block_sums, size_, weights);
          AddWeighted(weights, kReach, values, key, columns, block_sums);
        }
        for (int64_t r = 0; r < std::min(kBlock, length_ - query); ++r) {
          for (int64_t c = 0; c < size_; ++c) block_sums[r * size_ + c] /= total[r];
          lse_hn[head * shape_.num_tokens + begin_ + query + r] = largest[r] + std::log(total[r]);
        }
      }
      StoreRows(sums, HeadAt(out_nhk, out_row, head * size_), out_row);
    }
  }
};

class BackwardTask : SpanTask {
 public:
  using SpanTask::SpanTask;

  void Run(const void* d_out_nhk, const void* qkv, const void* out_nhk, const float* lse_hn, int64_t group,
           void* d_qkv) {
    const int64_t row = shape_.row(), out_row = shape_.num_heads * size_;
    const int64_t elements = padded_ * size_;
    uint8_t *keys = Take(elements), *packed_keys = Take(elements), *values = Take(elements),
            *queries = Take(elements), *packed_queries = Take(elements), *queries_t = Take(elements),
            *d_out = Take(elements), *packed_d_out = Take(elements), *d_out_t = Take(elements);
    float *d_keys = TakeFp32(elements), *d_values = TakeFp32(elements), *d_queries = TakeFp32(elements);
    float *lse = TakeFp32(padded_), *delta = TakeFp32(padded_);
    CopyRows(HeadAt(qkv, row, KeyColumn(group)), row, keys);
    PackRows(keys, packed_keys);
    CopyRows(HeadAt(qkv, row, ValueColumn(group)), row, values);
    std::fill_n(d_keys, elements, 0.0f);
    std::fill_n(d_values, elements, 0.0f);
    for (int64_t head = group * heads_a_group(); head < (group + 1) * heads_a_group(); ++head) {
      CopyRows(HeadAt(qkv, row, head * size_), row, queries);
      PackRows(queries, packed_queries);
      PackTransposed(queries, queries_t);
      const void* head_d_out = HeadAt(d_out_nhk, out_row, head * size_);
      CopyRows(head_d_out, out_row, d_out);
      PackRows(d_out, packed_d_out);
      PackTransposed(d_out, d_out_t);
      BestKernels().row_dots(codec_, head_d_out, HeadAt(out_nhk, out_row, head * size_), out_row, size_,
                             length_, delta);
      std::copy_n(lse_hn + head * shape_.num_tokens + begin_, length_, lse);
      std::fill(lse + length_, lse + padded_, kNever);
      std::fill(delta + length_, delta + padded_, 0.0f);
      std::fill_n(d_queries, elements, 0.0f);
      for (int64_t key = 0; key < padded_; key += kBlock) {
        const int64_t end = EndOfQueries(key);
        for (int64_t query = FirstQuery(key); query < end; query += kReach) {
          const int64_t columns = std::min(kReach, end - query);
          Scores(keys + key * size_ * element_bytes_, queries_t, query, columns, scores_);
          Scores(values + key * size_ * element_bytes_, d_out_t, query, columns, d_weights_);
          ScoreGradients(key, query, columns, lse + query, delta + query);
          AddWeighted(weights_, kReach, packed_d_out, query, columns, d_values + key * size_);
          AddWeighted(d_scores_, kReach, packed_queries, query, columns, d_keys + key * size_);
          for (int64_t c = 0; c < columns; c += kBlock) {
            TransposeBlock(d_scores_ + c * element_bytes_);
            AddWeighted(d_scores_t_, kBlock, packed_keys, key, kBlock, d_queries + (query + c) * size_);
          }
        }
      }
      StoreRows(d_queries, HeadAt(d_qkv, row, head * size_), row);
    }
    StoreRows(d_keys, HeadAt(d_qkv, row, KeyColumn(group)), row);
    StoreRows(d_values, HeadAt(d_qkv, row, ValueColumn(group)), row);
  }

 private:
  /// weights_ and d_scores_ of a block of keys and the queries from `query` on.
  void ScoreGradients(int64_t key, int64_t query, int64_t columns, const float* lse, const float* delta) {
    const int64_t diagonal = key - query;
    const int64_t first = causal_        ? diagonal
                          : window_ == 0 ? -kBlock
                                         : diagonal + 1 - window_,
                  end = window_ == 0 ? columns : diagonal + window_;
    // Padding comes after all queries, which see none of it under a causal mask.
    const int64_t rows = causal_ ? kBlock : std::min(kBlock, length_ - key);
    const auto run = [&](int64_t row, int64_t count, int64_t first_column, int64_t end_column) {
      BestKernels().attention_gradient(work_codec_, scores_ + row * kReach, d_weights_ + row * kReach, kReach,
                                       count, columns, first_column, end_column, scale_, lse, delta,
                                       weights_ + row * kReach * element_bytes_,
                                       d_scores_ + row * kReach * element_bytes_);
    };
    run(0, rows, first, end);
    if (rows < kBlock) run(rows, kBlock - rows, -kBlock, -kBlock);
  }
  /// A block of d_scores_, whose rows are keys, with queries as rows.
  void TransposeBlock(const uint8_t* block) {
    if (bf16_) {
      BestKernels().transpose_pairs(reinterpret_cast<const uint16_t*>(block), kReach, kBlock, kBlock,
                                    reinterpret_cast<uint32_t*>(d_scores_t_), kBlock / 2);
    } else {
      BestKernels().transpose(reinterpret_cast<const uint32_t*>(block), kReach, kBlock, kBlock,
                              reinterpret_cast<uint32_t*>(d_scores_t_), kBlock);
    }
  }

  float *scores_ = TakeFp32(kBlock * kReach), *d_weights_ = TakeFp32(kBlock * kReach);
  uint8_t *weights_ = Take(kBlock * kReach), *d_scores_ = Take(kBlock * kReach),
          *d_scores_t_ = Take(kBlock * kBlock);
};

}  // namespace

bool HasBlockAttention(Codec codec, int64_t head_dim) {
  return (codec == Codec::kFp32 || codec == Codec::kBf16) && head_dim % kDepthUnit == 0 &&
         HasMicroKernels(codec == Codec::kBf16 && !WidensBf16());
}

void BlockAttention(Codec codec, const void* qkv, const AttentionShape& shape, const AttentionTask& task,
                    void* out_nhk, float* lse_hn) {
  ForwardTask(codec, shape, task).Run(qkv, task.group, out_nhk, lse_hn);
}

void BlockAttentionBackward(Codec codec, const void* d_out_nhk, const void* qkv, const void* out_nhk,
                            const float* lse_hn, const AttentionShape& shape, const AttentionTask& task,
                            void* d_qkv) {
  BackwardTask(codec, shape, task).Run(d_out_nhk, qkv, out_nhk, lse_hn, task.group, d_qkv);
}

}  // namespace trainwright::cpu

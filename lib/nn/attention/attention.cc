#include "lib/nn/attention/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/attention/block_attention.h"
#include "lib/nn/attention/torch_attention.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/linear/micro_kernel.h"

namespace trainwright {
namespace {

/// Spans up to this length are attended row by row, many at once: blocks have a fixed cost (torch's some 50
/// microseconds a call) and gain on longer ones only.
constexpr int64_t kShortSpan = 64;

struct Spans {
  std::vector<cpu::AttentionTask> short_tasks;  // every group of every span that is computed row by row
  std::vector<cpu::AttentionTask> block_tasks;  // every group of every long span, where blocks of our own do
  std::vector<cpu::AttentionTask> torch_spans;  // the long spans elsewhere; group unused
  int64_t longest_short = 0;
};

Spans Classify(const Numerics& numerics, const AttentionShape& shape,
               const std::vector<int32_t>& span_starts) {
  const bool blocks = cpu::HasBlockAttention(cpu::CodecOf(numerics), shape.head_dim);
  Spans spans;
  for (size_t s = 0; s + 1 < span_starts.size(); ++s) {
    const int64_t begin = span_starts[s], end = span_starts[s + 1];
    if (end == begin) continue;
    const bool windowed = shape.window != 0 && end - begin > shape.window;  // torch's kernel has no windows
    const bool is_long = end - begin > kShortSpan && (blocks || !windowed);
    if (is_long && !blocks) {
      spans.torch_spans.push_back({begin, end, 0});
      continue;
    }
    if (!is_long) spans.longest_short = std::max(spans.longest_short, end - begin);
    for (int64_t group = 0; group < shape.num_kv_heads; ++group) {
      (is_long ? spans.block_tasks : spans.short_tasks).push_back({begin, end, group});
    }
  }
  return spans;
}

/// Views of one span as torch's kernel takes them: groups are its batch, the query heads of a group its
/// heads, and key and value heads are repeated by a stride of zero.
struct SpanViews {
  at::Tensor q_grtk, k_grtk, v_grtk;
};

SpanViews ViewSpan(const AttentionShape& shape, const at::Tensor& qkv, const cpu::AttentionTask& span) {
  const int64_t length = span.end - span.begin, groups = shape.num_kv_heads, size = shape.head_dim;
  const int64_t repeats = shape.num_heads / groups, row = shape.row(), begin = span.begin * row;
  SpanViews views;
  const std::vector<int64_t> sizes = {groups, repeats, length, size};
  views.q_grtk = qkv.as_strided(sizes, {repeats * size, size, row, 1}, begin);
  views.k_grtk = qkv.as_strided(sizes, {size, 0, row, 1}, begin + shape.num_heads * size);
  views.v_grtk = qkv.as_strided(sizes, {size, 0, row, 1}, begin + (shape.num_heads + groups) * size);
  return views;
}

/// A span's rows of an [N, H K] tensor as [G, R, T, K].
at::Tensor ViewHeads(const AttentionShape& shape, const at::Tensor& tensor, const cpu::AttentionTask& span) {
  const int64_t repeats = shape.num_heads / shape.num_kv_heads, size = shape.head_dim,
                row = shape.num_heads * size;
  return tensor.as_strided({shape.num_kv_heads, repeats, span.end - span.begin, size},
                           {repeats * size, size, row, 1}, span.begin * row);
}

/// A span's columns of lse [H, N] as [G, R, T].
at::Tensor ViewLse(const AttentionShape& shape, const at::Tensor& lse_hn, const cpu::AttentionTask& span) {
  const int64_t repeats = shape.num_heads / shape.num_kv_heads;
  return lse_hn.as_strided({shape.num_kv_heads, repeats, span.end - span.begin},
                           {repeats * shape.num_tokens, shape.num_tokens, 1}, span.begin);
}

/// One query row against the cache as two batched products, in fp32.
void DecodeByProducts(const AttentionShape& shape, const at::Tensor& query, const at::Tensor& keys_gmk,
                      const at::Tensor& values_gmk, at::Tensor& out) {
  const int64_t groups = shape.num_kv_heads, size = shape.head_dim;
  const at::Tensor q_grk = query.view({groups, shape.num_heads / groups, size}).to(at::kFloat);
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  const at::Tensor scores_grm = at::matmul(q_grk, keys_gmk.to(at::kFloat).transpose(1, 2)).mul_(scale);
  out.copy_(at::matmul(at::softmax(scores_grm, 2), values_gmk.to(at::kFloat)).view({shape.num_heads * size}));
}

template <typename Function>
void ForShortTasks(const AttentionShape& shape, const Spans& spans, const Function& function) {
  const auto count = static_cast<int64_t>(spans.short_tasks.size());
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(cpu::AttentionScratch(spans.longest_short, shape.head_dim));
    for (int64_t task = begin; task < end; ++task) function(spans.short_tasks[task], scratch.data());
  });
}

template <typename Function>
void ForBlockTasks(cpu::Codec codec, const Spans& spans, const Function& function) {
  const auto count = static_cast<int64_t>(spans.block_tasks.size());
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) function(spans.block_tasks[task]);
    cpu::ReleaseMicroKernels(codec == cpu::Codec::kBf16);
  });
}

}  // namespace

void PackedAttention(const Numerics& numerics, const AttentionShape& shape, const at::Tensor& qkv,
                     const SpanTable& table, at::Tensor& out_nhk, at::Tensor& lse_hn) {
  const ProfileScope scope("attention", ProfilePart::kAttention);
  const AttentionBackend backend = AttentionBackendOf(numerics, shape, table, qkv.device());
  if (backend != AttentionBackend::kAuto && !qkv.is_meta()) {
    return TorchAttention(backend, shape, qkv, table, out_nhk, lse_hn);
  }
  EnsureAttentionResult(shape, qkv, out_nhk, lse_hn);
  if (qkv.is_meta()) return;  // nothing to compute
  const Spans spans = Classify(numerics, shape, table.starts);
  for (const cpu::AttentionTask& span : spans.torch_spans) {
    const SpanViews views = ViewSpan(shape, qkv, span);
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        views.q_grtk, views.k_grtk, views.v_grtk,
        /*dropout_p=*/0.0, shape.mask == AttentionMask::kCausal);
    ViewHeads(shape, out_nhk, span).copy_(out);
    ViewLse(shape, lse_hn, span).copy_(lse);
  }
  if (numerics.emulated() && !spans.torch_spans.empty()) RoundInto(numerics, out_nhk, out_nhk);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void* in = qkv.const_data_ptr();
  void* out = out_nhk.mutable_data_ptr();
  float* lse = lse_hn.mutable_data_ptr<float>();
  ForShortTasks(shape, spans, [&](const cpu::AttentionTask& task, float* scratch) {
    cpu::BestKernels().attention(codec, in, shape, task, out, lse, scratch);
  });
  ForBlockTasks(codec, spans, [&](const cpu::AttentionTask& task) {
    cpu::BlockAttention(codec, in, shape, task, out, lse);
  });
}

void PackedAttentionBackward(const Numerics& numerics, const AttentionShape& shape,
                             const at::Tensor& d_out_nhk, const at::Tensor& qkv, const at::Tensor& out_nhk,
                             const at::Tensor& lse_hn, const SpanTable& table, at::Tensor& d_qkv,
                             const RopeRows* rope) {
  const ProfileScope scope("attention_backward", ProfilePart::kAttention);
  const AttentionBackend backend = AttentionBackendOf(numerics, shape, table, qkv.device());
  if (qkv.is_meta()) return;
  if (backend != AttentionBackend::kAuto) {
    return TorchAttentionBackward(backend, numerics, shape, d_out_nhk, qkv, out_nhk, lse_hn, table, d_qkv,
                                  rope);
  }
  const Spans spans = Classify(numerics, shape, table.starts);
  const int64_t groups = shape.num_kv_heads, size = shape.head_dim, row = shape.row();
  for (const cpu::AttentionTask& span : spans.torch_spans) {
    const SpanViews views = ViewSpan(shape, qkv, span);
    const auto [d_q, d_k, d_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        ViewHeads(shape, d_out_nhk, span), views.q_grtk, views.k_grtk, views.v_grtk,
        ViewHeads(shape, out_nhk, span), ViewLse(shape, lse_hn, span), /*dropout_p=*/0.0,
        shape.mask == AttentionMask::kCausal);
    ViewSpan(shape, d_qkv, span).q_grtk.copy_(d_q);
    const std::vector<int64_t> sizes = {groups, span.end - span.begin, size};
    const int64_t keys = span.begin * row + shape.num_heads * size;
    d_qkv.as_strided(sizes, {size, row, 1}, keys).copy_(d_k.sum(1));
    d_qkv.as_strided(sizes, {size, row, 1}, keys + groups * size).copy_(d_v.sum(1));
  }
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const void *d_out = d_out_nhk.const_data_ptr(), *in = qkv.const_data_ptr(), *out = out_nhk.const_data_ptr();
  const float* lse = lse_hn.const_data_ptr<float>();
  void* result = d_qkv.mutable_data_ptr();
  ForShortTasks(shape, spans, [&](const cpu::AttentionTask& task, float* scratch) {
    cpu::BestKernels().attention_backward(codec, d_out, in, out, lse, shape, task, result, scratch);
  });
  ForBlockTasks(codec, spans, [&](const cpu::AttentionTask& task) {
    cpu::BlockAttentionBackward(codec, d_out, in, out, lse, shape, task, result);
  });
  if (rope != nullptr) ApplyRope(numerics, *rope, shape, /*backward=*/true, d_qkv);
}

void FillCache(const AttentionShape& shape, const at::Tensor& qkv, const std::vector<CachePlace>& places,
               at::Tensor& keys_bgmk, at::Tensor& values_bgmk) {
  const int64_t groups = shape.num_kv_heads, queries = shape.num_heads * shape.head_dim;
  const int64_t cached = groups * shape.head_dim;
  if (qkv.is_cpu()) {
    const int64_t size = qkv.element_size(), bytes = shape.head_dim * size;
    auto *keys = static_cast<char*>(keys_bgmk.mutable_data_ptr()),
         *values = static_cast<char*>(values_bgmk.mutable_data_ptr());
    for (size_t row = 0; row < places.size(); ++row) {
      const auto* key = static_cast<const char*>(qkv.const_data_ptr()) +
                        (static_cast<int64_t>(row) * qkv.stride(0) + queries) * size;
      for (int64_t group = 0; group < groups; ++group, key += bytes) {
        const int64_t at = (places[row].sequence * keys_bgmk.stride(0) + group * keys_bgmk.stride(1)) * size +
                           places[row].position * bytes;
        std::memcpy(keys + at, key, static_cast<size_t>(bytes));
        std::memcpy(values + at, key + cached * size, static_cast<size_t>(bytes));
      }
    }
    return;
  }
  for (size_t first = 0; first < places.size();) {
    size_t end = first + 1;  // rows that follow each other in one sequence
    while (end < places.size() && places[end].sequence == places[first].sequence) ++end;
    const auto begin = static_cast<int64_t>(first), count = static_cast<int64_t>(end - first);
    const auto copy = [&](at::Tensor& cache_bgmk, int64_t column) {
      cache_bgmk[places[first].sequence]
          .narrow(1, places[first].position, count)
          .copy_(qkv.narrow(0, begin, count)
                     .narrow(1, column, cached)
                     .unflatten(1, {groups, shape.head_dim})
                     .transpose(0, 1));
    };
    copy(keys_bgmk, queries);
    copy(values_bgmk, queries + cached);
    first = end;
  }
}

void DecodeAttention(const Numerics& numerics, const AttentionShape& shape, const at::Tensor& qkv,
                     const std::vector<CachePlace>& places, const at::Tensor& keys_bgmk,
                     const at::Tensor& values_bgmk, at::Tensor& out_nhk) {
  TRAINWRIGHT_CHECK(shape.mask == AttentionMask::kCausal);  // what follows is not there yet
  const auto rows = static_cast<int64_t>(places.size());
  if (!out_nhk.defined()) {
    out_nhk = at::empty({shape.num_tokens, shape.num_heads * shape.head_dim}, qkv.options());
  }
  if (rows < out_nhk.size(0)) out_nhk.narrow(0, rows, out_nhk.size(0) - rows).zero_();
  const auto seen = [&](const CachePlace& place) {
    const int64_t all = place.position + 1;
    return shape.window == 0 ? all : std::min(shape.window, all);
  };
  if (!qkv.is_cpu()) {
    for (int64_t row = 0; row < rows; ++row) {
      const CachePlace& place = places[static_cast<size_t>(row)];
      const int64_t length = seen(place), first = place.position + 1 - length;
      at::Tensor out = out_nhk[row];
      DecodeByProducts(shape, qkv[row].narrow(0, 0, shape.num_heads * shape.head_dim),
                       keys_bgmk[place.sequence].narrow(1, first, length),
                       values_bgmk[place.sequence].narrow(1, first, length), out);
    }
    return;
  }
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const int64_t size = qkv.element_size();
  const auto *queries = static_cast<const char*>(qkv.const_data_ptr()),
             *keys = static_cast<const char*>(keys_bgmk.const_data_ptr()),
             *values = static_cast<const char*>(values_bgmk.const_data_ptr());
  auto* results = static_cast<char*>(out_nhk.mutable_data_ptr());
  int64_t longest = 1;
  for (const CachePlace& place : places) longest = std::max(longest, seen(place));
  const int64_t head_stride = keys_bgmk.stride(1);
  // A task is a head of a row.
  const int64_t heads = shape.num_heads;
  at::parallel_for(0, rows * heads, 65536 / (longest * shape.head_dim) + 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(cpu::DecodeScratch(longest, shape.head_dim)));
    for (int64_t task = begin; task < end;) {
      const int64_t row = task / heads, first = task % heads, last = std::min(heads, first + end - task);
      const CachePlace& place = places[static_cast<size_t>(row)];
      const int64_t length = seen(place);
      const int64_t at =
          (place.sequence * keys_bgmk.stride(0) + (place.position + 1 - length) * shape.head_dim) * size;
      cpu::BestKernels().attention_decode(
          codec, queries + row * qkv.stride(0) * size, keys + at, values + at, head_stride, length, shape,
          results + row * out_nhk.stride(0) * size, scratch.data(), first, last);
      task += last - first;
    }
  });
}

}  // namespace trainwright

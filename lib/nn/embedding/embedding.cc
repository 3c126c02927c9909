#include "lib/nn/embedding/embedding.h"

#include <ATen/ops/index_select.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {

namespace {

cpu::Codec CodecOfType(at::ScalarType type) {
  TRAINWRIGHT_CHECK(type == at::kFloat || type == at::kBFloat16);
  return type == at::kFloat ? cpu::Codec::kFp32 : cpu::Codec::kBf16;
}

/// Whether a kernel takes the rows of the table to a stream; else torch does.
bool HasKernel(const at::Tensor& table_vd, const at::Tensor& out_nd) {
  return table_vd.scalar_type() == at::kFloat &&
         (out_nd.scalar_type() == at::kFloat || out_nd.scalar_type() == at::kBFloat16);
}

/// cpu::Kernels::embed or add_embedding, over all rows.
template <typename Kernel>
void OnCpu(Kernel kernel, cpu::Codec stream, const at::Tensor& table_vd, const at::Tensor& indices_n,
           at::Tensor& out_nd) {
  const int64_t width = table_vd.size(1);
  const float* table = table_vd.const_data_ptr<float>();
  const int64_t* indices = indices_n.const_data_ptr<int64_t>();
  void* out = out_nd.mutable_data_ptr();
  cpu::ParallelRows(out_nd.size(0), width, [&](int64_t begin, int64_t end) {
    kernel(stream, table, indices, width, out, begin, end);
  });
}

/// Whether fp32 storage holds a stream of rounded values.
bool EmulatesStream(const Numerics& numerics) {
  return numerics.residual != Precision::kFp32 && numerics.emulated();
}

}  // namespace

void Embed(const at::Tensor& table_vd, const at::Tensor& tokens_n, at::Tensor& out_nd) {
  const ProfileScope scope("embed", ProfilePart::kEmbedding);
  if (out_nd.is_meta()) return;  // nothing to compute
  if (table_vd.scalar_type() == out_nd.scalar_type() && table_vd.is_cpu()) {
    at::index_select_out(out_nd, table_vd, 0, tokens_n);
  } else if (table_vd.scalar_type() != out_nd.scalar_type() && !HasKernel(table_vd, out_nd)) {
    out_nd.copy_(at::index_select(table_vd, 0, tokens_n));
  } else if (!table_vd.is_cpu()) {
    ops::Embed(table_vd, tokens_n, out_nd);
  } else {
    OnCpu(cpu::BestKernels().embed, CodecOfType(out_nd.scalar_type()), table_vd, tokens_n, out_nd);
  }
}

void Embed(const Numerics& numerics, const at::Tensor& table_vd, const at::Tensor& tokens_n,
           at::Tensor& stream_nd) {
  Embed(table_vd, tokens_n, stream_nd);
  if (EmulatesStream(numerics)) RoundInto(numerics, stream_nd, stream_nd);
}

void AddEmbedding(const at::Tensor& table_vd, const at::Tensor& indices_n, at::Tensor& out_nd) {
  const ProfileScope scope("add_embedding", ProfilePart::kEmbedding);
  if (out_nd.is_meta()) return;  // nothing to compute
  if (!HasKernel(table_vd, out_nd)) {
    out_nd.add_(at::index_select(table_vd, 0, indices_n));  // which sums short numbers in fp32, too
    return;
  }
  if (!table_vd.is_cpu()) return ops::AddEmbedding(table_vd, indices_n, out_nd);
  OnCpu(cpu::BestKernels().add_embedding, CodecOfType(out_nd.scalar_type()), table_vd, indices_n, out_nd);
}

void AddEmbedding(const Numerics& numerics, const at::Tensor& table_vd, const at::Tensor& indices_n,
                  at::Tensor& stream_nd) {
  AddEmbedding(table_vd, indices_n, stream_nd);
  if (EmulatesStream(numerics)) RoundInto(numerics, stream_nd, stream_nd);
}

void EmbedBackward(const at::Tensor& d_out_nd, const at::Tensor& tokens_n, at::Tensor& d_table_vd) {
  const ProfileScope scope("embed_backward", ProfilePart::kEmbedding);
  if (!d_out_nd.is_cpu()) return ops::EmbedBackward(d_out_nd, tokens_n, d_table_vd);
  const int64_t rows = d_out_nd.size(0), width = d_out_nd.size(1);
  const cpu::Codec stream = CodecOfType(d_out_nd.scalar_type());
  const void* d_out = d_out_nd.const_data_ptr();
  const int64_t* tokens = tokens_n.const_data_ptr<int64_t>();
  float* d_table = d_table_vd.mutable_data_ptr<float>();
  // A thread owns columns, not rows: equal tokens meet in one thread, in order. A cache line has 16 columns.
  const int64_t strips = (width + 15) / 16;
  at::parallel_for(0, strips, 1, [&](int64_t begin, int64_t end) {
    cpu::BestKernels().embedding_backward(stream, d_out, tokens, rows, width, d_table, begin * 16,
                                          std::min(width, end * 16));
  });
}

}  // namespace trainwright

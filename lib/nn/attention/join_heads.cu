// The gradients that attention returns, each in memory of its own, side by side as those of packed
// projections, and turned back by rope on the way: one pass over them instead of two.
#include "lib/nn/cuda/device_code.cuh"
#include "lib/nn/cuda/launch.h"
#include "lib/nn/position/turn_pairs.cuh"

namespace trainwright::cuda {
namespace {

constexpr int kThreads = 128;
/// Elements of a 16-byte access of the short types.
constexpr int kPack = 8;

/// Sizes in elements; `turning` of the heads turn in their first 2 `half` elements.
struct Layout {
  int num_heads, num_kv_heads, head_dim, half, turning;
};

template <typename T>
__device__ inline const T* HeadOf(const HeadsInMemory& part, int64_t row, int head) {
  return static_cast<const T*>(part.data) + row * part.row_stride + head * part.head_stride;
}

/// Of queries, keys and values in their order.
template <typename T>
__device__ inline const T* HeadOf(const HeadsInMemory& q, const HeadsInMemory& k, const HeadsInMemory& v,
                                  const Layout& layout, int64_t row, int head) {
  if (head < layout.num_heads) return HeadOf<T>(q, row, head);
  head -= layout.num_heads;
  return head < layout.num_kv_heads ? HeadOf<T>(k, row, head) : HeadOf<T>(v, row, head - layout.num_kv_heads);
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    JoinHeadsKernel(HeadsInMemory q, HeadsInMemory k, HeadsInMemory v, Layout layout,
                    const int64_t* __restrict__ positions, const float* __restrict__ cosines,
                    const float* __restrict__ sines, T* __restrict__ qkv) {
  const int64_t row = blockIdx.x;
  const int heads = layout.num_heads + 2 * layout.num_kv_heads, head_dim = layout.head_dim,
            half = layout.half;
  T* to = qkv + row * heads * head_dim;
  const int packs = half / N;
  const int64_t angle = layout.turning > 0 ? positions[row] * half : 0;
  for (int item = static_cast<int>(threadIdx.x); item < layout.turning * packs; item += kThreads) {
    const int head = item / packs, i = item % packs * N;
    const T* from = HeadOf<T>(q, k, v, layout, row, head) + i;
    float a[N], b[N], cosine[N], sine[N];
    LoadPack<N>(from, a);
    LoadPack<N>(from + half, b);
    LoadPack<N>(cosines + angle + i, cosine);
    LoadPack<N>(sines + angle + i, sine);
    TurnPairs<N>(cosine, sine, /*sign=*/-1, a, b);
    StorePack<N>(a, to + head * head_dim + i);
    StorePack<N>(b, to + head * head_dim + i + half);
  }
  for (int item = static_cast<int>(threadIdx.x) * N; item < heads * head_dim; item += kThreads * N) {
    const int head = item / head_dim, i = item % head_dim;
    if (head < layout.turning && i < 2 * half) continue;
    *reinterpret_cast<Pack<T, N>*>(to + item) =
        *reinterpret_cast<const Pack<T, N>*>(HeadOf<T>(q, k, v, layout, row, head) + i);
  }
}

bool IsWide(const HeadsInMemory& part) {
  return Aligned(part.data) && part.row_stride % kPack == 0 && part.head_stride % kPack == 0;
}

}  // namespace

cudaError_t JoinHeads(Storage storage, const HeadsInMemory& q, const HeadsInMemory& k, const HeadsInMemory& v,
                      int64_t rows, int64_t num_heads, int64_t num_kv_heads, int64_t head_dim,
                      const int64_t* positions, const float* cosines, const float* sines, int64_t half,
                      void* qkv, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const Layout layout = {static_cast<int>(num_heads), static_cast<int>(num_kv_heads),
                         static_cast<int>(head_dim), static_cast<int>(half),
                         half > 0 ? static_cast<int>(num_heads + num_kv_heads) : 0};
  const bool wide = half % kPack == 0 && head_dim % kPack == 0 && IsWide(q) && IsWide(k) && IsWide(v) &&
                    Aligned(qkv) && Aligned(cosines) && Aligned(sines);
  return WithStorage(storage, [&]<typename T>() {
    const auto launch = [&](auto kernel) {
      return Launch(kernel, static_cast<unsigned>(rows), kThreads, stream, q, k, v, layout, positions,
                    cosines, sines, static_cast<T*>(qkv));
    };
    return wide ? launch(JoinHeadsKernel<T, kPack>) : launch(JoinHeadsKernel<T, 1>);
  });
}

}  // namespace trainwright::cuda

#include "lib/probe/memory_ceiling.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>

#include "lib/base/error.h"
#include "lib/base/units.h"

namespace trainwright {
namespace {

constexpr int64_t kMiB = 1 << 20;

/// Runs the same part of every array on the same thread, so that its pages lie near it.
void ForParts(int threads, int64_t count, const std::function<void(int64_t begin, int64_t end)>& part) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    part(count * thread / threads, count * (thread + 1) / threads);
  }
}

float SumOf(const float* values, int64_t begin, int64_t end) {
  // Chains of their own, so that the latency of an addition does not bound the reading.
  constexpr int kChains = 64;
  float sums[kChains] = {};
  int64_t i = begin;
  for (; i + kChains <= end; i += kChains) {
    for (int chain = 0; chain < kChains; ++chain) sums[chain] += values[i + chain];
  }
  for (; i < end; ++i) sums[0] += values[i];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

int64_t MemoryArrayBytes(int64_t last_level_cache_bytes, int64_t available_bytes) {
  const int64_t wanted = std::clamp(4 * last_level_cache_bytes, 32 * kMiB, 256 * kMiB);
  return available_bytes > 0 ? std::max(kMiB, std::min(wanted, available_bytes / 16)) : wanted;
}

std::vector<Measurement> MeasureMemory(int threads, const MemoryBudget& budget) {
  TRAINWRIGHT_CHECK(threads >= 1);
  const int64_t count = budget.array_bytes / static_cast<int64_t>(sizeof(float));
  const std::unique_ptr<float[]> a(new float[static_cast<size_t>(count)]),
      b(new float[static_cast<size_t>(count)]), c(new float[static_cast<size_t>(count)]);
  ForParts(threads, count, [&](int64_t begin, int64_t end) {
    std::fill(a.get() + begin, a.get() + end, 0.0f);
    std::fill(b.get() + begin, b.get() + end, 1.0f);
    std::fill(c.get() + begin, c.get() + end, 2.0f);
  });

  std::atomic<float> kept = 0;  // what is never used might never be read
  const auto copy = [&](int64_t begin, int64_t end) {
    std::memcpy(a.get() + begin, b.get() + begin, static_cast<size_t>(end - begin) * sizeof(float));
  };
  const auto read = [&](int64_t begin, int64_t end) {
    kept.store(SumOf(b.get(), begin, end), std::memory_order_relaxed);
  };
  const auto triad = [&](int64_t begin, int64_t end) {
    float* const to = a.get();
    const float *const from = b.get(), *const scaled = c.get();
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] + 3.0f * scaled[i];
  };
  struct Pass {
    const char* what;
    double arrays;
    std::function<void(int64_t, int64_t)> part;
  };
  std::vector<Measurement> measured;
  for (const Pass& pass :
       {Pass{"memory_copy", 2, copy}, Pass{"memory_read", 1, read}, Pass{"memory_triad", 3, triad}}) {
    Measurement one{.what = pass.what, .device = "cpu", .method = "stream"};
    one.size = FormatBytes(static_cast<uint64_t>(budget.array_bytes)) + " an array";
    one.threads = threads;
    one.unit = "byte/s";
    one.rate = MeasureRate({.amount = pass.arrays * static_cast<double>(count) * sizeof(float),
                            .run = [&] { ForParts(threads, count, pass.part); },
                            .finish = {}},
                           {.time_s = budget.time_s, .warmup_s = budget.time_s / 4});
    measured.push_back(std::move(one));
  }
  return measured;
}

}  // namespace trainwright

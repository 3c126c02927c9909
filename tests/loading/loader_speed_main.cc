// Times what `train` reads its samples with, on shards in the page cache: scripts/compare/loader.sh and
// rank_loader.sh.
//
// usage: loader_speed SHARDS SEQ BATCH TOKENS [WORKERS [BLOCK_CHUNKS [CACHE_MIB [RANKS]]]]
//
// Reads steps of BATCH samples of at most SEQ tokens a rank, shuffled, and makes the first rank's micro-batch
// of each, until the steps hold TOKENS tokens, after as many that are not counted as an epoch has but at most
// TOKENS. Prints one JSON object: tokens of the steps and of the micro-batches, CPU and wall seconds, and a
// sum over all tokens, positions and labels.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/loading/sample_loaders.h"
#include "lib/loading/sample_stream.h"

namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trainwright;
  try {
    if (argc < 5) throw Error(ErrorCode::kUsage, "loader_speed", "needs SHARDS SEQ BATCH TOKENS");
    const auto number = [&](int i, int64_t otherwise) { return i < argc ? std::stoll(argv[i]) : otherwise; };
    const std::unique_ptr<ShardSet> set = ShardSet::Open(argv[1]);
    SampleStreamOptions options{.sequence_tokens = number(2, 0), .seed = 1};
    options.block_chunks = static_cast<uint64_t>(number(6, 1));
    options.window_chunks *= options.block_chunks;
    LoaderOptions loader{.workers = static_cast<int>(number(5, 1))};
    loader.cache_bytes = number(7, 0) << 20;
    SampleStream stream(set.get(), options, loader);
    const int64_t batch = number(3, 0), wanted = number(4, 0), ranks = number(8, 1);

    PackedBatch micro_batch;
    uint64_t sum = 0;
    int64_t micro_batches = 0, own_tokens = 0;
    const auto read = [&](int64_t most_tokens) {
      int64_t tokens = 0;
      while (tokens < most_tokens) {
        std::vector<Sample> step = stream.NextStep(ranks * batch, false);
        for (const Sample& sample : step) tokens += sample.tokens();
        const std::vector<Sample> own = ShareOf(std::move(step), 0, ranks);
        micro_batch.Clear();
        for (const Sample& sample : own) sample.AppendTo(&micro_batch);
        own_tokens += micro_batch.num_tokens();
        for (size_t i = 0; i < micro_batch.tokens.size(); i += 64)
          sum += static_cast<uint64_t>(micro_batch.tokens[i]);
        sum += static_cast<uint64_t>(micro_batch.labels.back() + micro_batch.num_labels);
        ++micro_batches;
      }
      return tokens;
    };
    read(std::min<int64_t>(wanted, static_cast<int64_t>(set->totals().tokens)));
    micro_batches = own_tokens = 0;
    const double cpu_before = CpuSeconds();
    const auto start = std::chrono::steady_clock::now();
    const int64_t tokens = read(wanted);
    const double wall_s = SecondsSince(start), cpu_s = CpuSeconds() - cpu_before;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::cout << nlohmann::ordered_json{{"tokens", tokens},
                                        {"own_tokens", own_tokens},
                                        {"micro_batches", micro_batches},
                                        {"cpu_s", cpu_s},
                                        {"wall_s", wall_s},
                                        {"mtokens_per_cpu_s", static_cast<double>(tokens) / cpu_s * 1e-6},
                                        {"max_memory_bytes", usage.ru_maxrss * 1024},
                                        {"held_bytes", stream.loader_counts().most_held_bytes},
                                        {"sum", sum}}
                     .dump()
              << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "loader_speed: " << error.what() << "\n";
    return 1;
  }
}

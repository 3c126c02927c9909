// Times the codec on one tensor, in one thread unless told otherwise, for scripts/compare/codec.py.
//
// usage: codec_bench FILE TYPE LEVEL REPETITIONS THREADS [MATRICES [BASE]]
//
// FILE and BASE hold the elements, nothing else. TYPE is a dtype of safetensors, LEVEL fast, default or max.
// MATRICES is a file with "first rows columns" on each line, or -. Prints one JSON object: sizes, the modes
// of the planes, and for each repetition the process CPU and wall seconds of encoding, of decoding, and of a
// loop without memory, the control for two threads. Buffers are touched before the clock starts; hashing and
// verification are inside it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lib/codec/tensor_decoder.h"
#include "lib/codec/tensor_encoder.h"

namespace {

using namespace trainwright;

std::vector<uint8_t> ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Seconds {
  double cpu = 0, wall = 0;
};

template <typename Function>
Seconds Time(Function&& function) {
  const auto wall = std::chrono::steady_clock::now();
  timespec begin, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  function();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  const auto seconds = [](const timespec& t) {
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  return {seconds(end) - seconds(begin),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count()};
}

/// Calls function(block) for every block, thread t those with block % threads == t.
template <typename Function>
void ForBlocks(uint64_t blocks, int threads, Function&& function) {
  const auto work = [&](int thread) {
    const auto stride = static_cast<uint64_t>(threads);
    for (auto block = static_cast<uint64_t>(thread); block < blocks; block += stride) function(block);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
}

void Print(const char* name, const std::vector<Seconds>& times) {
  for (const char* kind : {"cpu", "wall"}) {
    std::printf(", \"%s_%s_s\": [", name, kind);
    for (size_t i = 0; i < times.size(); ++i)
      std::printf("%s%.6f", i == 0 ? "" : ", ", *kind == 'c' ? times[i].cpu : times[i].wall);
    std::printf("]");
  }
}

int Run(int argc, char** argv) {
  const std::vector<uint8_t> bytes = ReadFile(argv[1]);
  const std::string level_name = argv[3];
  const CodecLevel level = level_name == "fast"  ? CodecLevel::kFast
                           : level_name == "max" ? CodecLevel::kMax
                                                 : CodecLevel::kDefault;
  const int repetitions = std::atoi(argv[4]), threads = std::atoi(argv[5]);
  TensorView tensor{.type = ElementTypeOf(argv[2]), .bytes = bytes};
  if (argc > 6 && std::strcmp(argv[6], "-") != 0) {
    std::ifstream lines(argv[6]);
    for (MatrixPart part; lines >> part.first >> part.rows >> part.columns;) tensor.matrices.push_back(part);
  }
  std::vector<uint8_t> base;
  if (argc > 7) {
    base = ReadFile(argv[7]);
    tensor.base = base;
  }

  const size_t width = ElementBytes(tensor.type);
  std::vector<uint8_t> coded(CodedTensorBound(tensor.type, bytes.size() / width), 1);
  std::vector<uint8_t> decoded(bytes.size(), 1);
  std::vector<uint32_t> sizes;
  std::vector<Seconds> encode_times, decode_times, spin_times;
  size_t prologue_bytes = 0;
  uint64_t coded_bytes = 0;
  TensorTransform transform{};
  std::array<uint64_t, 4> modes{};
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::vector<uint8_t> prologue, index;
    size_t stride = 0;
    encode_times.push_back(Time([&] {
      const TensorEncoder encoder(tensor, level, kDefaultBlockLog2, threads);
      sizes.resize(encoder.blocks());
      prologue.assign(encoder.prologue().begin(), encoder.prologue().end());
      // Blocks lie where a raw one would: what a writer does with them is not timed.
      ForBlocks(encoder.blocks(), threads, [&](uint64_t block) {
        const size_t at = std::min(block * encoder.max_block_bytes(), coded.size());
        sizes[block] = static_cast<uint32_t>(encoder.EncodeBlock(block, std::span(coded).subspan(at)));
      });
      index = encoder.Index(sizes);
      stride = encoder.max_block_bytes();
    }));
    prologue_bytes = prologue.size();
    coded_bytes = prologue.size() + index.size();
    for (const uint32_t size : sizes) coded_bytes += size;
    decode_times.push_back(Time([&] {
      const BlockDecoder decoder(prologue, "bench", tensor.base);
      transform = decoder.transform();
      ForBlocks(decoder.blocks(), threads, [&](uint64_t block) {
        const uint64_t first = block * decoder.block_elements() * width;
        decoder.DecodeBlock(ByteSpan(coded).subspan(block * stride, sizes[block]), block, 0,
                            std::span(decoded).subspan(first, decoder.ElementsOf(block) * width));
      });
    }));
    if (decoded != bytes) {
      std::fprintf(stderr, "codec_bench: the tensor did not come back\n");
      return 1;
    }
    std::fill(decoded.begin(), decoded.end(), 1);
    if (repetition == 0) {
      const BlockDecoder decoder(prologue, "bench", tensor.base);
      for (uint64_t block = 0; block < decoder.blocks(); ++block) {
        const BlockPlanes planes =
            decoder.CheckBlock(ByteSpan(coded).subspan(block * stride, sizes[block]), block, 0);
        for (size_t p = 0; p < planes.planes; ++p) ++modes[static_cast<size_t>(planes.mode[p])];
      }
    }
    spin_times.push_back(Time([&] {
      ForBlocks(64, threads, [](uint64_t block) {
        volatile uint64_t x = block;
        for (int i = 0; i < 200'000; ++i) x = x * 5 + 1;
      });
    }));
  }
  std::printf("{\"bytes\": %zu, \"coded_bytes\": %llu, \"prologue_bytes\": %zu, \"transform\": %d",
              bytes.size(), static_cast<unsigned long long>(coded_bytes), prologue_bytes,
              static_cast<int>(transform));
  std::printf(", \"planes\": {\"raw\": %llu, \"const\": %llu, \"zstd\": %llu, \"rans\": %llu}",
              static_cast<unsigned long long>(modes[0]), static_cast<unsigned long long>(modes[1]),
              static_cast<unsigned long long>(modes[2]), static_cast<unsigned long long>(modes[3]));
  Print("encode", encode_times);
  Print("decode", decode_times);
  Print("spin", spin_times);
  std::printf("}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: codec_bench FILE TYPE LEVEL REPETITIONS THREADS [MATRICES [BASE]]\n");
    return 2;
  }
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "codec_bench: %s\n", error.what());
    return 1;
  }
}

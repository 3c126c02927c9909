// Times Tokenizer::Encode on documents in memory.
//
// usage: encode_speed TOKENIZER DOCUMENTS [PASSES [THREADS | --ids FILE]] [--reference]
//
// DOCUMENTS holds documents with a zero byte behind each. Prints one JSON object: seconds of each pass over
// them by one tokenizer object (the first is cold: nothing is remembered), bytes, tokens, and the SHA-256 of
// the ids. --ids writes them to FILE, 4 bytes each, with ffffffff after each document. --reference times what
// pretokenize --verify compares with.
//
// On one thread, the CPU time of the calls is counted. On several, which take documents in turn, the wall
// time of the pass is, and the CPU time of them all; "spin_scaling" is what these threads reach, as a
// multiple of one, when all they do is count: what the machine had to give at that time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/tok/tokenizer.h"

namespace {

// Reading the clock of a thread takes as long as encoding a hundred bytes.
constexpr size_t kTimedTogether = 64;

double CpuSeconds(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Work>
double WallSecondsOf(int threads, Work&& work) {
  const double begin = WallSeconds();
  std::vector<std::jthread> running;
  for (int thread = 0; thread < threads; ++thread) running.emplace_back(work);
  running.clear();
  return WallSeconds() - begin;
}

double SpinScaling(int threads) {
  const auto spin = [] {
    volatile uint64_t counter = 0;
    for (int i = 0; i < 100'000'000; ++i) counter = counter + 1;
  };
  const double one_s = WallSecondsOf(1, spin);
  return threads * one_s / WallSecondsOf(threads, spin);
}

std::vector<std::string_view> DocumentsOf(std::string_view text) {
  std::vector<std::string_view> documents;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    documents.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return documents;
}

/// The wall time and the CPU time of each pass.
void TimeThreads(const trainwright::Tokenizer& tokenizer, const std::vector<std::string_view>& documents,
                 int passes, int threads, nlohmann::ordered_json* report) {
  for (int pass = 0; pass < passes; ++pass) {
    std::atomic<size_t> next = 0;
    std::atomic<uint64_t> tokens = 0;
    const double cpu_before = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    (*report)["wall_s"].push_back(WallSecondsOf(threads, [&] {
      std::vector<uint32_t> ids;
      for (size_t i = next++; i < documents.size(); i = next++) {
        ids.clear();
        tokenizer.Encode(documents[i], &ids);
        tokens += ids.size();
      }
    }));
    (*report)["cpu_s"].push_back(CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before);
    (*report)["tokens"] = tokens.load();
  }
  (*report)["spin_scaling"] = SpinScaling(threads);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trainwright;
  try {
    if (argc < 3) throw Error(ErrorCode::kUsage, "encode_speed", "needs a tokenizer and documents");
    const double load_begin = CpuSeconds();
    auto tokenizer = LoadTokenizer(argv[1]);
    const bool by_reference = std::string_view(argv[argc - 1]) == "--reference";
    const auto original = by_reference ? std::exchange(tokenizer, tokenizer->MakeReference()) : nullptr;
    if (by_reference) --argc;
    if (tokenizer == nullptr) throw Error(ErrorCode::kUsage, "--reference", "there is none");
    const double load_s = CpuSeconds() - load_begin;
    const std::vector<uint8_t> content = ReadWholeFile(argv[2], uint64_t{4} << 30);
    const std::string_view text = AsText(content);
    const int passes = argc > 3 ? std::stoi(argv[3]) : 3;
    nlohmann::ordered_json report = {{"load_s", load_s}};
    const std::vector<std::string_view> documents = DocumentsOf(text);
    const bool writes_ids = argc > 5 && std::string_view(argv[4]) == "--ids";
    const bool on_threads = argc > 4 && !writes_ids;
    const int threads = on_threads ? std::stoi(argv[4]) : 1;
    uint64_t bytes = 0;
    for (const std::string_view document : documents) bytes += document.size();
    report.update({{"documents", documents.size()}, {"bytes", bytes}});
    if (on_threads) TimeThreads(*tokenizer, documents, passes, threads, &report);
    std::vector<uint32_t> ids, all;
    std::vector<size_t> ends;
    for (int pass = 0; pass < passes && !on_threads; ++pass) {
      double seconds = 0;
      all.clear();
      for (size_t begin = 0; begin < documents.size(); begin += kTimedTogether) {
        const auto group =
            std::span(documents).subspan(begin, std::min(kTimedTogether, documents.size() - begin));
        ids.clear();
        ends.clear();
        const double before = CpuSeconds();
        for (const std::string_view document : group) {
          tokenizer->Encode(document, &ids);
          ends.push_back(ids.size());
        }
        seconds += CpuSeconds() - before;
        size_t from = 0;
        for (const size_t end : ends) {
          all.insert(all.end(), ids.begin() + static_cast<ptrdiff_t>(from),
                     ids.begin() + static_cast<ptrdiff_t>(end));
          all.push_back(kNoId);
          from = end;
        }
      }
      if (pass == 0) {
        const ByteSpan raw(reinterpret_cast<const uint8_t*>(all.data()), all.size() * sizeof(uint32_t));
        report.update({{"tokens", all.size() - documents.size()}, {"sha256", HexEncode(Sha256Of(raw))}});
        if (writes_ids) std::ofstream(argv[5], std::ios::binary) << AsText(raw);
      }
      report["cpu_s"].push_back(seconds);
    }
    std::cout << report.dump() << "\n";
    return 0;
  } catch (const Error& error) {
    std::cerr << "encode_speed: error: " << error.what() << "\n";
    return static_cast<int>(error.code());
  }
}

// Times Tokenizer::Encode on documents in memory, on one thread.
//
// usage: encode_speed TOKENIZER DOCUMENTS [PASSES]
//
// DOCUMENTS holds documents with a zero byte behind each. Prints one JSON object: CPU seconds of each pass
// over them by one tokenizer object (the first is cold: nothing is remembered), bytes, tokens, and the FNV-1a
// hash of the ids.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/tok/tokenizer.h"

namespace {

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace trainwright;
  try {
    if (argc < 3) throw Error(ErrorCode::kUsage, "encode_speed", "needs a tokenizer and documents");
    const double load_begin = CpuSeconds();
    const auto tokenizer = LoadTokenizer(argv[1]);
    const double load_s = CpuSeconds() - load_begin;
    const std::vector<uint8_t> content = ReadWholeFile(argv[2], uint64_t{4} << 30);
    const std::string_view text = AsText(content);
    const int passes = argc > 3 ? std::stoi(argv[3]) : 3;
    nlohmann::ordered_json report = {{"load_s", load_s}};
    std::vector<uint32_t> ids, all;
    for (int pass = 0; pass < passes; ++pass) {
      uint64_t bytes = 0, documents = 0;
      double seconds = 0;
      all.clear();
      for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\0', begin), text.size());
        const std::string_view document = text.substr(begin, end - begin);
        ids.clear();
        const double before = CpuSeconds();
        tokenizer->Encode(document, &ids);
        seconds += CpuSeconds() - before;
        all.insert(all.end(), ids.begin(), ids.end());
        all.push_back(kNoId);
        bytes += document.size();
        ++documents;
        begin = end + 1;
      }
      if (pass == 0) {
        const ByteSpan raw(reinterpret_cast<const uint8_t*>(all.data()), all.size() * sizeof(uint32_t));
        report.update({{"documents", documents},
                       {"bytes", bytes},
                       {"tokens", all.size() - documents},
                       {"sha256", HexEncode(Sha256Of(raw))}});
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

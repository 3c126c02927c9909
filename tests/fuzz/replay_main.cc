/// Runs a fuzz target over the files of folders: a corpus as an ordinary test.
#include <cstdio>
#include <filesystem>

#include "lib/io/byte_source.h"
#include "tests/fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      const std::vector<uint8_t> bytes = trainwright::ReadWholeFile(entry.path());
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;  // an empty corpus tests nothing
}

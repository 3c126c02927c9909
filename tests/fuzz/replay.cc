/// Runs a fuzz target over the files of folders: a corpus as an ordinary test.
/// usage: fuzz_replay TARGET FOLDER...
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/io/byte_source.h"

// targets.inc is a line FUZZ_TARGET(<name>) for each target of this program.
#define FUZZ_TARGET(name) extern "C" int Replay_##name(const uint8_t* data, size_t size);
#include "targets.inc"
#undef FUZZ_TARGET

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(const uint8_t*, size_t)> targets = {
#define FUZZ_TARGET(name) {#name, Replay_##name},
#include "targets.inc"
#undef FUZZ_TARGET
  };
  const auto target = targets.find(argc > 1 ? argv[1] : "");
  if (target == targets.end()) {
    std::fprintf(stderr, "no such target; there are:\n");
    for (const auto& [name, function] : targets) std::fprintf(stderr, "%s\n", name.c_str());
    return 2;
  }
  int count = 0;
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      const std::vector<uint8_t> bytes = trainwright::ReadWholeFile(entry.path());
      target->second(bytes.data(), bytes.size());
      ++count;
    }
  }
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;  // an empty corpus tests nothing
}

#include "lib/train/rank_places.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/dist/equal_facts.h"

namespace trainwright {
namespace {

constexpr size_t kNamedChunks = 8;

uint64_t HashOf(const std::vector<uint64_t>& words) {
  return Xxh3({reinterpret_cast<const uint8_t*>(words.data()), words.size() * sizeof(uint64_t)});
}

/// "3, 17"; of many the first, and what tells them from others.
std::string NamesOfChunks(const std::vector<uint64_t>& chunks) {
  std::string names;
  for (size_t i = 0; i < std::min(chunks.size(), kNamedChunks); ++i) {
    names += (names.empty() ? "" : ", ") + std::to_string(chunks[i]);
  }
  if (chunks.size() <= kNamedChunks) return names;
  return names + " and " + std::to_string(chunks.size() - kNamedChunks) + " more of XXH3 " +
         std::to_string(HashOf(chunks));
}

Facts DescribePlaces(const SampleLoaders& loaders) {
  Facts facts;
  for (const auto& [name, loader] : loaders) {
    const std::string of = name == kMainLoader ? "" : " of loader \"" + name + "\"";
    const SampleCursor cursor = loader->cursor();
    facts["place in the data" + of] =
        "epoch " + std::to_string(cursor.epoch) + ", window " + std::to_string(cursor.window) + ", sample " +
        std::to_string(cursor.sample) + (cursor.taken > 0 ? ", taken " + std::to_string(cursor.taken) : "");
    const std::vector<uint64_t> chunks = loader->bad_chunks();
    if (!chunks.empty()) facts["list of chunks that could not be read" + of] = NamesOfChunks(chunks);
  }
  return facts;
}

}  // namespace

std::vector<int64_t> PlaceAnswers(const World& world, const SampleLoaders& loaders) {
  if (world.size() == 1) return {};
  std::vector<uint64_t> words;
  for (const auto& [name, loader] : loaders) {
    const SampleCursor cursor = loader->cursor();
    const std::vector<uint64_t> chunks = loader->bad_chunks();
    words.insert(words.end(), {cursor.epoch, cursor.window, cursor.sample, cursor.taken, chunks.size()});
    words.insert(words.end(), chunks.begin(), chunks.end());
  }
  const auto place = static_cast<int64_t>(HashOf(words) >> 2);  // so that its negative is one, too
  return {place, -place};
}

void RequireSamePlaces(World* world, const SampleLoaders& loaders, const std::vector<int64_t>& agreed) {
  if (agreed.empty() || agreed[0] == -agreed[1]) return;
  RequireEqual(
      world, DescribePlaces(loaders),
      {.code = ErrorCode::kBadInput,
       .hint = "each rank reads its own copy of the data: look at the copies with pack --verify, and "
               "continue with --resume"});
}

}  // namespace trainwright

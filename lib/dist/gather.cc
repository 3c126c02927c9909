#include "lib/dist/gather.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace trainwright {

std::vector<std::vector<int64_t>> GatherWords(World* world, const std::vector<int64_t>& own) {
  const auto ranks = static_cast<size_t>(world->size());
  std::vector<int64_t> words(ranks * own.size(), 0);
  std::copy(own.begin(), own.end(),
            words.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(world->rank()) * own.size()));
  if (!words.empty()) world->Reduce(&words);
  std::vector<std::vector<int64_t>> all;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(rank * own.size());
    all.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(own.size()));
  }
  return all;
}

std::vector<std::string> GatherBytes(World* world, const std::string& own) {
  const std::vector<std::vector<int64_t>> sizes = GatherWords(world, {static_cast<int64_t>(own.size())});
  const auto most_bytes = static_cast<size_t>((*std::max_element(sizes.begin(), sizes.end()))[0]);
  std::vector<int64_t> words((most_bytes + sizeof(int64_t) - 1) / sizeof(int64_t), 0);
  if (!own.empty()) std::memcpy(words.data(), own.data(), own.size());
  const std::vector<std::vector<int64_t>> parts = GatherWords(world, words);
  std::vector<std::string> all;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    std::string text(static_cast<size_t>(sizes[rank][0]), '\0');
    if (!text.empty()) std::memcpy(text.data(), parts[rank].data(), text.size());
    all.push_back(std::move(text));
  }
  return all;
}

}  // namespace trainwright

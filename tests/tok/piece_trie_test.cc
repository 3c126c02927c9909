#include "lib/tok/piece_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "tests/support/support.h"

namespace trainwright {
namespace {

using Found = std::vector<std::pair<size_t, uint32_t>>;

Found PrefixesOf(const PieceTrie& trie, const std::string& text) {
  Found found;
  trie.VisitPrefixes(text.data(), text.data() + text.size(), [&](size_t size, uint32_t id) {
    found.emplace_back(size, id);
    return true;
  });
  return found;
}

// Bytes of every value, many alike, so that nodes have from one child to all 256.
TEST(PieceTrieTest, FindsTheEntriesThatATextBeginsWithAndNoOthers) {
  SCOPED_TRACE(test::TestSeed());
  std::mt19937_64 random(test::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const uint64_t kinds = round % 3 == 0 ? 3 : round % 3 == 1 ? 40 : 256;
    const auto text = [&](uint64_t longest) {
      std::string made(1 + random() % longest, '\0');
      for (char& byte : made) byte = static_cast<char>(random() % kinds);
      return made;
    };
    std::map<std::string, uint32_t> entries;
    for (uint64_t count = random() % 3000; count > 0; --count) entries[text(6)] = random() % 100000;
    std::vector<PieceTrie::Entry> list;
    for (const auto& [entry, id] : entries) list.push_back({entry, id});
    const PieceTrie trie(list);
    EXPECT_EQ(trie.empty(), entries.empty());
    for (int i = 0; i < 500; ++i) {
      const std::string looked_up = text(12);
      Found expected;
      for (size_t size = 1; size <= looked_up.size(); ++size) {
        const auto entry = entries.find(looked_up.substr(0, size));
        if (entry != entries.end()) expected.emplace_back(size, entry->second);
      }
      ASSERT_EQ(PrefixesOf(trie, looked_up), expected) << "round " << round;
    }
  }
}

TEST(PieceTrieTest, StopsWhereTheVisitorHasSeenEnough) {
  const PieceTrie trie({{"a", 1}, {"aa", 2}, {"aaa", 3}});
  EXPECT_EQ(trie.longest_bytes(), 3u);
  size_t longest = 0;
  const std::string text = "aaaa";
  trie.VisitPrefixes(text.data(), text.data() + text.size(), [&](size_t size, uint32_t) {
    longest = size;
    return size < 2;
  });
  EXPECT_EQ(longest, 2u);
}

}  // namespace
}  // namespace trainwright

// Contrastive records through the packer and back out of the chunks, against whole records in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/loading/contrastive_parts.h"
#include "lib/packing/packer.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

struct Text {
  TextRole role = TextRole::kQuery;
  std::vector<uint32_t> instruction, pooled;
  bool operator==(const Text&) const = default;
  auto operator<=>(const Text&) const = default;
  uint64_t tokens() const { return instruction.size() + pooled.size(); }
};
using TextRecord = std::vector<Text>;

uint64_t TokensOf(const TextRecord& record) {
  uint64_t tokens = 0;
  for (const Text& text : record) tokens += text.tokens();
  return tokens;
}

TextRecord RandomRecord(uint64_t most_texts, uint64_t most_tokens, std::mt19937_64* random) {
  const auto below = [&](uint64_t bound) { return (*random)() % bound; };
  TextRecord record;
  const uint64_t texts = 2 + below(most_texts), positives = 1 + below(texts - 1);
  for (uint64_t i = 0; i < texts; ++i) {
    Text text;
    text.role = i == 0 ? TextRole::kQuery : i <= positives ? TextRole::kPositive : TextRole::kNegative;
    text.instruction.resize(below(2) * below(4));
    text.pooled.resize(1 + below(most_tokens));
    for (uint32_t& token : text.instruction) token = static_cast<uint32_t>(below(1000));
    for (uint32_t& token : text.pooled) token = static_cast<uint32_t>(below(1000));
    record.push_back(std::move(text));
  }
  return record;
}

/// Four bytes of text a token, in pieces of at most `piece_tokens`.
void AddTo(Packer* packer, const TextRecord& record, size_t piece_tokens) {
  for (size_t i = 0; i < record.size(); ++i) {
    bool begins_text = true;
    for (const bool pooled : {false, true}) {
      const std::vector<uint32_t>& tokens = pooled ? record[i].pooled : record[i].instruction;
      for (size_t begin = 0; begin < tokens.size(); begin += piece_tokens) {
        const size_t count = std::min(piece_tokens, tokens.size() - begin);
        const bool last = pooled && begin + count == tokens.size();
        packer->Add({.tokens = std::span(tokens).subspan(begin, count),
                     .begins = i == 0 && begins_text,
                     .ends = last && i + 1 == record.size(),
                     .source_bytes = 4 * count,
                     .loss = pooled,
                     .begins_text = std::exchange(begins_text, false),
                     .role = record[i].role});
      }
    }
  }
}

struct Packed {
  std::vector<Chunk> chunks;
  PackerCounts counts;
  std::vector<TextRecord> records() const {
    std::vector<TextRecord> found;
    for (const Chunk& chunk : chunks) {
      for (const ContrastiveRecord& record : ContrastiveRecordsOf(chunk)) {
        TextRecord& texts = found.emplace_back();
        const auto add = [&](TextRole role, const ContrastiveText& text) {
          EXPECT_EQ(text.source_bytes, 4 * text.tokens.size());
          const auto split = text.tokens.begin() + static_cast<ptrdiff_t>(text.instruction_tokens);
          texts.push_back({role, {text.tokens.begin(), split}, {split, text.tokens.end()}});
        };
        add(TextRole::kQuery, record.query);
        for (const ContrastiveText& text : record.positives) add(TextRole::kPositive, text);
        for (const ContrastiveText& text : record.negatives) add(TextRole::kNegative, text);
      }
    }
    return found;
  }
};

Packed Pack(PackerOptions options, const std::vector<TextRecord>& records, size_t piece_tokens = SIZE_MAX) {
  options.records = RecordKind::kContrastive;
  Packed packed;
  Packer packer(options, [&](Chunk chunk) { packed.chunks.push_back(std::move(chunk)); });
  for (const TextRecord& record : records) AddTo(&packer, record, piece_tokens);
  packer.Finish();
  packed.counts = packer.counts();
  return packed;
}

class ContrastivePackerTest : public testing::Test {
 protected:
  ContrastivePackerTest() : seed_(test::TestSeed()), random_(seed_) {}
  std::vector<TextRecord> RandomRecords(size_t count, uint64_t most_texts, uint64_t most_tokens) {
    std::vector<TextRecord> records;
    for (size_t i = 0; i < count; ++i) records.push_back(RandomRecord(most_texts, most_tokens, &random_));
    return records;
  }
  const uint64_t seed_;
  std::mt19937_64 random_;
};

TEST_F(ContrastivePackerTest, EveryRecordComesBackWholeWithItsInstructions) {
  SCOPED_TRACE(seed_);
  const std::vector<TextRecord> records = RandomRecords(300, 6, 12);
  for (const PackMode mode : {PackMode::kBestFit, PackMode::kNone}) {
    for (const size_t piece_tokens : {size_t{1}, size_t{5}, SIZE_MAX}) {
      const PackerOptions options = {
          .mode = mode, .overflow = OverflowPolicy::kError, .chunk_tokens = 128, .window_tokens = 1000};
      std::vector<TextRecord> found = Pack(options, records, piece_tokens).records();
      std::vector<TextRecord> expected = records;
      if (mode == PackMode::kBestFit) {
        std::sort(found.begin(), found.end());
        std::sort(expected.begin(), expected.end());
      }
      EXPECT_EQ(found, expected);
    }
  }
}

/// The longest level by counting up, text by text.
std::optional<TextRecord> ShortenedByCounting(const TextRecord& record, uint64_t most) {
  const auto at_level = [&](uint64_t level) {
    TextRecord shortened = record;
    for (Text& text : shortened) {
      const uint64_t keep = level > text.instruction.size() + 1 ? level - text.instruction.size() : 1;
      if (text.pooled.size() > keep) text.pooled.resize(keep);
    }
    return shortened;
  };
  if (TokensOf(at_level(0)) > most) return std::nullopt;
  uint64_t level = 0;
  while (TokensOf(at_level(level + 1)) <= most && level < most) ++level;
  return at_level(level);
}

TEST_F(ContrastivePackerTest, TruncateShortensTheLongestTextsOfALongRecord) {
  SCOPED_TRACE(seed_);
  const std::vector<TextRecord> records = RandomRecords(300, 30, 40);
  constexpr uint32_t kChunk = 48;
  std::vector<TextRecord> expected;
  uint64_t truncated = 0, dropped = 0, tokens_dropped = 0;
  for (const TextRecord& record : records) {
    const auto kept =
        TokensOf(record) <= kChunk ? std::optional(record) : ShortenedByCounting(record, kChunk);
    tokens_dropped += TokensOf(record) - (kept ? TokensOf(*kept) : 0);
    if (!kept) {
      ++dropped;
      continue;
    }
    truncated += *kept != record;
    expected.push_back(*kept);
  }
  ASSERT_GT(truncated, 0u);
  ASSERT_GT(dropped, 0u);
  for (const size_t piece_tokens : {size_t{1}, size_t{7}, SIZE_MAX}) {
    // Source bytes of a shortened text are its share of them: with four a token they stay four.
    const Packed packed =
        Pack({.mode = PackMode::kNone, .overflow = OverflowPolicy::kTruncate, .chunk_tokens = kChunk},
             records, piece_tokens);
    EXPECT_EQ(packed.records(), expected);
    EXPECT_EQ(packed.counts.documents_truncated, truncated);
    EXPECT_EQ(packed.counts.documents_dropped, dropped);
    EXPECT_EQ(packed.counts.tokens_dropped, tokens_dropped);
  }
}

TEST_F(ContrastivePackerTest, DropLeavesOutExactlyTheLongRecordsAndErrorNamesTheFirst) {
  SCOPED_TRACE(seed_);
  const std::vector<TextRecord> records = RandomRecords(200, 8, 20);
  PackerOptions options = {.mode = PackMode::kNone, .overflow = OverflowPolicy::kDrop, .chunk_tokens = 60};
  std::vector<TextRecord> expected;
  size_t first_long = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (TokensOf(records[i]) <= 60) {
      expected.push_back(records[i]);
    } else if (first_long == 0) {
      first_long = i;
    }
  }
  const Packed packed = Pack(options, records, 3);
  EXPECT_EQ(packed.records(), expected);
  EXPECT_EQ(packed.counts.documents_dropped, records.size() - expected.size());
  options.overflow = OverflowPolicy::kError;
  try {
    Pack(options, records);
    ADD_FAILURE() << "packed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("record " + std::to_string(first_long) + ":"));
  }
}

}  // namespace
}  // namespace trainwright

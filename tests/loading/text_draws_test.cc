// Which texts of a record are taken, against the vectors of the page and by counting; how they are laid out,
// against the record.
#include "lib/loading/text_draws.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/loading/contrastive_cutter.h"
#include "lib/loading/generative_cutter.h"
#include "tests/loading/order_page.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::PlainRecord;
using test::PlainText;

std::string ShownPart(const std::vector<uint32_t>& numbers) {
  return numbers.empty() ? "none" : test::Joined(numbers);
}

TEST(TextDraws, AreThoseOfThePage) {
  for (const auto& [arguments, value] : test::VectorsOf("choose")) {
    const std::vector<uint32_t> drawn =
        DrawWithoutReplacement(static_cast<uint32_t>(test::NumberOf(arguments[0])),
                               test::NumberOf(arguments[1]), test::NumberOf(arguments[2], 16));
    EXPECT_EQ(test::Joined(drawn), value);
  }
  for (const auto& [arguments, value] : test::VectorsOf("texts")) {
    std::vector<uint64_t> numbers;
    for (const std::string& argument : arguments) numbers.push_back(test::NumberOf(argument));
    const DrawnTexts drawn = DrawTexts({.positives = numbers[4], .negatives = numbers[5]},
                                       {.set = static_cast<uint32_t>(numbers[0]),
                                        .ordinal = numbers[1],
                                        .positives = static_cast<uint32_t>(numbers[2]),
                                        .negatives = static_cast<uint32_t>(numbers[3])},
                                       numbers[6]);
    EXPECT_EQ(ShownPart(drawn.positives) + " | " + ShownPart(drawn.negatives), value);
  }
}

TEST(TextDraws, NoTextComesTwiceWhereThereAreEnough) {
  for (uint64_t ordinal = 0; ordinal < 500; ++ordinal) {
    const DrawnTexts drawn =
        DrawTexts({.positives = 3, .negatives = 6}, {.ordinal = ordinal, .positives = 5, .negatives = 6}, 1);
    EXPECT_EQ(std::set(drawn.positives.begin(), drawn.positives.end()).size(), 3u);
    EXPECT_EQ(std::set(drawn.negatives.begin(), drawn.negatives.end()).size(), 6u);
  }
}

TEST(TextDraws, TooFewNegativesComeAsOftenAsTheirListIsRepeated) {
  for (uint64_t ordinal = 0; ordinal < 200; ++ordinal) {
    const DrawnTexts drawn =
        DrawTexts({.negatives = 7}, {.ordinal = ordinal, .positives = 1, .negatives = 3}, 1);
    ASSERT_EQ(drawn.negatives.size(), 7u);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_LE(std::count(drawn.negatives.begin(), drawn.negatives.end(), i), 3);
    }
  }
}

TEST(TextDraws, OfNoNegativesNoneIsTakenAndOfFewPositivesEach) {
  const DrawnTexts drawn = DrawTexts({.positives = 9, .negatives = 4}, {.positives = 2}, 1);
  EXPECT_EQ(drawn.negatives, std::vector<uint32_t>());
  EXPECT_THAT(drawn.positives, testing::UnorderedElementsAre(0, 1));
}

/// Chi-square of how often each number came.
double ChiSquareOf(const std::map<uint32_t, uint64_t>& counts, size_t numbers, uint64_t draws) {
  const double expected = static_cast<double>(draws) / static_cast<double>(numbers);
  double chi_square = static_cast<double>(numbers - counts.size()) * expected;
  for (const auto& [number, count] : counts) {
    const double difference = static_cast<double>(count) - expected;
    chi_square += difference * difference / expected;
  }
  return chi_square;
}

TEST(TextDraws, EveryTextIsTakenAsOften) {
  constexpr uint64_t kRecords = 12000;
  std::map<uint32_t, uint64_t> positives, first_negatives, second_negatives;
  for (uint64_t ordinal = 0; ordinal < kRecords; ++ordinal) {
    const DrawnTexts drawn =
        DrawTexts({.positives = 1, .negatives = 2}, {.ordinal = ordinal, .positives = 5, .negatives = 8},
                  test::TestSeed());
    ++positives[drawn.positives.at(0)];
    ++first_negatives[drawn.negatives.at(0)];
    ++second_negatives[drawn.negatives.at(1)];
  }
  // One time in 10,000 each: 4 and 7 degrees of freedom.
  EXPECT_LT(ChiSquareOf(positives, 5, kRecords), 23.5);
  EXPECT_LT(ChiSquareOf(first_negatives, 8, kRecords), 29.9);
  EXPECT_LT(ChiSquareOf(second_negatives, 8, kRecords), 29.9);
}

TEST(TextDraws, AreOthersForAnotherSampleSetAndSeed) {
  const TextChoice choice = {.positives = 4, .negatives = 8};
  const auto draw = [&](uint32_t set, uint64_t ordinal, uint64_t seed) {
    return DrawTexts(choice, {.set = set, .ordinal = ordinal, .positives = 40, .negatives = 40}, seed);
  };
  const DrawnTexts first = draw(0, 0, 0);
  EXPECT_EQ(draw(0, 0, 0), first);
  for (const DrawnTexts& other : {draw(1, 0, 0), draw(0, 1, 0), draw(0, 0, 1)}) {
    EXPECT_NE(other.positives, first.positives);
    EXPECT_NE(other.negatives, first.negatives);
  }
  EXPECT_NE(std::vector(first.negatives.begin(), first.negatives.begin() + 4), first.positives);
}

/// A sample of a window, as the cutter made it of the record.
Sample SampleOf(const PlainRecord& record, uint64_t ordinal, uint32_t set = 3) {
  Chunk chunk;
  test::AddRecord(record, &chunk);
  const auto window = std::make_shared<SampleWindow>();
  ContrastiveCutter(RecordKind::kContrastive, {.query_tokens = 100, .passage_tokens = 100})
      .Cut(chunk, window.get());
  window->samples.at(0).set = set;
  return {window, 0, ordinal};
}

PlainRecord RandomRecord(std::mt19937_64* random) {
  const auto text = [&] {
    PlainText random_text;
    random_text.instruction.resize((*random)() % 3);
    random_text.pooled.resize(1 + (*random)() % 5);
    for (uint32_t& token : random_text.instruction) token = static_cast<uint32_t>((*random)() % 1000);
    for (uint32_t& token : random_text.pooled) token = static_cast<uint32_t>((*random)() % 1000);
    return random_text;
  };
  PlainRecord record;
  record.query = text();
  for (size_t i = 1 + (*random)() % 4; i > 0; --i) record.positives.push_back(text());
  for (size_t i = (*random)() % 4; i > 0; --i) record.negatives.push_back(text());
  return record;
}

uint64_t HashOf(const PlainText& text) {
  std::vector<uint8_t> bytes;
  for (const uint32_t token : text.pooled) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(token >> shift));
  }
  return Xxh3(bytes);
}

/// What PackRecord shall append for a record, by the draws.
class ExpectedBatch {
 public:
  void Add(const PlainRecord& record, const DrawnTexts& drawn, uint32_t number) {
    AddText(record.query, TextUse::kQuery, number);
    for (const uint32_t i : drawn.positives) AddText(record.positives.at(i), TextUse::kPositive, number);
    for (const uint32_t i : drawn.negatives) AddText(record.negatives.at(i), TextUse::kNegative, number);
    const std::set<uint32_t> taken(drawn.positives.begin(), drawn.positives.end());
    for (uint32_t i = 0; i < record.positives.size(); ++i) {
      if (!taken.contains(i)) undrawn.push_back({.record = number, .text_hash = HashOf(record.positives[i])});
    }
  }
  std::vector<int64_t> tokens;
  std::vector<int32_t> span_starts = {0};
  std::vector<SpanNote> notes;
  std::vector<UndrawnPositive> undrawn;

 private:
  void AddText(const PlainText& text, TextUse use, uint32_t number) {
    for (const uint32_t token : text.tokens()) tokens.push_back(token);
    span_starts.push_back(static_cast<int32_t>(tokens.size()));
    notes.push_back({.use = use,
                     .first_pooled = static_cast<uint32_t>(text.instruction.size()),
                     .record = number,
                     .text_hash = HashOf(text)});
  }
};

TEST(PackRecord, LaysOutTheQueryAndWhatIsDrawnWithTheirNotes) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  for (const TextChoice& choice : {TextChoice{}, TextChoice{.positives = 0, .negatives = 3},
                                   TextChoice{.positives = 2, .negatives = 0}}) {
    PackedBatch batch;
    ExpectedBatch expected;
    for (uint32_t number = 0; number < 40; ++number) {
      const PlainRecord record = RandomRecord(&random);
      PackRecord(SampleOf(record, 100 + number), choice, /*seed=*/8, number, &batch);
      const RecordShape shape = {.set = 3,
                                 .ordinal = 100 + number,
                                 .positives = static_cast<uint32_t>(record.positives.size()),
                                 .negatives = static_cast<uint32_t>(record.negatives.size())};
      expected.Add(record, DrawTexts(choice, shape, 8), number);
    }
    EXPECT_EQ(batch.tokens, expected.tokens);
    EXPECT_EQ(batch.span_starts, expected.span_starts);
    EXPECT_EQ(batch.notes, expected.notes);
    EXPECT_EQ(batch.undrawn_positives, expected.undrawn);
    EXPECT_EQ(batch.num_labels, 40);
    EXPECT_EQ(batch.documents, 40u);
    EXPECT_EQ(batch.labels, std::vector<int64_t>(batch.tokens.size(), kIgnoreLabel));
  }
}

TEST(PackRow, KeepsTheLabelsOfTheRow) {
  const Chunk chunk{.segments = {{.tokens = 3}}, .tokens = {5, 6, 7}};
  const auto window = std::make_shared<SampleWindow>();
  GenerativeCutter(RecordKind::kLm, {}).Cut(chunk, window.get());
  const Sample row(window, 0);
  EXPECT_TRUE(IsRow(row));
  EXPECT_FALSE(IsRow(SampleOf(test::NumberedRecords(1).front(), 0)));
  PackedBatch batch;
  PackRow(row, 4, &batch);
  EXPECT_THAT(batch.tokens, testing::ElementsAre(5, 6, 7));
  EXPECT_THAT(batch.labels, testing::ElementsAre(6, 7, kIgnoreLabel));
  EXPECT_EQ(batch.num_labels, 2);
  EXPECT_EQ(batch.notes, (std::vector<SpanNote>{{.use = TextUse::kGenerative, .record = 4}}));
}

TEST(PackedBatch, ClearedItHasNoNotes) {
  PackedBatch batch;
  PackRecord(SampleOf(test::NumberedRecords(1, 0, 3).front(), 0), {}, 1, 0, &batch);
  ASSERT_FALSE(batch.undrawn_positives.empty());
  batch.Clear();
  EXPECT_TRUE(batch.notes.empty());
  EXPECT_TRUE(batch.undrawn_positives.empty());
}

TEST(Sample, KeepsItsCompanionAndItsNumber) {
  const Sample first = SampleOf(test::NumberedRecords(1).front(), 7);
  const Sample both = first.With(SampleOf(test::NumberedRecords(1, 5).front(), 9));
  EXPECT_EQ(first.companion(), nullptr);
  ASSERT_NE(both.companion(), nullptr);
  EXPECT_EQ(both.ordinal(), 7u);
  EXPECT_EQ(both.companion()->ordinal(), 9u);
  PackedBatch batch;
  both.AppendTo(&batch);
  EXPECT_EQ(batch.tokens.at(0), test::QueryToken(0));
}

}  // namespace
}  // namespace trainwright

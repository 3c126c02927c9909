// Records and rows as cutters make them, against what was put into the chunks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/loading/contrastive_cutter.h"
#include "lib/loading/generative_cutter.h"
#include "tests/loading/text_chunks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::PlainRecord;
using test::PlainText;

PlainText RandomText(std::mt19937_64* random) {
  const auto below = [&](uint64_t bound) { return (*random)() % bound; };
  PlainText text;
  text.instruction.resize(below(2) * below(6));
  text.pooled.resize(1 + below(9));
  for (uint32_t& token : text.instruction) token = static_cast<uint32_t>(below(1000));
  for (uint32_t& token : text.pooled) token = static_cast<uint32_t>(below(1000));
  return text;
}

std::vector<PlainRecord> RandomRecords(size_t count, std::mt19937_64* random) {
  std::vector<PlainRecord> records(count);
  for (PlainRecord& record : records) {
    record.query = RandomText(random);
    record.positives.resize(1 + (*random)() % 3);
    record.negatives.resize((*random)() % 4);
    for (PlainText& text : record.positives) text = RandomText(random);
    for (PlainText& text : record.negatives) text = RandomText(random);
  }
  return records;
}

/// A text as a sample has it.
struct CutText {
  TextUse use = TextUse::kGenerative;
  uint32_t instruction_tokens = 0;
  std::vector<uint32_t> tokens;
  bool operator==(const CutText&) const = default;
};
using CutRecord = std::vector<CutText>;

std::vector<CutRecord> SamplesOf(const SampleCutter& cutter, const std::vector<Chunk>& chunks,
                                 CutCounts* cuts = nullptr) {
  std::vector<CutRecord> samples;
  for (const Chunk& chunk : chunks) {
    SampleWindow window;
    cutter.Cut(chunk, &window);
    if (cuts != nullptr) *cuts += window.cuts;
    for (const SampleWindow::Entry& entry : window.samples) {
      CutRecord& sample = samples.emplace_back();
      uint32_t tokens = 0;
      for (uint32_t i = entry.span_begin; i < entry.span_end; ++i) {
        const SampleSpan& span = window.spans[i];
        const TextTag tag = DecodeTextTag(span.tag);
        sample.push_back({.use = tag.use,
                          .instruction_tokens = tag.instruction_tokens,
                          .tokens = window.tokens.Widened(span.begin, span.tokens)});
        tokens += span.tokens;
      }
      EXPECT_EQ(entry.tokens, tokens);
    }
  }
  return samples;
}

/// The record as its definition has it; nullopt: it does not fit.
std::optional<CutRecord> ExpectedOf(const PlainRecord& record, size_t query_most, size_t passage_most,
                                    uint64_t* shortened) {
  CutRecord expected;
  bool fits = true;
  uint64_t cut = 0;
  const auto add = [&](TextUse use, const PlainText& text, size_t most) {
    std::vector<uint32_t> tokens = text.tokens();
    fits = fits && text.instruction.size() < most;
    cut += tokens.size() > most ? 1 : 0;
    if (tokens.size() > most) tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(most), tokens.end());
    expected.push_back({use, static_cast<uint32_t>(text.instruction.size()), tokens});
  };
  add(TextUse::kQuery, record.query, query_most);
  for (const PlainText& text : record.positives) add(TextUse::kPositive, text, passage_most);
  for (const PlainText& text : record.negatives) add(TextUse::kNegative, text, passage_most);
  if (!fits) return std::nullopt;
  *shortened += cut;
  return expected;
}

TEST(ContrastiveCutter, ASampleIsARecordWithAllItsTextsWithinTheirLimits) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  const std::vector<PlainRecord> records = RandomRecords(200, &random);
  for (const auto& [query_most, passage_most] :
       std::vector<std::pair<size_t, size_t>>{{100, 100}, {7, 5}, {3, 8}, {1, 1}}) {
    std::vector<CutRecord> expected;
    CutCounts counts;
    for (const PlainRecord& record : records) {
      const auto cut = ExpectedOf(record, query_most, passage_most, &counts.shortened);
      if (cut) {
        expected.push_back(*cut);
      } else {
        ++counts.left_out;
      }
    }
    const ContrastiveCutter cutter(RecordKind::kContrastive,
                                   {.query_tokens = static_cast<int64_t>(query_most),
                                    .passage_tokens = static_cast<int64_t>(passage_most)});
    CutCounts found;
    EXPECT_EQ(SamplesOf(cutter, test::ChunksOf(records), &found), expected);
    EXPECT_EQ(found, counts) << query_most << ", " << passage_most;
  }
}

TEST(ContrastiveCutter, ASampleCountsTheTokensThatAStepTakesOnAverage) {
  const PlainRecord record = {.query = {{1}, {2, 3, 4}},
                              .positives = {{{}, {1, 2, 3}}, {{}, {1, 2, 3, 4, 5}}},
                              .negatives = {{{}, {1, 2}}, {{}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}}};
  const auto tokens = [&](const std::optional<TextChoice>& choice) {
    SampleWindow window;
    ContrastiveCutter(RecordKind::kContrastive, {.query_tokens = 9, .passage_tokens = 6, .choice = choice})
        .Cut(test::ChunksOf({record}).front(), &window);
    return window.samples.at(0).tokens;
  };
  EXPECT_EQ(tokens(std::nullopt), 4u + 8u + 8u);
  EXPECT_EQ(tokens(TextChoice{.positives = 1, .negatives = 1}), 4u + 4u + 4u);
  EXPECT_EQ(tokens(TextChoice{.positives = 0, .negatives = 3}), 4u + 8u + 12u);
  EXPECT_EQ(tokens(TextChoice{.positives = 5, .negatives = 0}), 4u + 8u);
}

TEST(ContrastiveCutter, ATextThatIsCutHasItsShareOfTheSource) {
  const std::vector<PlainRecord> records = {
      {.query = {{1, 2}, {3, 4, 5, 6}}, .positives = {{{}, {7, 8, 9}}}, .negatives = {}}};
  SampleWindow window;
  ContrastiveCutter(RecordKind::kContrastive, {.query_tokens = 3, .passage_tokens = 2})
      .Cut(test::ChunksOf(records).front(), &window);
  ASSERT_EQ(window.spans.size(), 2u);
  EXPECT_EQ(window.spans[0].source_bytes, 2u);  // one of four tokens, of eight bytes
  EXPECT_EQ(window.spans[1].source_bytes, 4u);
  EXPECT_TRUE(window.spans[0].starts_document);
  EXPECT_FALSE(window.spans[1].starts_document);
}

TEST(ContrastiveCutter, LeavesOutWhatIsHeldOutByItsQuery) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<PlainRecord> records = RandomRecords(100, &random);
  const DocumentSplit split = {.asked = "0.5", .seed = 3, .bound = uint64_t{1} << 63};
  size_t kept = 0;
  for (const PlainRecord& record : records) {
    const std::vector<uint32_t> query = record.query.tokens();
    const ByteSpan bytes = {reinterpret_cast<const uint8_t*>(query.data()), 4 * query.size()};
    kept += Xxh3(bytes, Rng(3, "eval split").key()) >= split.bound ? 1 : 0;
  }
  ASSERT_GT(kept, 0u);
  ASSERT_LT(kept, records.size());
  const ContrastiveCutter cutter(RecordKind::kContrastive,
                                 {.query_tokens = 100, .passage_tokens = 100, .split = split});
  CutCounts counts;
  EXPECT_EQ(SamplesOf(cutter, test::ChunksOf(records), &counts).size(), kept);
  EXPECT_EQ(counts, CutCounts());
}

TEST(ContrastiveCutter, RefusesOtherRecordsAndLimitsBelowOne) {
  const auto code = [](RecordKind records, const ContrastiveCutterOptions& options) {
    return test::CodeOf([&] { ContrastiveCutter(records, options); });
  };
  EXPECT_EQ(code(RecordKind::kSft, {}), ErrorCode::kBadInput);
  EXPECT_EQ(code(RecordKind::kContrastive, {.query_tokens = 0}), ErrorCode::kUsage);
  EXPECT_EQ(code(RecordKind::kContrastive, {.passage_tokens = 0}), ErrorCode::kUsage);
}

TEST(ContrastiveCutter, IdentitiesTellCuttersApart) {
  const auto identity = [](const ContrastiveCutterOptions& options) {
    return ContrastiveCutter(RecordKind::kContrastive, options).Identity();
  };
  const DocumentSplit split = {.asked = "1", .bound = 7};
  EXPECT_NE(identity({.query_tokens = 3}), identity({.query_tokens = 4}));
  EXPECT_NE(identity({.passage_tokens = 3}), identity({.passage_tokens = 4}));
  EXPECT_NE(identity({}), identity({.split = split}));
}

/// A conversation: tokens, and whether each is predicted.
struct Talk {
  std::vector<uint32_t> tokens;
  std::vector<uint8_t> predicted;
};

Talk RandomTalk(std::mt19937_64* random) {
  Talk talk;
  const size_t first = (*random)() % 2;
  for (size_t runs = 1 + (*random)() % 6; runs > 0; --runs) {
    const uint8_t predicted = (runs + first) % 2 == 0 ? 1 : 0;
    for (size_t i = 1 + (*random)() % 5; i > 0; --i) {
      talk.tokens.push_back(static_cast<uint32_t>((*random)() % 1000));
      talk.predicted.push_back(predicted);
    }
  }
  return talk;
}

Chunk ChunkOfTalks(const std::vector<Talk>& talks) {
  Chunk chunk;
  for (const Talk& talk : talks) {
    for (size_t i = 0; i < talk.tokens.size(); ++i) {
      if (i == 0 || talk.predicted[i] != talk.predicted[i - 1]) {
        const int no_loss = talk.predicted[i] != 0 ? 0 : kSegmentNoLoss;
        const int goes_on = i == 0 ? 0 : kSegmentContinuesPrevious;
        chunk.segments.push_back({.flags = static_cast<uint8_t>(no_loss | goes_on)});
      }
      ++chunk.segments.back().tokens;
      chunk.tokens.push_back(talk.tokens[i]);
    }
  }
  return chunk;
}

/// A row: tokens and labels.
using Row = std::pair<std::vector<int64_t>, std::vector<int64_t>>;

std::vector<Row> RowsOf(const SampleCutter& cutter, const Chunk& chunk) {
  const auto window = std::make_shared<SampleWindow>();
  cutter.Cut(chunk, window.get());
  std::vector<Row> rows;
  for (size_t i = 0; i < window->samples.size(); ++i) {
    PackedBatch batch;
    const Sample sample(window, i);
    sample.AppendTo(&batch);
    EXPECT_EQ(batch.num_labels, sample.num_labels());
    rows.emplace_back(batch.tokens, batch.labels);
  }
  return rows;
}

/// The row of a talk by the definition; nullopt: it has no label.
std::optional<Row> ExpectedRow(const Talk& talk, size_t most, bool last_run_only) {
  const size_t kept = std::min(most, talk.tokens.size());
  size_t run_begin = 0;
  if (last_run_only) {
    size_t end = talk.tokens.size();
    while (end > 0 && talk.predicted[end - 1] == 0) --end;
    run_begin = end;
    while (run_begin > 0 && talk.predicted[run_begin - 1] == 1) --run_begin;
  }
  Row row;
  bool labelled = false;
  for (size_t i = 0; i < kept; ++i) {
    row.first.push_back(talk.tokens[i]);
    const bool next = i + 1 < kept && talk.predicted[i + 1] == 1 && i + 1 >= run_begin;
    row.second.push_back(next ? static_cast<int64_t>(talk.tokens[i + 1]) : kIgnoreLabel);
    labelled = labelled || next;
  }
  if (!labelled) return std::nullopt;
  return row;
}

TEST(GenerativeCutter, ARowIsTheBeginningOfADocumentWithTheLabelsThatItsSegmentsSay) {
  std::mt19937_64 random(test::TestSeed());
  SCOPED_TRACE("seed " + std::to_string(test::TestSeed()));
  std::vector<Talk> talks;
  for (int i = 0; i < 1000; ++i) talks.push_back(RandomTalk(&random));
  for (const bool last_run_only : {false, true}) {
    for (const size_t most : {1, 4, 9, 100}) {
      std::vector<Row> expected;
      for (const Talk& talk : talks) {
        if (const auto row = ExpectedRow(talk, most, last_run_only)) expected.push_back(*row);
      }
      const GenerativeCutter cutter(RecordKind::kSft,
                                    {.tokens = static_cast<int64_t>(most), .last_run_only = last_run_only});
      EXPECT_EQ(RowsOf(cutter, ChunkOfTalks(talks)), expected) << most;
    }
  }
}

TEST(GenerativeCutter, OfTextEveryTokenBehindTheFirstIsPredicted) {
  const Chunk chunk{.segments = {{.tokens = 3}, {.tokens = 1}}, .tokens = {5, 6, 7, 8}};
  EXPECT_EQ(RowsOf(GenerativeCutter(RecordKind::kLm, {}), chunk),
            (std::vector<Row>{{{5, 6, 7}, {6, 7, kIgnoreLabel}}}));
}

TEST(GenerativeCutter, PartsThatBeginInTheMiddleOfADocumentAreNoRows) {
  const Chunk chunk{.segments = {{.tokens = 2, .flags = kSegmentStartsMidDocument},
                                 {.tokens = 2, .flags = kSegmentEndsMidDocument, .next_token = 99}},
                    .tokens = {1, 2, 3, 4}};
  EXPECT_EQ(RowsOf(GenerativeCutter(RecordKind::kLm, {}), chunk),
            (std::vector<Row>{{{3, 4}, {4, kIgnoreLabel}}}));
}

TEST(GenerativeCutter, CountsWhatItCutsAndWhatItLeavesOut) {
  const Chunk chunk{.segments = {{.tokens = 5}, {.tokens = 1}, {.tokens = 2}},
                    .tokens = {1, 2, 3, 4, 5, 6, 7, 8}};
  SampleWindow window;
  GenerativeCutter(RecordKind::kLm, {.tokens = 3}).Cut(chunk, &window);
  EXPECT_EQ(window.cuts, (CutCounts{.left_out = 1, .shortened = 1}));
}

TEST(GenerativeCutter, RefusesOtherRecordsAndALimitBelowOne) {
  EXPECT_EQ(test::CodeOf([] { GenerativeCutter(RecordKind::kContrastive, {}); }), ErrorCode::kBadInput);
  EXPECT_EQ(test::CodeOf([] { GenerativeCutter(RecordKind::kLm, {.tokens = 0}); }), ErrorCode::kUsage);
}

TEST(TextTag, ComesBackWhole) {
  for (const TextUse use : {TextUse::kQuery, TextUse::kPositive, TextUse::kNegative, TextUse::kGenerative}) {
    for (const uint32_t tokens : {0u, 1u, (1u << 30) - 1}) {
      const TextTag tag = {.use = use, .instruction_tokens = tokens};
      EXPECT_EQ(DecodeTextTag(EncodeTextTag(tag)), tag);
    }
  }
}

}  // namespace
}  // namespace trainwright

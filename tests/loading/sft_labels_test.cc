// From conversations to labels: what packing and loading make of "these tokens are predicted, those only
// read".
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lib/loading/sample_stream.h"
#include "lib/packing/packer.h"
#include "tests/support/memory_shard_set.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// A conversation with one flag a token; token ids are unique among all conversations.
struct Conversation {
  std::vector<uint32_t> tokens;
  std::vector<bool> loss;
};

std::vector<Conversation> RandomConversations(std::mt19937_64* random, size_t count,
                                              size_t most_turn_tokens) {
  std::vector<Conversation> conversations(count);
  uint32_t next_id = 1;
  for (Conversation& conversation : conversations) {
    const size_t turns = 1 + (*random)() % 6;
    bool loss = (*random)() % 8 == 0;
    for (size_t turn = 0; turn < turns; ++turn, loss = !loss) {
      for (size_t tokens = (*random)() % (most_turn_tokens + 1); tokens > 0; --tokens) {
        conversation.tokens.push_back(next_id++);
        conversation.loss.push_back(loss);
      }
    }
  }
  return conversations;
}

struct Packed {
  std::vector<Chunk> chunks;
  PackerCounts counts;
};

/// Every run of equal flags as a piece or, with `piece_tokens`, as several.
Packed Pack(const PackerOptions& options, const std::vector<Conversation>& conversations,
            size_t piece_tokens = SIZE_MAX) {
  Packed packed;
  Packer packer(options, [&](Chunk chunk) { packed.chunks.push_back(std::move(chunk)); });
  for (const Conversation& conversation : conversations) {
    const size_t size = conversation.tokens.size();
    size_t begin = 0;
    do {
      size_t end = begin;
      while (end < size && end - begin < piece_tokens && conversation.loss[end] == conversation.loss[begin])
        ++end;
      packer.Add({.tokens = std::span(conversation.tokens).subspan(begin, end - begin),
                  .begins = begin == 0,
                  .ends = end == size,
                  .source_bytes = 3 * (end - begin),
                  .loss = size == 0 || conversation.loss[begin]});
      begin = end;
    } while (begin < size);
  }
  packer.Finish();
  packed.counts = packer.counts();
  return packed;
}

ShardSetHeader SftHeader(const PackerOptions& options) {
  ShardSetHeader header;
  header.tokenizer.vocab_size = 1u << 20;
  header.record_kind = RecordKind::kSft;
  header.mode = options.mode;
  header.overflow = options.overflow;
  header.chunk_tokens = options.chunk_tokens;
  return header;
}

std::string Describe(const PackerOptions& options) {
  return "mode " + PackModeName(options.mode) + " overflow " + OverflowPolicyName(options.overflow) +
         " chunk " + std::to_string(options.chunk_tokens) + " keep " +
         std::to_string(options.keep_loss_tokens);
}

std::vector<PackerOptions> ManyOptions() {
  std::vector<PackerOptions> many;
  for (const PackMode mode : {PackMode::kNone, PackMode::kConcat, PackMode::kBestFit}) {
    for (const OverflowPolicy overflow :
         {OverflowPolicy::kSplit, OverflowPolicy::kTruncate, OverflowPolicy::kDrop}) {
      if (mode == PackMode::kConcat && overflow != OverflowPolicy::kSplit) continue;
      for (const uint32_t chunk_tokens : {2u, 9u, 64u}) {
        for (const uint64_t keep : {0u, 3u, 1000u}) {
          many.push_back({mode, overflow, chunk_tokens, 500, keep});
          if (overflow != OverflowPolicy::kTruncate) break;
        }
      }
    }
  }
  return many;
}

/// By token: the label that its position must have, or kIgnoreLabel. The definition, one token at a time.
std::map<int64_t, int64_t> ExpectedLabels(const std::vector<Conversation>& conversations, LossOn loss_on) {
  std::map<int64_t, int64_t> labels;
  for (const Conversation& conversation : conversations) {
    for (size_t i = 0; i < conversation.tokens.size(); ++i) {
      const bool has_label =
          i + 1 < conversation.tokens.size() && (loss_on == LossOn::kAll || conversation.loss[i + 1]);
      labels[conversation.tokens[i]] = has_label ? int64_t{conversation.tokens[i + 1]} : kIgnoreLabel;
    }
  }
  return labels;
}

/// The labels of an epoch, by token; `chunks` must hold no token twice.
std::map<int64_t, int64_t> LabelsOfEpoch(const std::vector<Chunk>& chunks,
                                         const SampleStreamOptions& options) {
  const test::MemoryShardSet set(chunks, 2, 1u << 20, RecordKind::kSft);
  SampleStream stream(&set, options, {.workers = 0});
  std::map<int64_t, int64_t> labels;
  PackedBatch batch;
  for (uint64_t i = stream.CountEpoch().samples; i > 0; --i) {
    const Sample sample = stream.Next();
    if (options.loss_on == LossOn::kAssistant) {
      EXPECT_GT(sample.num_labels(), 0) << "a sample without a label is wasted work";
    }
    sample.AppendTo(&batch);
  }
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    EXPECT_TRUE(labels.emplace(batch.tokens[i], batch.labels[i]).second) << "token seen twice";
  }
  EXPECT_EQ(batch.num_labels, std::count_if(batch.labels.begin(), batch.labels.end(),
                                            [](int64_t label) { return label != kIgnoreLabel; }));
  return labels;
}

TEST(SftLabelsTest, AreExactlyThePredictedTokensHoweverTheyArePackedAndCut) {
  const uint64_t seed = test::TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const PackMode mode : {PackMode::kNone, PackMode::kConcat, PackMode::kBestFit}) {
    for (const uint32_t chunk_tokens : {2u, 9u, 64u}) {
      const PackerOptions packer{mode, OverflowPolicy::kSplit, chunk_tokens, 500};
      const std::vector<Conversation> conversations = RandomConversations(&random, 300, 20);
      const Packed packed = Pack(packer, conversations);
      for (const LossOn loss_on : {LossOn::kAssistant, LossOn::kAll}) {
        const std::map<int64_t, int64_t> expected = ExpectedLabels(conversations, loss_on);
        for (const int64_t sequence_tokens : {1, 5, 64}) {
          SCOPED_TRACE(Describe(packer) + " seq " + std::to_string(sequence_tokens) + " on " +
                       NameOf(loss_on));
          const SampleStreamOptions options{
              .sequence_tokens = sequence_tokens, .seed = seed, .window_chunks = 4, .loss_on = loss_on};
          const auto labels = LabelsOfEpoch(packed.chunks, options);
          for (const auto& [token, label] : labels) ASSERT_EQ(label, expected.at(token)) << "token " << token;
          for (const auto& [token, label] : expected) {
            ASSERT_TRUE(label == kIgnoreLabel || labels.contains(token)) << "token " << token;
          }
        }
      }
    }
  }
}

TEST(SftLabelsTest, DoNotDependOnHowConversationsAreCutIntoPieces) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Conversation> conversations = RandomConversations(&random, 100, 30);
  for (const PackerOptions& options : ManyOptions()) {
    SCOPED_TRACE(Describe(options));
    const std::vector<Chunk> whole = Pack(options, conversations).chunks;
    for (const size_t piece_tokens : {1, 4}) {
      const std::vector<Chunk> chunks = Pack(options, conversations, piece_tokens).chunks;
      ASSERT_EQ(chunks.size(), whole.size());
      for (size_t i = 0; i < chunks.size(); ++i) {
        ASSERT_EQ(chunks[i].tokens, whole[i].tokens);
        ASSERT_EQ(chunks[i].segments.size(), whole[i].segments.size());
        // Source bytes are shared out by piece: only their sum is exact.
        for (size_t k = 0; k < chunks[i].segments.size(); ++k) {
          Segment segment = chunks[i].segments[k];
          segment.source_bytes = whole[i].segments[k].source_bytes;
          ASSERT_EQ(segment, whole[i].segments[k]);
        }
      }
    }
  }
}

/// Which tokens of a conversation longer than a chunk truncation keeps: the definition in packer.h.
std::vector<uint32_t> KeptByTruncation(const Conversation& conversation, uint64_t chunk_tokens,
                                       uint64_t keep) {
  keep = std::min(keep, chunk_tokens);
  size_t end = conversation.tokens.size();
  uint64_t seen = 0;
  for (size_t i = 0; i < conversation.tokens.size(); ++i) {
    if (conversation.loss[i] && ++seen == keep) {
      end = i + 1;
      break;
    }
  }
  if (keep == 0) end = 0;
  end = std::max<size_t>(end, chunk_tokens);
  return {conversation.tokens.begin() + static_cast<ptrdiff_t>(end - chunk_tokens),
          conversation.tokens.begin() + static_cast<ptrdiff_t>(end)};
}

TEST(SftLabelsTest, TruncationKeepsTheFirstPredictedTokensAtTheCostOfTheBeginning) {
  std::mt19937_64 random(test::TestSeed());
  for (const uint32_t chunk_tokens : {4u, 16u, 33u}) {
    for (const uint64_t keep : {0u, 1u, 5u, 100u}) {
      const PackerOptions options{PackMode::kNone, OverflowPolicy::kTruncate, chunk_tokens, 500, keep};
      SCOPED_TRACE(Describe(options));
      const std::vector<Conversation> conversations = RandomConversations(&random, 200, 40);
      const Packed packed = Pack(options, conversations);
      uint64_t dropped = 0, loss_dropped = 0, truncated = 0;
      size_t chunk = 0;
      for (const Conversation& conversation : conversations) {
        if (conversation.tokens.empty()) continue;
        ASSERT_LT(chunk, packed.chunks.size());
        const std::vector<uint32_t>& found = packed.chunks[chunk++].tokens;
        if (conversation.tokens.size() <= chunk_tokens) {
          ASSERT_EQ(found, conversation.tokens);
          continue;
        }
        ASSERT_EQ(found, KeptByTruncation(conversation, chunk_tokens, keep));
        ++truncated;
        for (size_t i = 0; i < conversation.tokens.size(); ++i) {
          const uint32_t token = conversation.tokens[i];
          if (token >= found.front() && token <= found.back()) continue;
          ++dropped;
          loss_dropped += conversation.loss[i] ? 1 : 0;
        }
      }
      EXPECT_EQ(packed.counts.documents_truncated, truncated);
      EXPECT_EQ(packed.counts.tokens_dropped, dropped);
      EXPECT_EQ(packed.counts.loss_tokens_dropped, loss_dropped);
      ASSERT_GT(truncated, 0u);
    }
  }
}

TEST(SftLabelsTest, EveryWayOfPackingMakesChunksThatTheFormatTakes) {
  std::mt19937_64 random(test::TestSeed());
  const std::vector<Conversation> conversations = RandomConversations(&random, 200, 30);
  for (const PackerOptions& options : ManyOptions()) {
    SCOPED_TRACE(Describe(options));
    const Packed packed = Pack(options, conversations);
    uint64_t tokens = 0, loss_tokens = 0, documents = 0;
    for (const Chunk& chunk : packed.chunks) {
      const EncodedFrame frame = EncodeFrame(SftHeader(options), std::vector<Chunk>{chunk}, 0, 1);
      tokens += frame.totals.tokens;
      loss_tokens += frame.totals.loss_tokens;
      documents += frame.totals.documents;
    }
    const PackerCounts& counts = packed.counts;
    EXPECT_EQ(tokens, counts.tokens - counts.tokens_dropped);
    EXPECT_EQ(loss_tokens, counts.loss_tokens - counts.loss_tokens_dropped);
    EXPECT_EQ(documents, counts.documents - counts.documents_empty - counts.documents_dropped);
  }
}

TEST(SftLabelsTest, AChunkOfPromptsAloneIsNothingToLearnFrom) {
  const PackerOptions options{PackMode::kBestFit, OverflowPolicy::kDrop, 8, 500};
  const Packed packed = Pack(options, {{{1, 2, 3}, {false, false, false}}, {{4, 5}, {true, false}}});
  const test::MemoryShardSet set(packed.chunks, 1, 1u << 20, RecordKind::kSft);
  EXPECT_EQ(test::CodeOf([&] { SampleStream(&set, {.sequence_tokens = 8}, {.workers = 0}); }),
            ErrorCode::kBadInput);
  SampleStream all(&set, {.sequence_tokens = 8, .loss_on = LossOn::kAll}, {.workers = 0});
  EXPECT_EQ(all.CountEpoch().labels, 3u);
}

}  // namespace
}  // namespace trainwright

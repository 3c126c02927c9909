#include "lib/loading/text_draws.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/rng.h"
#include "lib/loading/contrastive_cutter.h"
#include "lib/loading/draw_rules.h"

namespace trainwright {
namespace {

/// The texts of a sample by their use; of each the spans are in the record's order.
struct TextsOfRecord {
  const SampleSpan* query = nullptr;
  std::vector<const SampleSpan*> positives, negatives;
};

TextsOfRecord TextsOf(const Sample& sample) {
  TextsOfRecord texts;
  for (const SampleSpan& span : sample.spans()) {
    switch (DecodeTextTag(span.tag).use) {
      case TextUse::kQuery:
        texts.query = &span;
        break;
      case TextUse::kPositive:
        texts.positives.push_back(&span);
        break;
      case TextUse::kNegative:
        texts.negatives.push_back(&span);
        break;
      case TextUse::kGenerative:
        break;
    }
  }
  TRAINWRIGHT_CHECK(texts.query != nullptr);
  return texts;
}

uint64_t HashOfPooled(const Sample& sample, const SampleSpan& span) {
  return HashOfTokens(sample.TokensOf(span, DecodeTextTag(span.tag).instruction_tokens));
}

void PackText(const Sample& sample, const SampleSpan& span, uint32_t record, PackedBatch* batch) {
  const TextTag tag = DecodeTextTag(span.tag);
  const std::vector<uint8_t> no_labels(span.tokens, 0);
  sample.AppendSpanTo(span, no_labels, batch);
  batch->notes.push_back({.use = tag.use,
                          .first_pooled = tag.instruction_tokens,
                          .record = record,
                          .text_hash = HashOfPooled(sample, span)});
}

}  // namespace

uint64_t HashOfTokens(std::span<const uint32_t> tokens) {
  static_assert(std::endian::native == std::endian::little);
  return Xxh3({reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size_bytes()});
}

std::vector<uint32_t> DrawWithoutReplacement(uint32_t count, uint64_t wanted, uint64_t key) {
  TRAINWRIGHT_CHECK(count >= 1);
  const uint64_t length = (wanted + count - 1) / count * count;
  std::vector<uint64_t> list(length);
  std::iota(list.begin(), list.end(), uint64_t{0});
  std::vector<uint32_t> drawn;
  drawn.reserve(wanted);
  for (uint64_t i = 0; i < wanted; ++i) {
    std::swap(list[i], list[i + NumberBelow(length - i, Rng::BitsOf(key, i))]);
    drawn.push_back(static_cast<uint32_t>(list[i] % count));
  }
  return drawn;
}

DrawnTexts DrawTexts(const TextChoice& choice, const RecordShape& record, uint64_t seed) {
  DrawnTexts drawn;
  const auto key_of = [&](const char* stream) { return Rng(seed, stream, record.set).Bits(record.ordinal); };
  if (choice.positives == 0) {
    drawn.positives.resize(record.positives);
    std::iota(drawn.positives.begin(), drawn.positives.end(), uint32_t{0});
  } else if (record.positives > 0) {
    drawn.positives = DrawWithoutReplacement(
        record.positives, std::min<uint64_t>(choice.positives, record.positives), key_of("grit positives"));
  }
  if (record.negatives > 0) {
    drawn.negatives = DrawWithoutReplacement(record.negatives, choice.negatives, key_of("grit negatives"));
  }
  return drawn;
}

bool IsRow(const Sample& sample) {
  return DecodeTextTag(sample.spans().front().tag).use == TextUse::kGenerative;
}

void PackRecord(const Sample& sample, const TextChoice& choice, uint64_t seed, uint32_t record,
                PackedBatch* batch) {
  const TextsOfRecord texts = TextsOf(sample);
  const DrawnTexts drawn = DrawTexts(choice,
                                     {.set = sample.set(),
                                      .ordinal = sample.ordinal(),
                                      .positives = static_cast<uint32_t>(texts.positives.size()),
                                      .negatives = static_cast<uint32_t>(texts.negatives.size())},
                                     seed);
  PackText(sample, *texts.query, record, batch);
  for (const uint32_t i : drawn.positives) PackText(sample, *texts.positives[i], record, batch);
  for (const uint32_t i : drawn.negatives) PackText(sample, *texts.negatives[i], record, batch);
  std::vector<bool> is_drawn(texts.positives.size());
  for (const uint32_t i : drawn.positives) is_drawn[i] = true;
  for (size_t i = 0; i < texts.positives.size(); ++i) {
    if (is_drawn[i]) continue;
    batch->undrawn_positives.push_back(
        {.record = record, .text_hash = HashOfPooled(sample, *texts.positives[i])});
  }
  ++batch->num_labels;
}

void PackRow(const Sample& sample, uint32_t record, PackedBatch* batch) {
  for (const SampleSpan& span : sample.spans()) {
    sample.AppendSpanTo(span, batch);
    batch->notes.push_back({.use = TextUse::kGenerative, .record = record});
  }
}

}  // namespace trainwright

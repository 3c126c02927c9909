#include "lib/objective/grit_groups.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "lib/base/error.h"
#include "lib/dist/gather.h"
#include "lib/dist/gather_rows.h"
#include "lib/dist/shared_work.h"

namespace trainwright {
namespace {

/// What a rank has to tell. Hashes travel as the signed numbers of the same bits.
struct TextsOfRank {
  enum Column { kPositives, kPassages, kText, kKnown, kColumns };
  std::vector<int64_t> of_queries;    ///< [queries, kColumns]
  std::vector<int64_t> passage_text;  ///< [passages]
  std::vector<int64_t> known_text;    ///< of all queries, one after the other
  int64_t queries() const { return static_cast<int64_t>(of_queries.size()) / kColumns; }
};

/// Texts of all positives of a record: those that are in the step, and those that are not.
std::vector<int64_t> KnownTexts(const PackedBatch& batch, size_t query_span, int64_t positives) {
  std::vector<int64_t> known;
  const uint32_t record = batch.notes[query_span].record;
  for (size_t k = 1; k <= static_cast<size_t>(positives); ++k) {
    known.push_back(static_cast<int64_t>(batch.notes[query_span + k].text_hash));
  }
  const auto& undrawn = batch.undrawn_positives;
  const auto first = std::lower_bound(
      undrawn.begin(), undrawn.end(), record,
      [](const UndrawnPositive& positive, uint32_t wanted) { return positive.record < wanted; });
  for (auto positive = first; positive != undrawn.end() && positive->record == record; ++positive) {
    known.push_back(static_cast<int64_t>(positive->text_hash));
  }
  return known;
}

TextsOfRank CollectTexts(const std::vector<PackedBatch>& batches, const std::vector<GritSpans>& spans,
                         bool with_texts) {
  TextsOfRank own;
  for (size_t i = 0; i < batches.size(); ++i) {
    for (size_t q = 0; q < spans[i].queries.size(); ++q) {
      const size_t span = spans[i].queries[q];
      const int64_t positives = spans[i].positives_of_query[q];
      std::vector<int64_t> known;
      if (with_texts) known = KnownTexts(batches[i], span, positives);
      own.of_queries.insert(own.of_queries.end(), {positives, spans[i].passages_of_query[q],
                                                   static_cast<int64_t>(batches[i].notes[span].text_hash),
                                                   static_cast<int64_t>(known.size())});
      own.known_text.insert(own.known_text.end(), known.begin(), known.end());
    }
    if (!with_texts) continue;
    for (const size_t span : spans[i].passages) {
      own.passage_text.push_back(static_cast<int64_t>(batches[i].notes[span].text_hash));
    }
  }
  return own;
}

/// Numbers of all ranks, one rank's behind the other's, in three parts: what takes memory is apart from what
/// ranks do together, so that one that has none left keeps no other waiting.
class NumberGather {
 public:
  NumberGather(World* world, const std::vector<int64_t>& own, const std::vector<int64_t>& numbers_of_rank,
               at::Device device)
      : gather_(world,
                at::tensor(own, at::TensorOptions().dtype(at::kLong))
                    .to(world->size() > 1 ? device : at::Device(at::kCPU)),
                numbers_of_rank) {}
  /// All ranks together.
  void Gather() { all_ = gather_.Gather(); }
  std::vector<int64_t> Numbers() const {
    const at::Tensor all = all_.cpu();
    const int64_t* numbers = all.const_data_ptr<int64_t>();
    return {numbers, numbers + all.numel()};
  }

 private:
  RowGather gather_;
  at::Tensor all_;
};

std::vector<uint64_t> AsHashes(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

std::vector<int64_t> Times(std::vector<int64_t> numbers, int64_t factor) {
  for (int64_t& number : numbers) number *= factor;
  return numbers;
}

ContrastiveGroups GroupsOfTold(const std::vector<int64_t>& of_queries,
                               const std::vector<int64_t>& passage_text,
                               const std::vector<int64_t>& known_text, bool with_texts) {
  ContrastiveGroups groups;
  groups.first_passage.push_back(0);
  if (with_texts) groups.first_known.push_back(0);
  for (size_t row = 0; row < of_queries.size(); row += TextsOfRank::kColumns) {
    groups.positives.push_back(static_cast<int32_t>(of_queries[row + TextsOfRank::kPositives]));
    groups.first_passage.push_back(groups.first_passage.back() + of_queries[row + TextsOfRank::kPassages]);
    if (!with_texts) continue;
    groups.query_text.push_back(static_cast<uint64_t>(of_queries[row + TextsOfRank::kText]));
    groups.first_known.push_back(groups.first_known.back() + of_queries[row + TextsOfRank::kKnown]);
  }
  if (!with_texts) return groups;
  groups.passage_text = AsHashes(passage_text);
  groups.known_text = AsHashes(known_text);
  return groups;
}

int64_t SumBefore(const std::vector<int64_t>& of_rank, int64_t rank) {
  return std::accumulate(of_rank.begin(), of_rank.begin() + rank, int64_t{0});
}

}  // namespace

GritGroups GroupsOf(World* world, const std::vector<PackedBatch>& batches,
                    const std::vector<GritSpans>& spans, bool with_texts, int64_t leaves, at::Device device) {
  TRAINWRIGHT_CHECK(batches.size() == spans.size());
  TextsOfRank own;
  DoAlike(world, [&] { own = CollectTexts(batches, spans, with_texts); });
  int64_t own_passages = 0;
  for (const GritSpans& of_batch : spans) own_passages += of_batch.num_passages();
  GritGroups all;
  std::vector<int64_t> known_of_rank;
  for (const std::vector<int64_t>& told :
       GatherWords(world, {own.queries(), own_passages, static_cast<int64_t>(own.known_text.size())})) {
    all.queries_of_rank.push_back(told[0]);
    all.passages_of_rank.push_back(told[1]);
    known_of_rank.push_back(told[2]);
  }
  std::optional<NumberGather> of_queries, passage_text, known_text;
  DoAlike(world, [&] {
    of_queries.emplace(world, own.of_queries, Times(all.queries_of_rank, TextsOfRank::kColumns), device);
    if (!with_texts) return;
    passage_text.emplace(world, own.passage_text, all.passages_of_rank, device);
    known_text.emplace(world, own.known_text, known_of_rank, device);
  });
  for (std::optional<NumberGather>* numbers : {&of_queries, &passage_text, &known_text}) {
    if (*numbers) (*numbers)->Gather();
  }
  DoAlike(world, [&] {
    all.groups =
        GroupsOfTold(of_queries->Numbers(), with_texts ? passage_text->Numbers() : std::vector<int64_t>(),
                     with_texts ? known_text->Numbers() : std::vector<int64_t>(), with_texts);
  });
  const int64_t rank = world->rank();
  all.share.begin_query = SumBefore(all.queries_of_rank, rank);
  all.share.end_query = all.share.begin_query + own.queries();
  all.share.begin_passage = SumBefore(all.passages_of_rank, rank);
  all.share.end_passage = all.share.begin_passage + own_passages;
  all.share.leaves = leaves;
  return all;
}

int64_t CountRepeatedPassages(const ContrastiveGroups& groups) {
  std::vector<uint64_t> texts = groups.passage_text;
  std::sort(texts.begin(), texts.end());
  return texts.end() - std::unique(texts.begin(), texts.end());
}

}  // namespace trainwright

#include "lib/eval/mining_job.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/documents/contrastive_example.h"
#include "lib/embedding/block_embedder.h"
#include "lib/embedding/row_product.h"
#include "lib/embedding/text_embedder.h"
#include "lib/embedding/top_k.h"
#include "lib/eval/embed_input.h"
#include "lib/eval/identity.h"
#include "lib/eval/rank_input.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/retrieval/hard_negatives.h"

namespace trainwright {
namespace {

/// Texts by what they say, numbered in the order in which they came.
class TextPool {
 public:
  /// \returns its number, also where it was there before
  uint64_t Add(const InstructedText& text) {
    const auto [known, is_new] = rows_.try_emplace(text.text, texts_.size());
    if (is_new) texts_.push_back(text);
    return known->second;
  }
  std::optional<uint64_t> Find(const std::string& text) const {
    const auto known = rows_.find(text);
    return known == rows_.end() ? std::nullopt : std::optional<uint64_t>(known->second);
  }
  const std::vector<InstructedText>& texts() const { return texts_; }

 private:
  std::vector<InstructedText> texts_;
  std::unordered_map<std::string, uint64_t> rows_;
};

/// What some records ask alike.
struct MinedQuery {
  InstructedText text;
  size_t first_record = 0;  ///< from 1
  /// Rows of the pool that answer it in any of its records, and the lowest of their scores.
  std::set<uint64_t> positives = {};
  double positive_score = std::numeric_limits<double>::infinity();
};

/// A record that is to get negatives.
struct MinedRecord {
  std::vector<std::pair<std::string, std::string>> members;  ///< values as they are written
  size_t query = 0;                                          ///< its number
  std::vector<std::string>
      others;  ///< texts that are no negatives besides: the query, and negatives it keeps
};

/// As the records write a text.
nlohmann::ordered_json JsonOfText(const InstructedText& text) {
  if (text.instruction.empty()) return text.text;
  return nlohmann::ordered_json::array({text.instruction, text.text});
}

std::string LineOf(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string line;
  for (const auto& [name, value] : members)
    line += (line.empty() ? "{" : ",") + JsonTextOf(name) + ":" + value;
  return line + "}\n";
}

class MiningRun {
 public:
  MiningRun(const ModelFamilies& families, const EmbedSettings& settings, const ProcessSetup& process,
            World* world)
      : settings_(settings), world_(world), embedder_(families, settings.embedding, process, world) {
    RefuseToReplaceModel(settings.output, embedder_.checkpoint());
    if (!settings.mining.corpus.empty()) ReadCorpus();
    ReadRecords();
    if (settings.mining.corpus.empty()) candidates_ = pool_.texts().size();
  }

  nlohmann::ordered_json Run(ProgressMode progress) {
    Facts facts = FactsOf(embedder_.checkpoint(), embedder_.precision());
    facts["sha256 of the records"] = JsonTextOf(data_);
    RequireEqual(world_, facts);
    AsWriter(world_, [&] {  // before all that takes long
      sink_ = OpenSink(settings_.output, /*binary=*/false, /*allow_terminal=*/true);
      return 0;
    });
    const at::Tensor queries = EmbedQueries();
    const auto found = SearchPool(queries, world_->is_writer() ? progress : ProgressMode::kNever);
    AsWriter(world_, [&] {
      Write(found);
      return 0;
    });
    const Checkpoint& checkpoint = embedder_.checkpoint();
    if (world_->is_writer()) LogInfo(DescribeIdentity(checkpoint, data_));
    return {{"records", records_.size()},
            {"corpus", candidates_},
            {"negatives", negatives_},
            {"records_short", records_short_},
            {"tokens", embedder_.counts().tokens},
            {"embedding", embedder_.Description()},
            {"checkpoint", checkpoint.named},
            {"model", checkpoint.model_identity},
            {"adapter", checkpoint.adapter_identity},
            {"data", data_}};
  }

 private:
  void ReadCorpus() {
    EmbedInput input(settings_.mining.corpus, "auto", {settings_.instruction, TextRole::kPositive});
    for (EmbedText text; input.Next(&text);) {
      text.text.role = TextRole::kPositive;
      if (!text.text.text.empty()) pool_.Add(text.text);
    }
    candidates_ = pool_.texts().size();
    if (candidates_ == 0) throw Error(ErrorCode::kBadInput, settings_.mining.corpus, "holds no text");
    data_["corpus"] = input.identity();
  }

  void ReadRecords() {
    const std::string& path = settings_.mining.records;
    ContrastiveExampleReader reader;
    ContrastiveExample example;
    std::map<std::pair<std::string, std::string>, size_t> numbers;  // of queries, by instruction and text
    const std::string sha256 = ForEachTextLine(path, [&](std::string_view line, const JsonPlace& place) {
      if (const auto problem = reader.Read(line, &example)) throw place.Bad(problem->problem, problem->hint);
      MinedRecord record;
      if (!JsonOf(WithNumbersInRange(line)).is_object()) throw place.Bad("is no JSON object");
      for (const auto& [name, value] : MembersAsWritten(line)) record.members.emplace_back(name, value);
      bool has_positive = false;
      for (const InstructedText& text : example.texts) {
        if (text.role == TextRole::kQuery) {
          const std::pair<std::string, std::string> asked(text.instruction, text.text);
          record.query = numbers.try_emplace(asked, queries_.size()).first->second;
          if (record.query == queries_.size()) {
            queries_.push_back({.text = text, .first_record = records_.size() + 1});
          }
          record.others.push_back(text.text);
        } else if (text.role == TextRole::kPositive) {
          queries_[record.query].positives.insert(pool_.Add(text));
          has_positive = true;
        } else if (settings_.mining.keep_negatives) {
          record.others.push_back(text.text);
        }
      }
      if (!has_positive) throw place.Bad("has no positive");
      records_.push_back(std::move(record));
    });
    if (records_.empty()) throw Error(ErrorCode::kBadInput, path, "holds no record");
    data_["path"] = path;
    data_["sha256"] = sha256;
  }

  /// \returns ComparedRows of the queries; on the writer
  at::Tensor EmbedQueries() {
    std::vector<at::Tensor> blocks;
    BlockEmbedder embed(&embedder_, world_, [&](const at::Tensor& rows, std::span<const std::string>) {
      blocks.push_back(rows);
    });
    for (const MinedQuery& query : queries_) {
      embed.Add("", query.text, {settings_.mining.records, "record " + std::to_string(query.first_record)});
    }
    embed.Flush();
    return blocks.empty() ? at::Tensor() : at::cat(blocks);
  }

  /// Numbers of a record's own texts, and of its query's other positives.
  std::set<uint64_t> ExcludedOf(const MinedRecord& record) const {
    std::set<uint64_t> excluded = queries_[record.query].positives;
    for (const std::string& text : record.others) {
      if (const auto row = pool_.Find(text)) excluded.insert(*row);
    }
    return excluded;
  }

  /// Embeds the pool, and finds the nearest candidates and the positives' scores; on the writer.
  std::vector<std::vector<ScoredRow>> SearchPool(const at::Tensor& queries, ProgressMode mode) {
    std::optional<TopK> top;
    std::vector<std::pair<uint64_t, size_t>> positives;  // rows and whose they are, rows rising
    if (world_->is_writer()) {
      const auto places = static_cast<size_t>(settings_.mining.last_place);
      std::vector<size_t> depths(queries_.size(), places);
      for (const MinedRecord& record : records_) {
        size_t& depth = depths[record.query];
        depth = std::max(depth, places + ExcludedOf(record).size());
      }
      for (size_t i = 0; i < queries_.size(); ++i) {
        for (const uint64_t row : queries_[i].positives) positives.emplace_back(row, i);
      }
      std::sort(positives.begin(), positives.end());
      top.emplace(queries, std::move(depths), [](uint64_t a, uint64_t b) { return a < b; });
    }
    Progress progress(mode, "embed", pool_.texts().size(), "texts");
    uint64_t done = 0;
    auto next = positives.begin();
    BlockEmbedder embed(&embedder_, world_, [&](const at::Tensor& rows, std::span<const std::string>) {
      const auto count = static_cast<uint64_t>(rows.size(0));
      for (; next != positives.end() && next->first < done + count; ++next) {
        ScorePositive(queries, rows, static_cast<int64_t>(next->first - done), next->second);
      }
      const uint64_t last = std::min(done + count, candidates_);
      if (last > done) top->Add(rows.narrow(0, 0, static_cast<int64_t>(last - done)));
      done += count;
      progress.Update(done);
    });
    for (size_t i = 0; i < pool_.texts().size(); ++i) {
      embed.Add("", pool_.texts()[i], {"the corpus", "text " + std::to_string(i + 1)});
    }
    embed.Flush();
    return top ? top->Take() : std::vector<std::vector<ScoredRow>>();
  }

  void ScorePositive(const at::Tensor& queries, const at::Tensor& rows, int64_t row, size_t query) {
    const int64_t columns = queries.size(1);
    const float* const q = queries.const_data_ptr<float>() + static_cast<int64_t>(query) * columns;
    const float* const x = rows.const_data_ptr<float>() + row * columns;
    // Rounded as a candidate's score, with which it is compared.
    const auto score = static_cast<float>(RowProduct(q, x, columns));
    queries_[query].positive_score = std::min(queries_[query].positive_score, static_cast<double>(score));
  }

  void Write(const std::vector<std::vector<ScoredRow>>& found) {
    const NegativeRules rules = {.negatives = settings_.mining.negatives,
                                 .first_place = settings_.mining.first_place,
                                 .last_place = settings_.mining.last_place,
                                 .relative_margin = settings_.mining.relative_margin};
    for (MinedRecord& record : records_) {
      const auto rows = ChooseNegatives(found[record.query], ExcludedOf(record),
                                        queries_[record.query].positive_score, rules);
      auto neg = std::find_if(record.members.begin(), record.members.end(),
                              [](const auto& member) { return member.first == "neg"; });
      if (neg == record.members.end()) neg = record.members.insert(neg, {"neg", "[]"});
      nlohmann::ordered_json negatives = nlohmann::ordered_json::array();
      if (settings_.mining.keep_negatives) negatives = OrderedJsonOf(neg->second);
      for (const uint64_t row : rows) negatives.push_back(JsonOfText(pool_.texts()[row]));
      neg->second = JsonTextOf(negatives);
      sink_->Write(AsBytes(LineOf(record.members)));
      negatives_ += rows.size();
      records_short_ += static_cast<int64_t>(rows.size()) < rules.negatives ? 1 : 0;
    }
    sink_->Commit();
    if (records_short_ > 0) {
      LogWarning(FormatNumberOf(records_short_, "record") + " got fewer than " +
                 FormatNumberOf(static_cast<uint64_t>(rules.negatives), "negative"));
      LogHint("a larger --corpus, a greater --last-place or a smaller --relative-margin gives more",
              LogLevel::kWarning);
    }
  }

  const EmbedSettings& settings_;
  World* world_;
  TextEmbedder embedder_;
  TextPool pool_;
  uint64_t candidates_ = 0;  // the first of the pool, which may become negatives
  std::vector<MinedRecord> records_;
  std::vector<MinedQuery> queries_;  // of these, each but once
  std::unique_ptr<ByteSink> sink_;   // the writer's
  nlohmann::ordered_json data_;
  uint64_t negatives_ = 0, records_short_ = 0;
};

}  // namespace

nlohmann::ordered_json RunMining(const ModelFamilies& families, const EmbedSettings& settings,
                                 const ProcessSetup& process, World* world, ProgressMode progress) {
  RefuseSharedPipe(world->size(), "--mine-negatives", settings.mining.records);
  RefuseSharedPipe(world->size(), "--corpus", settings.mining.corpus);
  RefuseToReplaceInputs(settings.output, {settings.mining.records, settings.mining.corpus});
  return WithMemoryErrors(
      [] {
        return MemoryUser{"mining of negatives", "lower --batch-tokens or --max-length"};
      },
      [&] {
        std::optional<MiningRun> run;
        DoAlike(world, [&] { run.emplace(families, settings, process, world); });
        return run->Run(progress);
      });
}

}  // namespace trainwright

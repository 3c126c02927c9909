#include "lib/eval/retrieval_job.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/device/memory_error.h"
#include "lib/dist/equal_facts.h"
#include "lib/dist/shared_work.h"
#include "lib/embedding/block_embedder.h"
#include "lib/embedding/text_embedder.h"
#include "lib/embedding/vector_search.h"
#include "lib/eval/identity.h"
#include "lib/eval/rank_input.h"
#include "lib/eval/retrieval_report.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/random_reader.h"
#include "lib/retrieval/bm25.h"
#include "lib/retrieval/compared_vectors.h"
#include "lib/retrieval/corpus.h"
#include "lib/retrieval/document_ids.h"
#include "lib/retrieval/qrels.h"
#include "lib/retrieval/run_file.h"
#include "lib/retrieval/vector_reader.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr size_t kDocumentsOfBlock = 2048;
constexpr char kRunTag[] = "trainwright";

/// The queries that are judged, in their file's order.
struct JudgedQueries {
  std::vector<std::string> ids, texts;
  uint64_t not_judged = 0;
};

/// \returns the SHA-256 of the bytes read
std::string ReadJudgedQueries(const std::string& path, const Qrels& qrels, JudgedQueries* queries) {
  DocumentIds ids;
  const std::string sha256 = ForEachRetrievalText(path, [&](RetrievalText&& query, const JsonPlace&) {
    ids.Add(query.id);
    if (!qrels.contains(query.id)) {
      ++queries->not_judged;
      return;
    }
    queries->ids.push_back(std::move(query.id));
    queries->texts.push_back(std::move(query.text));
  });
  ids.Index(path);
  if (queries->ids.empty()) {
    throw Error(ErrorCode::kBadInput, path, "has no query that --qrels judges", "",
                "give the judgements of these queries, with the same ids");
  }
  return sha256;
}

/// What is measured.
struct RetrievalSystem {
  std::string name;
  RetrievalRun run;
};

class RetrievalMeasurement {
 public:
  RetrievalMeasurement(const ModelFamilies& families, const RetrievalSettings& settings,
                       const ProcessSetup& process, World* world)
      : settings_(settings), world_(world) {
    std::string sha256;
    qrels_ = ReadQrels(settings.qrels, &sha256);
    data_["qrels"] = {{"path", settings.qrels}, {"sha256", sha256}};
    if (!settings.queries.empty()) {
      const std::string hash = ReadJudgedQueries(settings.queries, qrels_, &queries_);
      data_["queries"] = {{"path", settings.queries}, {"sha256", hash}};
    }
    if (!settings.embedding.checkpoint.empty()) {
      embedder_ = std::make_unique<TextEmbedder>(families, settings.embedding, process, world);
      RefuseToReplaceModel(settings.run_out, embedder_->checkpoint());
    }
  }

  nlohmann::ordered_json Run(ProgressMode progress) {
    if (embedder_) {
      Facts facts = FactsOf(embedder_->checkpoint(), embedder_->precision());
      facts["the queries and their judgements"] = JsonTextOf(data_);
      RequireEqual(world_, facts);
    }
    OpenRunFile();
    std::vector<RetrievalSystem> systems;
    if (embedder_) {
      systems.push_back({"model", RunOfModel(world_->is_writer() ? progress : ProgressMode::kNever)});
    } else {
      DoAlike(world_, [&] {
        if (!world_->is_writer()) return;
        if (settings_.run.empty()) {
          systems.push_back({"vectors", RunOfVectors()});
        } else {
          std::string sha256;
          systems.push_back({"run", ReadRun(settings_.run, &sha256)});
          data_["run"] = {{"path", settings_.run}, {"sha256", sha256}};
        }
      });
    }
    nlohmann::ordered_json result;
    AsWriter(world_, [&] {
      if (settings_.baseline == "bm25") {
        RetrievalRun baseline = RunOfBm25(systems.front().run);
        systems.push_back({"bm25", std::move(baseline)});
      }
      if (run_sink_) {
        WriteRun(systems.front().run, kRunTag, run_sink_.get());
        run_sink_->Commit();
      }
      result = Result(systems);
      return 0;
    });
    return result;
  }

 private:
  /// Before all that takes long: a run that could not be written would have been found in vain.
  void OpenRunFile() {
    if (settings_.run_out.empty()) return;
    AsWriter(world_, [&] {
      run_sink_ = OpenSink(settings_.run_out, /*binary=*/false, /*allow_terminal=*/true);
      for (const std::string& id : queries_.ids) CheckRunId(id);
      return 0;
    });
  }

  RetrievalRun RunOfModel(ProgressMode mode) {
    std::vector<at::Tensor> blocks;  // of the queries; the writer's
    BlockEmbedder embed_queries(
        embedder_.get(), world_,
        [&](const at::Tensor& rows, std::span<const std::string>) { blocks.push_back(rows); });
    for (size_t i = 0; i < queries_.ids.size(); ++i) {
      embed_queries.Add(queries_.ids[i], {settings_.query_instruction, queries_.texts[i], TextRole::kQuery},
                        {settings_.queries, "query " + Quoted(queries_.ids[i])});
    }
    embed_queries.Flush();
    std::optional<VectorSearch> search;
    if (world_->is_writer()) search.emplace(at::cat(blocks), settings_.top_k + 1);  // see WithoutOwn
    BlockEmbedder embed_corpus(
        embedder_.get(), world_,
        [&](const at::Tensor& rows, std::span<const std::string> ids) { search->Add(rows, ids); });
    Progress progress(mode, "evaluate", 0, "documents");
    uint64_t documents = 0;
    std::unordered_set<std::string> names;  // to tell of a second one before all of them are embedded
    const std::string sha256 = ForEachRetrievalText(settings_.corpus, [&](RetrievalText&& document,
                                                                          const JsonPlace& place) {
      if (!settings_.run_out.empty()) CheckRunId(document.id);
      if (!names.insert(document.id).second) {
        throw place.Bad("has the id " + Quoted(document.id) + ", which a line before it has",
                        "give every text an id of its own");
      }
      embed_corpus.Add(std::move(document.id),
                       {settings_.passage_instruction, std::move(document.text), TextRole::kPositive}, place);
      progress.Update(++documents);
    });
    embed_corpus.Flush();
    NoteCorpus(documents, sha256);
    RequireEqual(world_, {{"sha256 of the corpus", sha256}});
    RetrievalRun run;
    DoAlike(world_, [&] {
      if (world_->is_writer()) run = Found(&*search, settings_.corpus, queries_.ids);
    });
    return run;
  }

  /// What was read of --corpus, which the baseline reads again.
  void NoteCorpus(uint64_t documents, const std::string& sha256) {
    if (documents == 0) throw Error(ErrorCode::kBadInput, settings_.corpus, "holds no document");
    const nlohmann::ordered_json read = {{"path", settings_.corpus}, {"sha256", sha256}};
    if (data_.contains("corpus") && data_["corpus"] != read) {
      throw Error(ErrorCode::kBadInput, settings_.corpus, "was written to between its two readings");
    }
    data_["corpus"] = read;
  }

  RetrievalRun RunOfVectors() {
    const ComparedVectors vectors = OpenComparedVectors(settings_.query_vectors, settings_.corpus_vectors,
                                                        settings_.embedding.truncate_dim);
    const auto unit_rows = [&](std::span<const float> values) {
      return UnitRows(values, vectors.columns, vectors.kept_columns);
    };
    std::vector<std::string> query_ids;
    const std::vector<float> queries = ReadAllVectors(vectors.first.get(), &query_ids);
    DocumentIds unique;
    for (const std::string& id : query_ids) unique.Add(id);
    // Rows without ids have their numbers for names, which those of the other file have, too.
    names_count_rows_ = true;
    for (size_t row = 0; names_count_rows_ && row < query_ids.size(); ++row) {
      names_count_rows_ = query_ids[row] == std::to_string(row);
    }
    unique.Index(settings_.query_vectors);
    VectorSearch search(unit_rows(queries), settings_.top_k + 1);  // see WithoutOwn
    std::vector<float> rows;
    std::vector<std::string> ids;
    while (vectors.second->Read(kDocumentsOfBlock, &rows, &ids) > 0) search.Add(unit_rows(rows), ids);
    data_["query_vectors"] = {{"path", settings_.query_vectors}, {"sha256", vectors.first->Sha256()}};
    data_["corpus_vectors"] = {{"path", settings_.corpus_vectors}, {"sha256", vectors.second->Sha256()}};
    return Found(&search, settings_.corpus_vectors, query_ids);
  }

  /// The run of a search, which knows by then which documents there are.
  RetrievalRun Found(VectorSearch* search, const std::string& corpus, std::span<const std::string> queries) {
    RetrievalRun run = search->Take(corpus, queries);
    NoteDocuments(search->documents());
    return WithoutOwn(std::move(run), static_cast<size_t>(settings_.top_k), &own_left_out_);
  }

  /// A document with the query's name is the query itself, as in BEIR's ArguAna: found first, it answers
  /// nothing. One that is judged relevant stays.
  /// \param run one document deeper than `depth`
  /// \param left_out counts the documents that are left out
  RetrievalRun WithoutOwn(RetrievalRun run, size_t depth, uint64_t* left_out) const {
    for (auto& [query, ranking] : run) {
      if (!names_count_rows_ && !IsRelevant(query, query)) {
        *left_out += std::erase_if(
            ranking, [&name = query](const RankedDocument& document) { return document.id == name; });
      }
      if (ranking.size() > depth) ranking.resize(depth);
    }
    return run;
  }

  bool IsRelevant(const std::string& document, const std::string& query) const {
    const auto judged = qrels_.find(query);
    if (judged == qrels_.end()) return false;
    const auto grade = judged->second.find(document);
    return grade != judged->second.end() && grade->second > 0;
  }

  void NoteDocuments(const DocumentIds& documents) {
    documents_ = documents.size();
    std::set<std::string> missing;
    for (const auto& [query, judgements] : qrels_) {
      for (const auto& [document, grade] : judgements) {
        if (!documents.Find(document)) missing.insert(document);
      }
    }
    documents_missing_ = missing.size();
    if (missing.empty()) return;
    LogWarning(FormatNumberOf(missing.size(), "judged document") + " not in the corpus, such as " +
               Quoted(*missing.begin()) + "; they count as not found");
  }

  /// Documents that a query's ranking has at most. Beside a run as many as its longest has: no other depth
  /// would make recall and MAP of both the same measures.
  size_t DepthBeside(const RetrievalRun& beside) const {
    if (settings_.run.empty()) return static_cast<size_t>(settings_.top_k);
    size_t depth = 0;
    for (const auto& [query, ranking] : beside) depth = std::max(depth, ranking.size());
    return depth;
  }

  /// \param beside what it is compared with: it ranks for the same queries, so that both means are over them
  RetrievalRun RunOfBm25(const RetrievalRun& beside) {
    Bm25Index index;
    DocumentIds documents;
    const std::string sha256 =
        ForEachRetrievalText(settings_.corpus, [&](RetrievalText&& document, const JsonPlace&) {
          index.Add(document.text);
          documents.Add(std::move(document.id));
        });
    NoteCorpus(documents.size(), sha256);
    documents.Index(settings_.corpus);
    if (documents_ == 0) NoteDocuments(documents);  // a run's own were not read
    const bool all = settings_.metrics.averaged == AveragedQueries::kAll;
    std::vector<std::string> ids;
    std::vector<std::vector<ScoredRow>> rows;
    const size_t depth = DepthBeside(beside);
    for (size_t i = 0; i < queries_.ids.size(); ++i) {
      if (!all && !beside.contains(queries_.ids[i])) continue;
      ids.push_back(queries_.ids[i]);
      rows.push_back(index.Search(queries_.texts[i], depth + 1, documents.LaterNameFirst()));
    }
    const bool is_measured = std::any_of(
        beside.begin(), beside.end(), [this](const auto& ranked) { return qrels_.contains(ranked.first); });
    if (ids.empty() && is_measured) {
      throw Error(ErrorCode::kBadInput, settings_.queries, "has no judged query that is ranked", "",
                  "give the texts of the queries, with the same ids");
    }
    uint64_t left_out = 0;
    return WithoutOwn(RunOfRows(rows, documents, ids), depth, &left_out);
  }

  /// Where a mean is over fewer queries than that of the first system, as the texts of others are missing.
  void WarnOfFewerQueries(const RetrievalSystem& system, const RankingScores& scores,
                          const RetrievalSystem& first, const RankingScores& scores_of_first) const {
    const auto missing = std::find_if(
        scores_of_first.queries.begin(), scores_of_first.queries.end(), [&](const std::string& query) {
          return !std::binary_search(scores.queries.begin(), scores.queries.end(), query);
        });
    if (missing == scores_of_first.queries.end()) return;
    LogWarning(system.name + " is measured on " + std::to_string(scores.queries.size()) + " of the " +
               std::to_string(scores_of_first.queries.size()) + " queries that " + first.name +
               " is: " + settings_.queries + " lacks the others, such as " + Quoted(*missing));
  }

  nlohmann::ordered_json Result(const std::vector<RetrievalSystem>& systems) const {
    std::vector<DescribedSystem> described;
    std::optional<RankingScores> first;
    for (const RetrievalSystem& system : systems) {
      const RankingScores scores = ScoreRun(qrels_, system.run, settings_.metrics);
      described.push_back({system.name, DescribeScores(scores, settings_.bootstrap_draws, settings_.seed)});
      if (first) {
        WarnOfFewerQueries(system, scores, systems.front(), *first);
        described.back().scores["queries"] = scores.queries.size();
      } else {
        first = scores;
      }
    }
    nlohmann::ordered_json result = {{"metric", "retrieval"}, {"system", systems.front().name}};
    result.update(described.front().scores);
    const bool is_linear = settings_.metrics.gain == Gain::kLinear;
    const bool is_run = settings_.metrics.averaged == AveragedQueries::kRun;
    result.update({{"queries", first->queries.size()},
                   {"queries_of_run", first->queries_of_run},
                   {"queries_judged", first->queries_judged},
                   {"queries_in_common", first->queries_in_common},
                   {"queries_without_relevant", first->queries_without_relevant},
                   {"queries_not_judged",
                    embedder_ ? queries_.not_judged : first->queries_of_run - first->queries_in_common},
                   {"average", is_run ? "run" : "all"},
                   {"gain", is_linear ? "linear" : "exp"},
                   {"top_k", settings_.run.empty() ? nlohmann::ordered_json(settings_.top_k)
                                                   : nlohmann::ordered_json()},
                   {"bootstrap", settings_.bootstrap_draws},
                   {"corpus", documents_ > 0 ? nlohmann::ordered_json(documents_) : nlohmann::ordered_json()},
                   {"judged_documents_missing", documents_missing_},
                   {"own_documents_left_out", own_left_out_}});
    nlohmann::ordered_json baselines = nlohmann::ordered_json::object();
    for (size_t i = 1; i < described.size(); ++i) baselines[described[i].name] = described[i].scores;
    result["baselines"] = baselines;
    if (embedder_) {
      result.update(embedder_->CountsAndMaker());
      WarnOfTexts(embedder_->counts());
    }
    result["data"] = data_;
    TellScores(described);
    return result;
  }

  const RetrievalSettings& settings_;
  World* world_;
  Qrels qrels_;
  JudgedQueries queries_;  // of the queries' file, where there is one
  std::unique_ptr<TextEmbedder> embedder_;
  std::unique_ptr<ByteSink> run_sink_;  // the writer's, where the run is to be written
  nlohmann::ordered_json data_;         // what was read, with its hashes
  uint64_t documents_ = 0, documents_missing_ = 0;
  uint64_t own_left_out_ = 0;  // of the first system's rankings
  bool names_count_rows_ = false;
};

}  // namespace

nlohmann::ordered_json RunRetrieval(const ModelFamilies& families, const RetrievalSettings& settings,
                                    const ProcessSetup& process, World* world, ProgressMode progress) {
  RefuseSharedPipe(world->size(), "--corpus", settings.corpus);
  RefuseSharedPipe(world->size(), "--queries", settings.queries);
  RefuseSharedPipe(world->size(), "--qrels", settings.qrels);
  RefuseToReplaceInputs(settings.run_out, {settings.corpus, settings.queries, settings.qrels, settings.run,
                                           settings.query_vectors, settings.corpus_vectors});
  if (!settings.baseline.empty() && !settings.embedding.checkpoint.empty() && IsReadOnce(settings.corpus)) {
    throw Error(ErrorCode::kUsage, "--corpus",
                "can be read once only, and --baseline reads it besides the model", "", "write it to a file");
  }
  return WithMemoryErrors(
      [] {
        return MemoryUser{"evaluation of retrieval", "lower --batch-tokens or --top-k"};
      },
      [&] {
        std::optional<RetrievalMeasurement> run;
        DoAlike(world, [&] { run.emplace(families, settings, process, world); });
        return run->Run(progress);
      });
}

}  // namespace trainwright

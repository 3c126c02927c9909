#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "lib/base/rng.h"
#include "lib/embedding/embedding_spec.h"
#include "lib/embedding/similarity.h"
#include "lib/eval/embed_job.h"
#include "lib/eval/retrieval_job.h"
#include "lib/eval/sts_job.h"
#include "lib/retrieval/run_file.h"
#include "lib/retrieval/vector_reader.h"
#include "lib/retrieval/vector_writer.h"
#include "tests/eval/bytes_model.h"
#include "tests/model/families.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using testing::HasSubstr;

class RetrievalTest : public testing::Test {
 protected:
  std::string Put(const std::string& name, const std::string& content) const {
    test::WriteFile(folder_.path(name), content);
    return folder_.path(name);
  }
  /// A .npy file with its ids.
  std::string PutVectors(const std::string& name, uint32_t columns, const std::vector<float>& values,
                         const std::vector<std::string>& ids) const {
    MemorySink sink;
    VectorWriter writer({.format = VectorFormat::kNpy, .columns = columns}, &sink, &sink);
    writer.Add(values, {});
    writer.Finish();
    std::string lines;
    for (const std::string& id : ids) lines += id + "\n";
    Put(name + ".ids", lines);
    return Put(name, std::string(AsText(sink.bytes())));
  }
  static nlohmann::ordered_json Evaluate(const RetrievalSettings& settings, World* world = Solo()) {
    return RunRetrieval(test::Families(), settings, ProcessSetup{}, world, ProgressMode::kNever);
  }
  static nlohmann::ordered_json Sts(const StsSettings& settings) {
    return RunSts(test::Families(), settings, ProcessSetup{}, Solo());
  }
  test::TemporaryFolder folder_;
};

/// Along the axes: document c is nearest to the query, then a and b, which are equal, then d.
TEST_F(RetrievalTest, VectorsRankByTheirCosineWhateverTheirLengths) {
  RetrievalSettings settings;
  settings.query_vectors = PutVectors("q.npy", 2, {3, 0}, {"q"});
  settings.corpus_vectors = PutVectors("d.npy", 2, {1, 1, 16, 16, 0.5F, 0, -9, 0.1F}, {"a", "b", "c", "d"});
  settings.qrels = Put("qrels", "q 0 a 1\n");
  settings.run_out = folder_.path("run");
  const auto result = Evaluate(settings);
  EXPECT_EQ(result["mrr_at_10"], 1.0 / 3) << "b goes before a";
  EXPECT_EQ(result["ndcg_at_10"], 0.5);
  EXPECT_EQ(result["corpus"], 4);
  EXPECT_EQ(result["system"], "vectors");
  EXPECT_THAT(test::ReadFile(folder_.path("run")),
              testing::StartsWith("q Q0 c 1 1 trainwright\nq Q0 b 2 0.7071"));
}

TEST_F(RetrievalTest, AWrittenRunScoresTheSame) {
  const Rng rng(1, "vectors");
  std::vector<float> queries(5 * 8), corpus(300 * 8);
  rng.FillNormal(0, queries.size(), 1, queries.data());
  rng.FillNormal(1000, corpus.size(), 1, corpus.data());
  std::vector<std::string> query_ids, ids;
  std::string qrels;
  for (int i = 0; i < 300; ++i) ids.push_back("d" + std::to_string(i));
  for (int i = 0; i < 5; ++i) {
    query_ids.push_back("q" + std::to_string(i));
    for (int k = 0; k < 20; ++k)
      qrels += "q" + std::to_string(i) + " 0 d" + std::to_string(k * 13 + i) + " 2\n";
  }
  RetrievalSettings settings;
  settings.query_vectors = PutVectors("q.npy", 8, queries, query_ids);
  settings.corpus_vectors = PutVectors("d.npy", 8, corpus, ids);
  settings.qrels = Put("qrels", qrels);
  settings.run_out = folder_.path("run");
  auto found = Evaluate(settings);
  settings.run = settings.run_out;
  settings.run_out.clear();
  settings.query_vectors.clear();
  settings.corpus_vectors.clear();
  auto scored = Evaluate(settings);
  for (const char* name : {"ndcg_at_10", "recall_at_100", "map", "ndcg_at_10_interval"}) {
    EXPECT_EQ(scored[name], found[name]) << name;
  }
}

TEST_F(RetrievalTest, IntervalsHoldTheMeanAndVanishWithoutDraws) {
  RetrievalSettings settings;
  settings.run = Put("run", "q1 Q0 a 1 1 x\nq2 Q0 a 1 1 x\nq3 Q0 b 1 1 x\n");
  settings.qrels = Put("qrels", "q1 0 a 1\nq2 0 a 1\nq3 0 a 1\n");
  const auto with = Evaluate(settings);
  EXPECT_LE(with["map_interval"][0].get<double>(), 2.0 / 3);
  EXPECT_GE(with["map_interval"][1].get<double>(), 2.0 / 3);
  settings.bootstrap_draws = 0;
  EXPECT_FALSE(Evaluate(settings).contains("map_interval"));
}

TEST_F(RetrievalTest, JudgedDocumentsThatTheCorpusLacksAreCountedAndStayRelevant) {
  RetrievalSettings settings;
  settings.query_vectors = PutVectors("q.npy", 1, {1}, {"q"});
  settings.corpus_vectors = PutVectors("d.npy", 1, {1, 0.5F}, {"a", "b"});
  settings.qrels = Put("qrels", "q 0 a 1\nq 0 gone 1\n");
  const auto result = Evaluate(settings);
  EXPECT_EQ(result["judged_documents_missing"], 1);
  EXPECT_EQ(result["recall_at_10"], 0.5);
}

/// The text of a query stands in the corpus under the query's name, as in BEIR's ArguAna.
class OwnDocumentTest : public RetrievalTest {
 protected:
  OwnDocumentTest() {
    settings_.query_vectors = PutVectors("q.npy", 2, {1, 0}, {"a"});
    settings_.corpus_vectors = PutVectors("d.npy", 2, {1, 0, 1, 0.1F, 0, 1}, {"a", "b", "c"});
    settings_.qrels = Put("qrels", "a 0 b 1\n");
  }
  RetrievalSettings settings_;
};

TEST_F(OwnDocumentTest, IsLeftOutOfTheRanking) {
  const auto result = Evaluate(settings_);
  EXPECT_EQ(result["mrr_at_10"], 1.0) << "not half, behind the query itself";
  EXPECT_EQ(result["own_documents_left_out"], 1);
}

TEST_F(OwnDocumentTest, IsReplacedByTheNextDocumentOfTheRanking) {
  settings_.top_k = 2;
  settings_.run_out = folder_.path("run");
  Evaluate(settings_);
  EXPECT_THAT(test::ReadFile(settings_.run_out),
              testing::AllOf(testing::StartsWith("a Q0 b 1 "), HasSubstr("\na Q0 c 2 ")));
}

TEST_F(OwnDocumentTest, StaysWhereItIsJudgedRelevant) {
  settings_.qrels = Put("qrels", "a 0 a 1\n");
  const auto result = Evaluate(settings_);
  EXPECT_EQ(result["mrr_at_10"], 1.0);
  EXPECT_EQ(result["own_documents_left_out"], 0);
}

TEST_F(OwnDocumentTest, RowsWithoutIdsAreNotTheQueriesOfTheirNumbers) {
  settings_.query_vectors = PutVectors("unnamed-q.npy", 2, {1, 0}, {});
  settings_.corpus_vectors = PutVectors("unnamed-d.npy", 2, {1, 0, 0, 1}, {});
  for (const std::string& path : {settings_.query_vectors, settings_.corpus_vectors}) {
    std::filesystem::remove(path + ".ids");
  }
  settings_.qrels = Put("qrels", "0 0 1 1\n");
  const auto result = Evaluate(settings_);
  EXPECT_EQ(result["mrr_at_10"], 0.5);
  EXPECT_EQ(result["own_documents_left_out"], 0);
}

TEST_F(OwnDocumentTest, StaysInARunThatIsRead) {
  RetrievalSettings settings;
  settings.run = Put("run", "a Q0 a 1 2 x\na Q0 b 2 1 x\n");
  settings.qrels = settings_.qrels;
  EXPECT_EQ(Evaluate(settings)["mrr_at_10"], 0.5);
}

TEST_F(RetrievalTest, BadInputsAreNamed) {
  RetrievalSettings settings;
  settings.query_vectors = PutVectors("q.npy", 1, {1}, {"q"});
  settings.corpus_vectors = PutVectors("d.npy", 2, {1, 0.5F}, {"a"});
  settings.qrels = Put("qrels", "q 0 a 1\n");
  EXPECT_THAT(test::MessageOf([&] { Evaluate(settings); }), HasSubstr("vectors of 1 numbers"));
  settings.corpus_vectors = PutVectors("e.npy", 1, {1, 0.5F}, {"a", "a"});
  EXPECT_THAT(test::MessageOf([&] { Evaluate(settings); }), HasSubstr("\"a\" twice"));
  settings.corpus_vectors = PutVectors("f.npy", 1, {1, 0.5F}, {"a", "b"});
  settings.qrels = Put("other", "r 0 a 1\n");
  EXPECT_THAT(test::MessageOf([&] { Evaluate(settings); }), HasSubstr("none of which is judged"));
}

TEST_F(RetrievalTest, ARunIsNotWrittenOverAnInput) {
  RetrievalSettings settings;
  settings.run = Put("run", "q Q0 a 1 1 x\n");
  settings.qrels = settings.run_out = Put("qrels", "q 0 a 1\n");
  EXPECT_EQ(test::CodeOf([&] { Evaluate(settings); }), ErrorCode::kUsage);
  EXPECT_EQ(test::ReadFile(settings.qrels), "q 0 a 1\n");
}

TEST_F(RetrievalTest, QueriesOfARunThatAreNotJudgedAreCounted) {
  RetrievalSettings settings;
  settings.run = Put("run", "q Q0 a 1 1 x\nr Q0 a 1 1 x\ns Q0 a 1 1 x\n");
  settings.qrels = Put("qrels", "q 0 a 1\n");
  EXPECT_EQ(Evaluate(settings)["queries_not_judged"], 2);
}

/// Files as BEIR has them, and a model.
class ModelRetrievalTest : public RetrievalTest {
 protected:
  ModelRetrievalTest() {
    test::WriteModel(folder_.path("model"));
    std::string corpus, queries = "{\"_id\": \"nobody\", \"text\": \"not judged\"}\n", qrels;
    for (int i = 0; i < 40; ++i) {
      const std::string number = std::to_string(i);
      corpus += "{\"_id\": \"d" + number + "\", \"title\": \"T" + number + "\", \"text\": \"the answer " +
                std::to_string(i * i) + " of " + number + "\"}\n";
    }
    for (int i = 0; i < 6; ++i) {
      queries +=
          "{\"_id\": \"q" + std::to_string(i) + "\", \"text\": \"answer " + std::to_string(i * i) + "\"}\n";
      qrels += "q" + std::to_string(i) + "\td" + std::to_string(i) + "\t1\n";
    }
    settings_.corpus = Put("corpus.jsonl", corpus);
    settings_.queries = Put("queries.jsonl", queries);
    settings_.qrels = Put("qrels.tsv", "query-id\tcorpus-id\tscore\n" + qrels);
    settings_.embedding.checkpoint = folder_.path("model");
  }
  std::string Embedded(const std::string& input) const {
    EmbedSettings embed;
    embed.embedding = settings_.embedding;
    embed.input = folder_.path(input);
    embed.output = folder_.path(input + ".npy");
    RunEmbed(test::Families(), embed, ProcessSetup{}, Solo(), ProgressMode::kNever);
    return embed.output;
  }
  RetrievalSettings settings_;
};

TEST_F(ModelRetrievalTest, ACheckpointScoresAsItsVectorsDo) {
  settings_.embedding.batch_invariant = true;
  settings_.baseline = "bm25";
  const auto model = Evaluate(settings_);
  EXPECT_EQ(model["queries_not_judged"], 1);
  EXPECT_EQ(model["queries"], 6);
  RetrievalSettings vectors = settings_;
  vectors.query_vectors = Embedded("queries.jsonl");
  vectors.corpus_vectors = Embedded("corpus.jsonl");
  vectors.embedding.checkpoint.clear();
  const auto from_vectors = Evaluate(vectors);
  for (const char* name : {"ndcg_at_10", "recall_at_10", "mrr_at_10", "map"}) {
    EXPECT_EQ(from_vectors[name], model[name]) << name;
  }
  EXPECT_EQ(from_vectors["baselines"], model["baselines"]);
}

TEST_F(ModelRetrievalTest, Bm25FindsWordsThatAreNowhereElse) {
  settings_.baseline = "bm25";
  const auto result = Evaluate(settings_);
  // 16 and 25 stand in two documents each, of which the shorter goes first; numbers of one digit are no
  // words.
  EXPECT_GE(result["baselines"]["bm25"]["mrr_at_10"].get<double>(), 2.0 / 6);
  EXPECT_GT(result["baselines"]["bm25"]["ndcg_at_10"].get<double>(), 0);
}

/// A run of q1 beside texts of q1 and q2, of which BM25 finds what is judged for q1 alone.
class RunAndBaselineTest : public RetrievalTest {
 protected:
  RunAndBaselineTest() {
    settings_.run = Put("run", "q1 Q0 d1 1 1 x\n");
    settings_.qrels = Put("qrels", "q1 0 d1 1\nq2 0 d2 1\n");
    settings_.corpus = Put("corpus.jsonl",
                           "{\"_id\": \"d1\", \"text\": \"apples grow\"}\n"
                           "{\"_id\": \"d2\", \"text\": \"pears fall\"}\n");
    settings_.queries = Put("queries.jsonl",
                            "{\"_id\": \"q1\", \"text\": \"apples\"}\n"
                            "{\"_id\": \"q2\", \"text\": \"plums\"}\n");
    settings_.baseline = "bm25";
  }
  RetrievalSettings settings_;
};

TEST_F(RunAndBaselineTest, TheBaselinesMeansAreOverTheQueriesOfTheRun) {
  const auto result = Evaluate(settings_);
  EXPECT_EQ(result["queries"], 1);
  EXPECT_EQ(result["baselines"]["bm25"]["queries"], 1);
  EXPECT_EQ(result["baselines"]["bm25"]["ndcg_at_10"], 1.0) << "not the mean with q2, which the run lacks";
}

TEST_F(RunAndBaselineTest, OverAllThatAreJudgedBothMeansAreOverAll) {
  settings_.metrics.averaged = AveragedQueries::kAll;
  const auto result = Evaluate(settings_);
  EXPECT_EQ(result["ndcg_at_10"], 0.5);
  EXPECT_EQ(result["baselines"]["bm25"]["queries"], 2);
  EXPECT_EQ(result["baselines"]["bm25"]["ndcg_at_10"], 0.5);
}

TEST_F(RunAndBaselineTest, AQueryWithoutATextIsLeftOutOfTheBaselinesMeansWithAWarning) {
  settings_.run = Put("run", "q1 Q0 d1 1 1 x\nq2 Q0 d2 1 1 x\n");
  settings_.queries = Put("queries.jsonl", "{\"_id\": \"q1\", \"text\": \"apples\"}\n");
  testing::internal::CaptureStderr();
  const auto result = Evaluate(settings_);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("bm25 is measured on 1 of the 2 queries that run is"));
  EXPECT_EQ(result["queries"], 2);
  EXPECT_EQ(result["baselines"]["bm25"]["queries"], 1);
}

TEST_F(RunAndBaselineTest, TheBaselineRanksAsManyDocumentsAsTheRun) {
  settings_.run = Put("run", "q1 Q0 d1 1 2 x\nq1 Q0 d2 2 1 x\n");
  settings_.corpus = Put("corpus.jsonl",
                         "{\"_id\": \"d1\", \"text\": \"apples grow\"}\n"
                         "{\"_id\": \"d2\", \"text\": \"apples apples\"}\n");
  settings_.top_k = 1;
  EXPECT_EQ(Evaluate(settings_)["baselines"]["bm25"]["map"], 0.5) << "of the second document";
}

TEST_F(RunAndBaselineTest, ARunHasNoTopK) {
  EXPECT_TRUE(Evaluate(settings_)["top_k"].is_null());
}

TEST_F(RunAndBaselineTest, ADocumentWithTheQuerysNameIsLeftOutOfTheBaselineToo) {
  settings_.run = Put("run", "d1 Q0 d2 1 1 x\n");
  settings_.qrels = Put("qrels", "d1 0 d2 1\n");
  settings_.corpus = Put("corpus.jsonl",
                         "{\"_id\": \"d1\", \"text\": \"apples grow\"}\n"
                         "{\"_id\": \"d2\", \"text\": \"apples fall\"}\n");
  settings_.queries = Put("queries.jsonl", "{\"_id\": \"d1\", \"text\": \"apples grow\"}\n");
  EXPECT_EQ(Evaluate(settings_)["baselines"]["bm25"]["mrr_at_10"], 1.0);
}

TEST_F(RunAndBaselineTest, JudgedDocumentsThatTheCorpusLacksAreCountedBesideARunToo) {
  settings_.qrels = Put("qrels", "q1 0 d1 1\nq1 0 gone 1\n");
  const auto result = Evaluate(settings_);
  EXPECT_EQ(result["judged_documents_missing"], 1);
  EXPECT_EQ(result["corpus"], 2);
}

TEST_F(ModelRetrievalTest, ACorpusWithoutADocumentIsRefused) {
  Put("corpus.jsonl", "\n");
  EXPECT_THAT(test::MessageOf([&] { Evaluate(settings_); }), HasSubstr("holds no document"));
}

TEST_F(ModelRetrievalTest, ADocumentsNameThatComesTwiceIsRefusedWithItsLine) {
  Put("corpus.jsonl", "{\"_id\": \"d\", \"text\": \"x\"}\n{\"_id\": \"d\", \"text\": \"y\"}\n");
  EXPECT_THAT(test::MessageOf([&] { Evaluate(settings_); }), HasSubstr("line 2"));
}

TEST_F(ModelRetrievalTest, AModelAndABaselineDoNotShareAPipe) {
  settings_.corpus = "-";
  settings_.baseline = "bm25";
  EXPECT_EQ(test::CodeOf([&] { Evaluate(settings_); }), ErrorCode::kUsage);
}

TEST_F(ModelRetrievalTest, ARunThatCannotBeWrittenIsToldBeforeTheCorpusIsRead) {
  Put("corpus.jsonl", "no document\n");
  settings_.run_out = folder_.path("missing/run");
  EXPECT_EQ(test::CodeOf([&] { Evaluate(settings_); }), ErrorCode::kIo);
}

TEST_F(ModelRetrievalTest, ANameThatNoRunHoldsIsRefusedAndNothingIsWritten) {
  Put("corpus.jsonl", "{\"_id\": \"d 0\", \"text\": \"x\"}\n");
  settings_.run_out = folder_.path("run");
  EXPECT_THAT(test::MessageOf([&] { Evaluate(settings_); }), HasSubstr("\"d 0\""));
  EXPECT_FALSE(test::NamesIn(folder_.path()).contains("run"));
}

TEST_F(ModelRetrievalTest, RanksGiveTheResultOfOne) {
  settings_.embedding.batch_tokens = 100;
  const auto evaluate = [&](World* world) { return Evaluate(settings_, world).dump(); };
  const std::string one = test::OnOneRank(evaluate);
  EXPECT_EQ(test::OnRanks(2, evaluate)[0], one);
}

TEST_F(ModelRetrievalTest, ARankWithOtherJudgementsEndsAll) {
  const std::string other = Put("other.tsv", test::ReadFile(settings_.qrels) + "q0\td9\t1\n");
  const auto messages = test::OnRanks(2, [&](World* world) {
    RetrievalSettings settings = settings_;
    if (world->rank() == 1) settings.qrels = other;
    return test::MessageOf([&] { Evaluate(settings, world); });
  });
  EXPECT_THAT(messages[1], HasSubstr("the queries and their judgements"));
  EXPECT_THAT(messages[0], HasSubstr("rank 1"));
}

TEST_F(ModelRetrievalTest, PairsCorrelateAsTheirVectorsDo) {
  const std::string pairs = Put("pairs.jsonl",
                                "{\"a\": \"to be\", \"b\": \"to be\", \"score\": 5}\n"
                                "{\"a\": \"to be\", \"b\": \"x\", \"score\": 1}\n"
                                "{\"sentence1\": \"or not\", \"sentence2\": \"or to\", \"score\": 3.5}\n");
  Put("a.txt", "to be\nto be\nor not\n");
  Put("b.txt", "to be\nx\nor to\n");
  StsSettings settings = {.embedding = settings_.embedding, .pairs = pairs};
  settings.embedding.batch_invariant = settings_.embedding.batch_invariant = true;
  const auto model = Sts(settings);
  EXPECT_EQ(model["pairs"], 3);
  StsSettings vectors = settings;
  vectors.a_vectors = Embedded("a.txt");
  vectors.b_vectors = Embedded("b.txt");
  vectors.embedding.checkpoint.clear();
  const auto from_vectors = Sts(vectors);
  EXPECT_EQ(from_vectors["spearman"], model["spearman"]);
  EXPECT_NEAR(from_vectors["pearson"].get<double>(), model["pearson"].get<double>(), 1e-12);
}

TEST_F(ModelRetrievalTest, TextsThatAreCutAreWarnedOf) {
  settings_.embedding.max_length = 4;
  testing::internal::CaptureStderr();
  Evaluate(settings_);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cut off the end of"));
}

/// A model whose vectors keep their lengths and are compared by their products.
class ProductModelTest : public ModelRetrievalTest {
 protected:
  ProductModelTest() {
    EmbeddingSpec spec;
    spec.normalize = false;
    spec.similarity = Similarity::kDot;
    Put("model/embedding.json", EncodeEmbeddingSpec(spec));
    settings_.embedding.batch_invariant = true;
  }
  double SquaredLength(const std::string& text) const {
    Put("text.txt", text + "\n");
    double squares = 0;
    for (const float value : ReadAllVectors(OpenVectors(Embedded("text.txt")).get(), nullptr)) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    return squares;
  }
};

TEST_F(ProductModelTest, DocumentsAreScoredByProducts) {
  settings_.corpus = Put("corpus.jsonl", "{\"_id\": \"d\", \"text\": \"to be\"}\n");
  settings_.queries = Put("queries.jsonl", "{\"_id\": \"q\", \"text\": \"to be\"}\n");
  settings_.qrels = Put("qrels", "q 0 d 1\n");
  settings_.run_out = folder_.path("run");
  Evaluate(settings_);
  const double squares = SquaredLength("to be");
  ASSERT_GT(std::abs(squares - 1), 0.1);
  EXPECT_NEAR(ReadRun(settings_.run_out).at("q").front().score, squares, 1e-5 * squares);
}

TEST_F(ProductModelTest, PairsAreScoredByProducts) {
  StsSettings settings;
  settings.embedding = settings_.embedding;
  settings.pairs = Put("pairs.jsonl",
                       "{\"a\": \"to be\", \"b\": \"to be\", \"score\": 5}\n"
                       "{\"a\": \"to be\", \"b\": \"x\", \"score\": 1}\n");
  settings.cosines_out = folder_.path("products.jsonl");
  Sts(settings);
  std::istringstream lines(test::ReadFile(settings.cosines_out));
  std::string first;
  ASSERT_TRUE(std::getline(lines, first));
  const double squares = SquaredLength("to be");
  EXPECT_NEAR(nlohmann::json::parse(first).at("dot").get<double>(), squares, 1e-5 * squares);
}

/// Pairs of texts that are longer than four tokens.
class ModelPairsTest : public ModelRetrievalTest {
 protected:
  ModelPairsTest() {
    pairs_.embedding = settings_.embedding;
    pairs_.pairs = Put("pairs.jsonl",
                       "{\"a\": \"to be or not\", \"b\": \"to be or\", \"score\": 5}\n"
                       "{\"a\": \"to be or not\", \"b\": \"whether\", \"score\": 1}\n");
  }
  StsSettings pairs_;
};

TEST_F(ModelPairsTest, TextsMayBeAsLongAsTheLongerOfQueriesAndPassages) {
  EmbeddingSpec spec;
  spec.query_max_len = 4;
  spec.passage_max_len = 40;
  Put("model/embedding.json", EncodeEmbeddingSpec(spec));
  const auto result = Sts(pairs_);
  EXPECT_EQ(result["texts_cut"], 0);
  EXPECT_EQ(result["embedding"]["query_max_len"], 40);
}

TEST_F(ModelPairsTest, TextsThatAreCutAreWarnedOf) {
  pairs_.embedding.max_length = 4;
  testing::internal::CaptureStderr();
  Sts(pairs_);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cut off the end of 4 texts"));
}

TEST_F(RetrievalTest, PairsHaveNoPromptOfQueries) {
  StsSettings settings;
  settings.pairs = Put("pairs.jsonl",
                       "{\"a\": \"to be\", \"b\": \"to be\", \"score\": 5}\n"
                       "{\"a\": \"to be\", \"b\": \"x\", \"score\": 1}\n"
                       "{\"a\": \"or not\", \"b\": \"or to\", \"score\": 3.5}\n");
  settings.embedding.checkpoint = folder_.path("model");
  test::WriteModel(folder_.path("model"));
  test::WriteSentenceTransformer(folder_.path("model"), "{}");
  const auto without = Sts(settings);
  test::WriteSentenceTransformer(folder_.path("model"), R"json({"query": "Find: "})json");
  EXPECT_EQ(Sts(settings)["pearson"], without["pearson"]);
}

TEST_F(RetrievalTest, PairsOfVectorsHaveTheCorrelationOfTheirCosines) {
  StsSettings settings;
  settings.a_vectors = PutVectors("a.npy", 2, {1, 0, 1, 0, 1, 0, 1, 0}, {"1", "2", "3", "4"});
  settings.b_vectors = PutVectors("b.npy", 2, {2, 0, 0, 3, -1, 0, 1, 1}, {"1", "2", "3", "4"});
  settings.pairs =
      Put("gold.jsonl", "{\"score\": 1}\n{\"score\": 0}\n{\"score\": -1}\n{\"score\": 0.70710678}\n");
  const auto result = Sts(settings);
  EXPECT_DOUBLE_EQ(result["spearman"].get<double>(), 1);
  EXPECT_NEAR(result["pearson"].get<double>(), 1, 1e-9);
}

TEST_F(RetrievalTest, TheCosineOfEachPairIsWrittenOnRequest) {
  StsSettings settings;
  settings.a_vectors = PutVectors("a.npy", 2, {1, 0, 3, 4, 1, 0}, {"1", "2", "3"});
  settings.b_vectors = PutVectors("b.npy", 2, {2, 0, 4, 3, -1, 0}, {"1", "2", "3"});
  settings.pairs = Put("gold.jsonl", "{\"score\": 5}\n{\"score\": 4.5}\n{\"score\": 0}\n");
  settings.cosines_out = folder_.path("cosines.jsonl");
  Sts(settings);
  std::istringstream lines(test::ReadFile(settings.cosines_out));
  const double cosines[] = {1, 0.96, -1}, scores[] = {5, 4.5, 0};
  std::string line;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    const auto pair = nlohmann::json::parse(line);
    EXPECT_NEAR(pair.at("cosine").get<double>(), cosines[i], 1e-6);
    EXPECT_EQ(pair.at("score"), scores[i]);
  }
  EXPECT_FALSE(std::getline(lines, line));
  settings.cosines_out = settings.pairs;
  EXPECT_EQ(test::CodeOf([&] { Sts(settings); }), ErrorCode::kUsage);
}

TEST_F(RetrievalTest, WithoutSpreadThereIsNoCorrelation) {
  StsSettings settings;
  settings.a_vectors = PutVectors("a.npy", 1, {1, 1}, {"1", "2"});
  settings.b_vectors = PutVectors("b.npy", 1, {1, 1}, {"1", "2"});
  settings.pairs = Put("gold.jsonl", "{\"score\": 1}\n{\"score\": 0}\n");
  const auto result = Sts(settings);
  EXPECT_TRUE(result["spearman"].is_null());
  EXPECT_TRUE(result["pearson_interval"][0].is_null());
}

TEST_F(RetrievalTest, BadPairsAreRefused) {
  StsSettings settings;
  settings.a_vectors = PutVectors("a.npy", 1, {1, 1}, {"1", "2"});
  settings.b_vectors = PutVectors("b.npy", 1, {1, 1}, {"1", "2"});
  const auto message = [&](const std::string& gold) {
    settings.pairs = Put("gold.jsonl", gold);
    return test::MessageOf([&] { Sts(settings); });
  };
  EXPECT_THAT(message("{\"score\": 1}\n"), HasSubstr("has 2 vectors"));
  EXPECT_THAT(message("{\"score\": 1}\n{\"score\": \"x\"}\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("{\"score\": 1}\n{}\n"), HasSubstr("line 2"));
}

}  // namespace
}  // namespace trainwright

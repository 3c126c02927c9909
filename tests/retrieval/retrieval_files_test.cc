#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/retrieval/corpus.h"
#include "lib/retrieval/document_ids.h"
#include "lib/retrieval/qrels.h"
#include "lib/retrieval/run_file.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class RetrievalFilesTest : public testing::Test {
 protected:
  std::string Write(const std::string& content) {
    test::WriteFile(folder_.path("file"), content);
    return folder_.path("file");
  }
  std::string MessageOfQrels(const std::string& content) {
    const std::string path = Write(content);
    return test::MessageOf([&] { ReadQrels(path); });
  }
  std::string MessageOfRun(const std::string& content) {
    const std::string path = Write(content);
    return test::MessageOf([&] { ReadRun(path); });
  }
  test::TemporaryFolder folder_;
};

TEST_F(RetrievalFilesTest, JudgementsOfBeirAndTrecAreTheSame) {
  const Qrels expected = {{"q1", {{"d 1", 2}, {"d2", 0}}}, {"q2", {{"d2", 1}}}};
  EXPECT_EQ(ReadQrels(Write("query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t0\r\n\nq2\td2\t1\n")), expected);
  const Qrels words = {{"q1", {{"d1", 2}, {"d2", -1}}}};
  EXPECT_EQ(ReadQrels(Write("q1 0 d1 2\nq1\t0  d2\t-1")), words);
}

TEST_F(RetrievalFilesTest, AHeaderIsNoJudgementAndNoLaterLineIsAHeader) {
  EXPECT_EQ(ReadQrels(Write("q1\td1\t1\n")).size(), 1u) << "without a header";
  EXPECT_THAT(MessageOfQrels("q1\td1\t1\nquery-id\tcorpus-id\tscore\n"), testing::HasSubstr("line 2"));
}

TEST_F(RetrievalFilesTest, BadJudgementsAreRefusedWithTheirLine) {
  EXPECT_THAT(MessageOfQrels("q1 0 d1 1\nq1 0 d2\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfQrels("q1 0 d1 1\nq1 0 d2 0.5\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfQrels("q1 0 d1 1001\n"), testing::HasSubstr("line 1"));
  EXPECT_THAT(MessageOfQrels("q1 0 d1 1\nq1 0 d1 2\n"), testing::HasSubstr("another grade"));
  EXPECT_THAT(MessageOfQrels("\n"), testing::HasSubstr("holds no relevance judgement"));
  EXPECT_EQ(ReadQrels(Write("q1 0 d1 1\nq1 0 d1 1\n")).size(), 1u) << "the same twice says the same";
}

TEST_F(RetrievalFilesTest, ARunIsRankedByItsScoresAsSinglePrecisionHasThem) {
  const RetrievalRun run = ReadRun(Write("q1 Q0 a 9 0.1 x\nq1 Q0 c 1 0.1000000001 x\nq1 Q0 b 3 5e-1 x\n"));
  EXPECT_THAT(run.at("q1"), testing::ElementsAre(RankedDocument{"b", 0.5F}, RankedDocument{"c", 0.1F},
                                                 RankedDocument{"a", 0.1F}));
}

TEST_F(RetrievalFilesTest, BadRunsAreRefused) {
  EXPECT_THAT(MessageOfRun("q Q0 a 1 1 x\nq Q0 b 1 1\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(MessageOfRun("q Q0 a 1 nan x\n"), testing::HasSubstr("line 1"));
  EXPECT_THAT(MessageOfRun("q Q0 a 1 1e99 x\n"), testing::HasSubstr("line 1"));
  EXPECT_THAT(MessageOfRun("q Q0 a 1 1 x\nq Q0 a 2 0.5 x\n"), testing::HasSubstr("\"a\" twice"));
  EXPECT_THAT(MessageOfRun(""), testing::HasSubstr("holds no ranked document"));
}

TEST_F(RetrievalFilesTest, AWrittenRunReadsBackAsItWas) {
  RetrievalRun run = {{"q2", {{"a", 0.1F}, {"b", 1e-30F}}}, {"q1", {{"z", -3.25F}, {"y", 1.0F / 3}}}};
  for (auto& [query, ranking] : run) SortRanking(&ranking);
  MemorySink sink;
  WriteRun(run, "tag", &sink);
  EXPECT_EQ(ReadRun(Write(std::string(AsText(sink.bytes())))), run);
  EXPECT_EQ(AsText(sink.bytes()).substr(0, AsText(sink.bytes()).find('\n')), "q1 Q0 y 1 0.33333334 tag");
}

TEST_F(RetrievalFilesTest, AnIdThatIsNoWordFitsNoRunFile) {
  MemorySink sink;
  for (const std::string& id :
       {std::string("a b"), std::string("a\fb"), std::string("a\0b", 3), std::string()}) {
    EXPECT_EQ(test::CodeOf([&] { WriteRun({{"q", {{id, 1}}}}, "tag", &sink); }), ErrorCode::kBadInput) << id;
  }
}

TEST_F(RetrievalFilesTest, ATitleStandsBeforeItsText) {
  std::vector<std::string> texts, ids;
  ForEachRetrievalText(
      Write("{\"_id\": \"a\", \"title\": \"T\", \"text\": \"x\"}\n"
            "{\"_id\": \"b\", \"title\": \"\", \"text\": \"y\"}\n{\"id\": 7, \"text\": \"z\"}\n"),
      [&](RetrievalText&& text, const JsonPlace&) {
        ids.push_back(text.id);
        texts.push_back(text.text);
      });
  EXPECT_THAT(ids, testing::ElementsAre("a", "b", "7"));
  EXPECT_THAT(texts, testing::ElementsAre("T x", "y", "z"));
}

TEST_F(RetrievalFilesTest, ATitleWithoutATextHasNoBlankBehindIt) {
  std::vector<std::string> texts;
  ForEachRetrievalText(Write("{\"_id\": \"a\", \"title\": \"T\", \"text\": \"\"}\n"),
                       [&](RetrievalText&& text, const JsonPlace&) { texts.push_back(text.text); });
  EXPECT_THAT(texts, testing::ElementsAre("T"));
}

TEST_F(RetrievalFilesTest, TextsWithoutAnIdOrATextAreRefusedWithTheirLine) {
  for (const char* line : {R"({"text": "x"})", R"({"_id": "", "text": "x"})", R"({"_id": 1.5, "text": "x"})",
                           R"({"_id": "a"})", R"({"_id": "a", "text": 1})", "x"}) {
    const std::string path = Write(std::string(line) + "\n");
    EXPECT_THAT(
        test::MessageOf([&] { ForEachRetrievalText(path, [](RetrievalText&&, const JsonPlace&) {}); }),
        testing::HasSubstr("line 1"))
        << line;
  }
}

TEST(DocumentIdsTest, RowsAreFoundByNameAndNamesAreUnique) {
  DocumentIds ids;
  for (const char* id : {"b", "a", "c"}) ids.Add(id);
  ids.Index("corpus");
  EXPECT_EQ(ids.Find("a"), 1u);
  EXPECT_EQ(ids.Find("c"), 2u);
  EXPECT_FALSE(ids.Find("ab").has_value());
  EXPECT_FALSE(ids.Find("d").has_value());
  EXPECT_TRUE(ids.LaterNameFirst()(2, 0));
  EXPECT_FALSE(ids.LaterNameFirst()(1, 0));
  ids.Add("a");
  EXPECT_THAT(test::MessageOf([&] { ids.Index("corpus"); }), testing::HasSubstr("the id \"a\" twice"));
}

}  // namespace
}  // namespace trainwright

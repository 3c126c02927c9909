// Where a run that goes on elsewhere finds the files that its plan names.
#include "lib/run/remembered_options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/support.h"

namespace trainwright {
namespace {

/// The path that a plan has for an option after it was looked for from `working_directory`.
std::string PathLookedFor(const std::string& path, const std::string& working_directory,
                          const std::string& type_name = "FILE") {
  const std::vector<OwnOption> own = {{.name = "counts", .initial = "", .type_name = type_name}};
  TrainPlan plan;
  plan.objective_own = {{"counts", path}, {"other", 3}};
  RelocateOwnFiles(own, working_directory, &plan);
  EXPECT_EQ(plan.objective_own.at("other"), OwnValue(3));
  return plan.objective_own.at("counts").text();
}

TEST(RelocateOwnFiles, TakesAFileThatIsNotHereFromWhereTheRunWasBegun) {
  test::TemporaryFolder folder;
  const std::string file = "only-where-the-run-was-begun.json";
  test::WriteFile(folder.path(file), "{}");
  const std::string begun = std::filesystem::path(folder.path(file)).parent_path().string();
  EXPECT_EQ(PathLookedFor(file, begun), begun + "/" + file);
  EXPECT_EQ(PathLookedFor(begun + "/" + file, "elsewhere"), begun + "/" + file);
  EXPECT_EQ(PathLookedFor("nowhere.json", begun), "nowhere.json") << "the message names it as it was given";
  EXPECT_EQ(PathLookedFor(file, ""), file);
  EXPECT_EQ(PathLookedFor("", begun), "");
  EXPECT_EQ(PathLookedFor(file, begun, "N"), file) << "a text that is no path";
}

/// The path that a checkpoint's plan has for an option, where the run's record has "new.json".
std::string PathOfCheckpoint(const std::string& path, const std::string& working_directory) {
  const std::vector<OwnOption> own = {{.name = "counts", .initial = "", .type_name = "FILE"}};
  RunRecord record;
  record.working_directory = working_directory;
  record.plan.objective_own = {{"counts", "new.json"}};
  TrainPlan plan;
  plan.objective_own = {{"counts", path}};
  TakeRecordedFiles(own, record, &plan);
  return plan.objective_own.at("counts").text();
}

TEST(TakeRecordedFiles, NamesAnewAFileThatIsNoLongerWhereTheCheckpointHasIt) {
  test::TemporaryFolder folder;
  const std::string file = "only-where-the-run-was-begun.json";
  test::WriteFile(folder.path(file), "{}");
  const std::string begun = std::filesystem::path(folder.path(file)).parent_path().string();
  EXPECT_EQ(PathOfCheckpoint("gone.json", begun), "new.json");
  EXPECT_EQ(PathOfCheckpoint(begun + "/gone.json", begun), "new.json");
  EXPECT_EQ(PathOfCheckpoint(file, begun), file);
  EXPECT_EQ(PathOfCheckpoint(begun + "/" + file, "elsewhere"), begun + "/" + file);
  EXPECT_EQ(PathOfCheckpoint("", begun), "") << "no file is named";
}

}  // namespace
}  // namespace trainwright

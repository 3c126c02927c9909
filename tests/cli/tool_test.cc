// What RunTool promises, seen from outside: the sample tool as a process.
#include "lib/cli/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace trainwright::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Runs in an empty folder. A tool gone wrong must not fill the disk.
ProcessResult Sample(const std::string& command) {
  const TemporaryFolder folder;
  return RunShell("ulimit -f 200000; export PATH='" TRAINWRIGHT_BIN_DIR
                  "/../tests/bin':\"$PATH\" LC_ALL=C; cd '" +
                  folder.path() + "'\n" + command);
}

std::string Value(const std::string& output, const std::string& name) {
  const size_t begin = ("\n" + output).find("\n" + name + "=");
  if (begin == std::string::npos) return "(none)";
  return output.substr(begin + name.size() + 1, output.find('\n', begin) - begin - name.size() - 1);
}

TEST(HelpTest, ShortHelpHasOneLineAnOptionAndExitsWithZeroOnStandardOutput) {
  const ProcessResult result = Sample("sample -h");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output, StartsWith("usage: sample [OPTION]... [FILE]...\n"));
  EXPECT_THAT(result.standard_output,
              HasSubstr("\n      --mode MODE             How to work (fast|exact) [fast]\n"));
}

TEST(HelpTest, LongHelpNamesDefaultsChoicesEnvironmentAndExitStatuses) {
  const ProcessResult result = Sample("sample --help");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_THAT(result.standard_output,
              HasSubstr("(default fast; one of fast, exact; environment TRAINWRIGHT_MODE)"));
  EXPECT_THAT(result.standard_output,
              HasSubstr("(default 10; from 1 to 1000; environment TRAINWRIGHT_STEPS)"));
  EXPECT_THAT(result.standard_output, HasSubstr("EXIT STATUS\n  0 "));
}

TEST(HelpTest, HelpIsGivenEvenWhenEverythingElseIsWrong) {
  EXPECT_EQ(Sample("TRAINWRIGHT_STEPS=x sample --config /nonexistent --mode bad --unknown -h").exit_status,
            0);
}

TEST(VersionTest, NamesToolSuiteVersionAndBuildFeatures) {
  const ProcessResult result = Sample("sample --version");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_THAT(result.standard_output,
              ::testing::MatchesRegex("sample \\(Trainwright\\) [0-9.]+\nbuilt with: .*a feature\n.*\n"));
}

TEST(PrecedenceTest, FlagGoesBeforeEnvironmentBeforeFileBeforeBuiltIn) {
  const std::string file = "printf 'steps: 2\\n' > c.yaml; ";
  EXPECT_EQ(Value(Sample("sample").standard_output, "steps"), "10");
  EXPECT_EQ(Value(Sample(file + "sample --config c.yaml").standard_output, "steps"), "2");
  EXPECT_EQ(Value(Sample(file + "TRAINWRIGHT_STEPS=3 sample --config c.yaml").standard_output, "steps"), "3");
  EXPECT_EQ(Value(Sample(file + "TRAINWRIGHT_STEPS=3 sample --config c.yaml -n 4").standard_output, "steps"),
            "4");
  EXPECT_EQ(Value(Sample(file + "TRAINWRIGHT_CONFIG=c.yaml sample").standard_output, "steps"), "2");
}

TEST(PrecedenceTest, AListFromAFlagReplacesTheOneOfTheFile) {
  const ProcessResult result =
      Sample("printf 'tag: [a, b]\\nscale: []\\n' > c.yaml; sample --config c.yaml --tag c");
  EXPECT_THAT(result.standard_output, HasSubstr("tag=c\n"));
  EXPECT_THAT(result.standard_output, Not(HasSubstr("tag=a")));
  EXPECT_THAT(result.standard_output, Not(HasSubstr("scale="))) << "an empty list overrides the default";
}

TEST(PrecedenceTest, EnvironmentTakesListsAndSwitchesAndEmptyIsUnset) {
  const std::string output =
      Sample(
          "TRAINWRIGHT_TAG='[x y, z]' TRAINWRIGHT_FORCE=true TRAINWRIGHT_STEPS= TRAINWRIGHT_FILE=in sample")
          .standard_output;
  EXPECT_THAT(output, HasSubstr("tag=x y\ntag=z\n"));
  EXPECT_EQ(Value(output, "force"), "1");
  EXPECT_EQ(Value(output, "steps"), "10");
  EXPECT_EQ(Value(output, "input"), "in");
  EXPECT_EQ(Value(Sample("TRAINWRIGHT_FORCE=false sample").standard_output, "force"), "0");
}

TEST(NumberTest, ZerosBeforeAWholeNumberDoNotMakeItOctal) {
  const std::string file = "printf 'steps: 010\\n' > c.yaml; ";
  for (const char* command : {"sample --steps 010", "sample -n +0010", "TRAINWRIGHT_STEPS=010 sample"}) {
    EXPECT_EQ(Value(Sample(command).standard_output, "steps"), "10") << command;
  }
  EXPECT_EQ(Value(Sample(file + "sample --config c.yaml").standard_output, "steps"), "10");
  EXPECT_EQ(Value(Sample("sample --steps 0099").standard_output, "steps"), "99");
  EXPECT_THAT(Sample("sample --steps 010 --print-config").standard_output, HasSubstr("\nsteps: 10\n"));
  EXPECT_EQ(Value(Sample("sample --megabytes 00").standard_output, "title"), "untitled");
  EXPECT_EQ(Sample("sample --steps 00").exit_status, 2);
  EXPECT_EQ(Value(Sample("sample --title 010").standard_output, "title"), "010");
  EXPECT_EQ(Value(Sample("sample 010").standard_output, "input"), "010");
}

TEST(RequiredTest, IsMetByEnvironmentOrFileAndElseAUsageError) {
  const ProcessResult missing = Sample("needy");
  EXPECT_EQ(missing.exit_status, 2);
  EXPECT_THAT(missing.standard_error, StartsWith("needy: error: --data: is required\nneedy: hint: "));
  EXPECT_EQ(Sample("TRAINWRIGHT_DATA=d TRAINWRIGHT_TARGET=t needy").exit_status, 0);
  EXPECT_EQ(Sample("printf 'data: d\\ntarget: t\\n' > c.yaml; needy --config c.yaml").exit_status, 0);
  EXPECT_EQ(
      Sample("TRAINWRIGHT_DATA=d needy").standard_error.find("TARGET: is required") != std::string::npos,
      true);
}

struct BadCase {
  const char* command;
  const char* message;
};

// The name of a case in lists of tests: letters and digits of what is typed.
void PrintName(const char* text, std::ostream* out) {
  for (; *text != '\0'; ++text) *out << (std::isalnum(static_cast<unsigned char>(*text)) != 0 ? *text : '_');
}
void PrintTo(const BadCase& bad, std::ostream* out) {
  PrintName(bad.command, out);
}

class UsageErrorTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(UsageErrorTest, IsTwoAndSaysWhatAndWhere) {
  const ProcessResult result = Sample(GetParam().command);
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_EQ(result.standard_output, "");
  EXPECT_THAT(result.standard_error, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, UsageErrorTest,
    ::testing::Values(
        BadCase{"sample --stepz 3",
                "sample: error: --stepz: unknown option\nsample: hint: did you mean --steps? "},
        BadCase{"sample --stride=3",
                "sample: error: --stride: unknown option\nsample: hint: steps have one size; see --steps\n"},
        BadCase{"sample -Z", "sample: error: -Z: unknown option\n"},
        BadCase{"sample --steps", "sample: error: --steps: needs a value\n"},
        BadCase{"sample --steps=", "sample: error: --steps: '' is not allowed; it must be from 1 to 1000\n"},
        BadCase{"sample --steps 1001",
                "sample: error: --steps: '1001' is not allowed; it must be from 1 to 1000\n"},
        BadCase{"sample --megabytes 1.5",
                "sample: error: --megabytes: '1.5' is not a whole number in range\n"},
        BadCase{"sample --megabytes 99999999999999999999",
                "'99999999999999999999' is not a whole number in range\n"},
        BadCase{"sample --rate abc",
                "sample: error: --rate: 'abc' is not allowed; it must be greater than 0\n"},
        BadCase{"sample --rate nan",
                "sample: error: --rate: 'nan' is not allowed; it must be greater than 0\n"},
        BadCase{"sample --scale 2 --scale=-nan", "sample: error: --scale: '-nan' is not a number\n"},
        BadCase{"sample --mode exac",
                "'exac' is not one of fast, exact\nsample: hint: did you mean exact?\n"},
        BadCase{"TRAINWRIGHT_STEPS=many sample", "sample: error: TRAINWRIGHT_STEPS: 'many' is not allowed"},
        BadCase{"TRAINWRIGHT_MODE=slow sample",
                "sample: error: TRAINWRIGHT_MODE: 'slow' is not one of fast, exact"},
        BadCase{"TRAINWRIGHT_FORCE=maybe sample", "TRAINWRIGHT_FORCE: 'maybe' is neither true nor false"},
        BadCase{"echo 'stps: 1' > c; sample --config c",
                "sample: error: c: unknown key 'stps' (line 1)\nsample: hint: did you mean 'steps'?"},
        BadCase{"printf 'rate: 1\\nsteps: x' > c; sample --config c",
                "sample: error: c: key 'steps' in line 2: 'x' is not allowed"},
        BadCase{"echo 'steps: [1, 2]' > c; sample --config c",
                "c: key 'steps' in line 1: takes one value, not a list"},
        BadCase{"echo 'steps: {a: 1}' > c; sample --config c",
                "c: key 'steps' must be a single value or a list of them (line 1)"},
        BadCase{"echo 'steps:' > c; sample --config c", "c: key 'steps' has no value (line 1)"},
        BadCase{"printf 'rate: 1\\nrate: 2' > c; sample --config c", "c: key 'rate' is given twice (line 2)"},
        BadCase{"printf 'rate: 1\\n---\\nsteps: 5' > c; sample --config c",
                "c: holds a second document, after --- (line 3)"},
        BadCase{"printf -- '---\\n---\\nsteps: 5' > c; sample --config c",
                "c: holds a second document, after --- (line 3)"},
        BadCase{"echo '- 1' > c; sample --config c", "c: is not a YAML mapping"},
        BadCase{"printf 'a: [1' > c; sample --config c", "c: is not YAML: "},
        BadCase{"echo 'force: 3' > c; sample --config c", "'3' is neither true nor false"},
        BadCase{"echo 'config: x' > c; sample --config c", "c: unknown key 'config'"},
        BadCase{"sample -o ''", "sample: error: --output: is empty, as an unset variable is\n"},
        BadCase{"sample --output=", "sample: error: --output: is empty"},
        BadCase{"sample a ''", "sample: error: FILE: is empty"},
        BadCase{"sample --config ''", "sample: error: --config: is empty"},
        BadCase{"echo 'output: \"\"' > c; sample --config c", "c: key 'output' in line 1: is empty"},
        BadCase{"TRAINWRIGHT_FILE='[a, \"\"]' sample", "TRAINWRIGHT_FILE: is empty"},
        BadCase{"sample --summary -", "sample: error: --summary: cannot be -"},
        BadCase{"TRAINWRIGHT_STEPS=7 sample --fail steps",
                "sample: error: TRAINWRIGHT_STEPS: has no meaning today\n"},
        BadCase{"TRAINWRIGHT_STEPS=7 sample --steps 8 --fail steps",
                "sample: error: --steps: has no meaning today\n"}));

TEST(ConfigTest, AMissingFileIsAnIoError) {
  const ProcessResult result = Sample("sample --config /nonexistent.yaml");
  EXPECT_EQ(result.exit_status, 4);
  EXPECT_THAT(result.standard_error, HasSubstr("/nonexistent.yaml: open failed: No such file or directory"));
}

TEST(ConfigTest, AJsonFileMayEscapeCharactersByPairsOfSurrogates) {
  const ProcessResult result =
      Sample(R"(printf '%s' '{"title": "sft \ud83d\uDE80, \\ud83d\\ude80", "steps": 3}' > c.json; )"
             "sample --config c.json");
  EXPECT_EQ(Value(result.standard_output, "title"), "sft \xF0\x9F\x9A\x80, \\ud83d\\ude80")
      << result.standard_error;
  EXPECT_EQ(Value(result.standard_output, "steps"), "3");
}

TEST(ConfigTest, AFlagIsSpelledAsYamlSpellsTruth) {
  for (const std::string word : {"true", "True", "TRUE", "Yes", "ON", "1"}) {
    EXPECT_EQ(Value(Sample("echo 'force: " + word + "' > c; sample --config c").standard_output, "force"),
              "1")
        << word;
    EXPECT_EQ(Value(Sample("TRAINWRIGHT_FORCE=" + word + " sample").standard_output, "force"), "1") << word;
  }
  for (const std::string word : {"false", "False", "NO", "Off", "0"}) {
    EXPECT_EQ(Value(Sample("TRAINWRIGHT_FORCE=" + word + " sample").standard_output, "force"), "0") << word;
  }
  EXPECT_EQ(Sample("TRAINWRIGHT_FORCE=tRUE sample").exit_status, 2);
}

TEST(ConfigTest, OneDocumentMayBeginAndEndWithItsMarks) {
  for (const std::string text : {"---\\nsteps: 5\\n...\\n", "---\\nsteps: 5\\n---\\n# no more\\n"}) {
    const ProcessResult result = Sample("printf -- '" + text + "' > c; sample --config c");
    EXPECT_EQ(Value(result.standard_output, "steps"), "5") << result.standard_error;
  }
}

TEST(PrintConfigTest, ReadBackItGivesTheSameConfigurationAndTheSameRun) {
  const std::string arguments =
      R"( -n 7 --rate 1e-3 --tag 1e5 --tag 'a, b' --tag "it's" --tag '"quoted"' --tag null --tag 'a: #b' --tag '')"
      R"( --title $'two\nlines\tand \u00e9' --scale 2 -f --mode exact 'in put' 0x10 )";
  const ProcessResult result =
      Sample("set -e; sample" + arguments +
             "--print-config > a.yaml; "
             "sample --config a.yaml --print-config > b.yaml; cmp a.yaml b.yaml; "
             "sample" +
             arguments +
             "> direct 2>/dev/null; "
             "sample --config a.yaml > loaded 2>/dev/null; cmp direct loaded; cat a.yaml");
  EXPECT_EQ(result.exit_status, 0) << result.standard_error;
  EXPECT_THAT(
      result.standard_output,
      HasSubstr("tag: [\"1e5\", \"a, b\", \"it's\", \"\\\"quoted\\\"\", \"null\", \"a: #b\", \"\"]\n"));
  EXPECT_THAT(result.standard_output, HasSubstr("steps: 7\n"));
  EXPECT_THAT(result.standard_output, HasSubstr("force: true\n"));
}

TEST(PrintConfigTest, DefaultsRoundTripToo) {
  EXPECT_EQ(Sample("set -e; sample --print-config > a; sample --config a --print-config "
                   "| cmp - a; "
                   "sample > direct 2>/dev/null; sample --config a 2>/dev/null | cmp - direct")
                .exit_status,
            0);
}

TEST(ArgumentTest, ARepeatedOptionTakesOneValueEachTime) {
  const std::string output = Sample("sample --tag a b --tag c d").standard_output;
  EXPECT_THAT(output, HasSubstr("input=b\ninput=d\n"));
  EXPECT_THAT(output, HasSubstr("tag=a\ntag=c\n"));
}

TEST(ArgumentTest, TheLastOfSeveralValuesCountsAndDashDashEndsOptions) {
  EXPECT_EQ(Value(Sample("sample -n 3 -n 5").standard_output, "steps"), "5");
  EXPECT_EQ(Value(Sample("sample -- --steps").standard_output, "input"), "--steps");
  EXPECT_EQ(Value(Sample("sample --title= x").standard_output, "title"), "");
  EXPECT_EQ(Value(Sample("sample --title -5").standard_output, "title"), "-5");
}

struct FailureCase {
  const char* how;
  int exit_status;
  const char* message;
};

void PrintTo(const FailureCase& failure, std::ostream* out) {
  PrintName(failure.how, out);
}

class ExitStatusTest : public ::testing::TestWithParam<FailureCase> {};

TEST_P(ExitStatusTest, FollowsTheErrorAndTheMessageNamesIt) {
  const ProcessResult result = Sample(std::string("sample -q --fail ") + GetParam().how);
  EXPECT_EQ(result.exit_status, GetParam().exit_status);
  EXPECT_THAT(result.standard_error, HasSubstr(GetParam().message));
  EXPECT_THAT(result.standard_error, Not(HasSubstr("frame #0")));
  EXPECT_THAT(result.standard_error, Not(HasSubstr("raised from")));
}

INSTANTIATE_TEST_SUITE_P(
    All, ExitStatusTest,
    ::testing::Values(
        FailureCase{"one", 1, ""}, FailureCase{"no", 1, "sample: error: shard: differs\n"},
        FailureCase{"input", 3,
                    "sample: error: a.tws: is cut short (byte 12)\nsample: hint: run pretokenize again\n"},
        FailureCase{"memory", 4, "sample: error: memory: the machine has no more of it to give\n"},
        FailureCase{"device", 5, "sample: error: device memory: is full (step 3)\n"},
        FailureCase{"nonfinite", 6, "sample: error: loss: is not finite (step 3)\n"},
        FailureCase{"undecided", 7, "sample: error: interval: is too wide\n"},
        FailureCase{"bug", 70, "sample: error: internal error: shapes differ\nsample: hint: this is a bug"},
        FailureCase{"odd", 70, "sample: error: internal error: an exception of unknown type"}));

TEST(StandardOutputTest, AFailedWriteIsFourHoweverItWasWritten) {
  EXPECT_EQ(Sample("sample > /dev/full").exit_status, 4);
  const ProcessResult delayed = Sample("sample -q --fail stdio > /dev/full");
  EXPECT_EQ(delayed.exit_status, 4);
  EXPECT_EQ(delayed.standard_error,
            "sample: error: standard output: write failed: No space left on device\n"
            "sample: hint: free some space, or write to another disk\n");
  EXPECT_EQ(Sample("sample -h > /dev/full").exit_status, 4);
  EXPECT_EQ(Sample("sample --print-config > /dev/full").exit_status, 4);
}

TEST(StandardOutputTest, AClosedOneFailsOnlyWhenItIsNeeded) {
  EXPECT_EQ(Sample("sample >&-").exit_status, 4);
  EXPECT_EQ(Sample("sample -h >&-").exit_status, 4);
  const ProcessResult result = Sample("sample -n 3 -o out <&- >&- 2>&-; echo $?; head -n 2 out");
  EXPECT_EQ(result.standard_output, "0\ntitle=untitled\nsteps=3\n");
}

TEST(SigpipeTest, EndsAFilterEvenWhenItWasIgnoredAndNotAPatientTool) {
  EXPECT_EQ(Sample("sample --megabytes 64 | head -c 1 > /dev/null; echo ${PIPESTATUS[0]}").standard_output,
            "141\n");
  EXPECT_EQ(Sample("trap '' PIPE; sample --megabytes 64 | head -c 1 > /dev/null; echo ${PIPESTATUS[0]}")
                .standard_output,
            "141\n");
  EXPECT_EQ(Sample("patient --fail stdio 2>/dev/null | true; echo ${PIPESTATUS[0]}").standard_output, "0\n");
}

// Longer than what stdio holds back, so that writing fails before standard output is closed.
TEST(SigpipeTest, ATextOfAPatientToolThatNobodyReadsEndsQuietly) {
  const ProcessResult result = Sample(
      "{ sleep 0.2; patient --print-config --title $(printf %9000s | tr ' ' x) 2> err; echo $? >> err; } | "
      "true; cat err");
  EXPECT_EQ(result.standard_output, "0\n");
}

struct StopCase {
  const char* signal;
  int exit_status;
};
void PrintTo(const StopCase& stop, std::ostream* out) {
  PrintName(stop.signal, out);
}

class StopTest : public ::testing::TestWithParam<StopCase> {};

TEST_P(StopTest, LeavesWithTheStatusOfTheSignalAndWithoutOutput) {
  const auto [signal, status] = GetParam();
  const ProcessResult result =
      Sample(std::string("sample --fail wait -o out --summary s.json 2> log & pid=$!; "
                         "until grep -q waiting log; do sleep 0.01; done; kill -") +
             signal + " $pid; wait $pid; echo $?; ls -A; tail -n 1 log; grep exit_status s.json");
  const std::string expected = std::to_string(status);
  EXPECT_EQ(result.standard_output, expected + "\nlog\ns.json\nsample: error: stopped by SIG" + signal +
                                        "\n  \"exit_status\": " + expected + ",\n");
}

// A background job of a shell without job control ignores SIGINT until the tool installs its handler.
INSTANTIATE_TEST_SUITE_P(All, StopTest,
                         ::testing::Values(StopCase{"INT", 130}, StopCase{"TERM", 143},
                                           StopCase{"HUP", 143}));

TEST(HangupTest, ThatIsIgnoredAtTheStartStaysIgnored) {
  const ProcessResult result = Sample(
      "nohup sample --fail wait -o out 2> log & pid=$!; until grep -q waiting log; do sleep 0.01; done; "
      "kill -HUP $pid; sleep 0.3; kill $pid; wait $pid; echo $?; tail -n 1 log");
  EXPECT_EQ(result.standard_output, "143\nsample: error: stopped by SIGTERM\n");
}

TEST(MessageTest, QuietLeavesErrorsAndVerboseAddsDetail) {
  EXPECT_EQ(Sample("sample -q").standard_error, "");
  EXPECT_EQ(Sample("sample").standard_error, "sample: done\n");
  EXPECT_EQ(Sample("sample -v").standard_error, "sample: done\nsample: debug: really\n");
}

TEST(SummaryTest, HoldsStatusTimesMemoryAndCounts) {
  const ProcessResult result = Sample("sample a b --summary s.json > /dev/null; cat s.json");
  const auto summary = nlohmann::json::parse(result.standard_output);
  EXPECT_EQ(summary["schema"], "trainwright.sample.summary/1");
  EXPECT_EQ(summary["exit_status"], 0);
  EXPECT_EQ(summary["inputs"], 2);
  EXPECT_TRUE(summary["loss_nats"].is_null());
  EXPECT_GT(summary["wall_time_s"].get<double>(), 0);
  EXPECT_GT(summary["cpu_time_s"].get<double>(), 0);
  EXPECT_GT(summary["max_memory_bytes"].get<int64_t>(), 1 << 20);
  EXPECT_EQ(summary["argv"].size(), 5);
  EXPECT_FALSE(summary.contains("error"));
}

TEST(SummaryTest, TheMemoryOfTheProgramThatStartedTheToolIsNotCounted) {
  const ProcessResult result = Sample(R"(python3 -c '
import subprocess
held = b"x" * 200000000
subprocess.run(["sample", "--summary", "s.json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)'; cat s.json)");
  const auto summary = nlohmann::json::parse(result.standard_output);
  EXPECT_LT(summary["max_memory_bytes"].get<int64_t>(), 100000000);
}

TEST(SummaryTest, IsWrittenAfterAFailureWithTheError) {
  const ProcessResult result = Sample("sample --fail input --summary s.json 2>/dev/null; cat s.json");
  const auto summary = nlohmann::json::parse(result.standard_output);
  EXPECT_EQ(summary["exit_status"], 3);
  EXPECT_EQ(summary["error"]["object"], "a.tws");
  EXPECT_EQ(summary["error"]["place"], "byte 12");
}

// Found before, while and after values are converted, by us and by CLI11.
TEST(SummaryTest, IsWrittenAfterAUsageErrorWhereverThatIsFound) {
  for (const char* command :
       {"sample --summary s.json --stepz 5", "sample --summary s.json --steps 0",
        "sample --steps 0 --summary s.json", "sample --summary s.json --steps",
        "TRAINWRIGHT_STEPS=x sample --summary s.json", "TRAINWRIGHT_SUMMARY=s.json sample --stepz 5",
        "echo 'stps: 1' > c; sample --config c --summary s.json",
        "printf 'summary: s.json\nstps: 1' > c; sample --config c", "needy --summary s.json",
        "sample set -o set --summary s.json"}) {
    const ProcessResult result =
        Sample(std::string("echo 'steps: 3' > set; sample -q --summary s.json > out; ") + command +
               " > /dev/null; cat s.json");
    const auto summary = nlohmann::json::parse(result.standard_output);
    EXPECT_EQ(summary["exit_status"], 2) << command;
    EXPECT_TRUE(summary.contains("error")) << command;
  }
}

TEST(SummaryTest, ReplacesNothingAfterAUsageErrorButAFormerOne) {
  for (const char* command :
       {"sample in --summary in --steps 0", "sample --summary in --steps 0 in",
        "sample in --summary in --stepz 5", "sample --summary in --inputs in",
        "TRAINWRIGHT_FILE=in sample --summary in --stepz 5", "sample in --summary in --steps",
        "sample --config set --summary set --mode bad",
        "TRAINWRIGHT_OUTPUT=out sample --summary out --stepz 5",
        "sample --summary sets/MANIFEST.json -o sets/ --steps 0", "sample --summary in --steps 0 >> in",
        "sample --summary - --steps 0", "needy in --summary in"}) {
    const ProcessResult result =
        Sample(std::string("mkdir sets; for name in in out; do echo kept > $name; done; "
                           "echo 'steps: 3' > set; ") +
               command + "; echo $?; cat in out set; ls . sets");
    EXPECT_EQ(result.standard_output, "2\nkept\nkept\nsteps: 3\n.:\nin\nout\nset\nsets\n\nsets:\n")
        << command;
  }
}

TEST(SummaryTest, HasItsOwnSchemaWhateverTheResultSays) {
  const ProcessResult result = Sample("sample -q --fail schema --summary s.json > /dev/null; cat s.json");
  EXPECT_EQ(nlohmann::json::parse(result.standard_output)["schema"], "trainwright.sample.summary/1");
}

TEST(SummaryTest, GoesToStandardOutputOfAToolWithoutDataThere) {
  const ProcessResult result = Sample("patient -q --summary - -o /dev/null");
  EXPECT_EQ(nlohmann::json::parse(result.standard_output)["exit_status"], 0);
}

TEST(SummaryTest, ThatCannotBeWrittenIsFour) {
  EXPECT_EQ(Sample("sample --summary /nonexistent/s.json").exit_status, 4);
}

TEST(SummaryTest, ReplacesNoFileThatTheCommandLineNames) {
  for (const char* command :
       {"sample in --summary in", "sample in --summary ./in", "sample in -o out --summary out",
        "sample in -o new --summary new", "sample -o out --summary link", "sample --config set --summary set",
        "sample -t ./out --summary out", "sample -o sets/ --summary sets/MANIFEST.json",
        "sample sets --summary sets/other", "sample --summary in >> in", "sample --summary /dev/stdout"}) {
    const ProcessResult result =
        Sample(std::string("mkdir sets; for name in in out sets/other; do echo kept > $name; done; "
                           "echo 'steps: 3' > set; ln -s out link; ") +
               command + "; echo $?; cat in out sets/other set; ls");
    EXPECT_EQ(result.standard_output, "2\nkept\nkept\nkept\nsteps: 3\nin\nlink\nout\nset\nsets\n") << command;
    EXPECT_THAT(result.standard_error, HasSubstr("sample: error: --summary: ")) << command;
  }
}

TEST(SummaryTest, MayBeWrittenAgainIntoAFolderThatIsNamed) {
  const ProcessResult result = Sample(
      "mkdir sets; for i in 1 2; do sample sets --summary sets/s.json > out || exit; done; grep status "
      "sets/s.json");
  EXPECT_EQ(result.standard_output, "  \"exit_status\": 0,\n");
}

TEST(OutputTest, ReplacesNoFileThatAnotherOptionNames) {
  for (const char* command : {"sample --config set -o set", "sample -t ./set -o ./set"}) {
    const ProcessResult result =
        Sample(std::string("echo 'steps: 3' > set; ") + command + "; echo $?; cat set");
    EXPECT_EQ(result.standard_output, "2\nsteps: 3\n") << command;
    EXPECT_THAT(result.standard_error, HasSubstr("is an input")) << command;
  }
}

// The file behind standard output would be replaced by another, and what it held before be lost.
TEST(OutputTest, IsStandardOutputUnderAnyOfItsNames) {
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"}) {
    const ProcessResult result =
        Sample("ln -s /dev/stdout link; echo before > log; sample -q -n 3 -o " + std::string(name) +
               " >> log; echo $?; head -n 1 log; grep steps log; ls");
    EXPECT_EQ(result.standard_output, "0\nbefore\nsteps=3\nlink\nlog\n") << name;
  }
}

TEST(OutputTest, OfADescriptorGoesWhereItsOutputGoes) {
  for (const char* name : {"/dev/fd/3", "/proc/self/fd/3", "link"}) {
    const ProcessResult result =
        Sample("ln -s /dev/fd/3 link; echo before > log; sample -q -n 3 -o " + std::string(name) +
               " 3>> log; echo $?; head -n 1 log; grep steps log; ls");
    EXPECT_EQ(result.standard_output, "0\nbefore\nsteps=3\nlink\nlog\n") << name << result.standard_error;
  }
  const ProcessResult result =
      Sample("ln -s /dev/fd/2 link; sample -q --summary link 2> log > out; grep -c '\"schema\"' log; ls");
  EXPECT_EQ(result.standard_output, "1\nlink\nlog\nout\n") << result.standard_error;
}

TEST(TerminalTest, BinaryIsRefusedUnlessForced) {
  // script(1) gives the tool a terminal.
  EXPECT_EQ(Sample("script -qec 'sample -q --megabytes 1' /dev/null > /dev/null").exit_status, 2);
  EXPECT_EQ(Sample("script -qec 'sample -q --megabytes 1 -f' /dev/null > /dev/null").exit_status, 0);
}

}  // namespace
}  // namespace trainwright::test

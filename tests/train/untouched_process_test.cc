// The jobs of the engines compute in the process as its main has set it up, whatever their settings ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "lib/eval/evaluate_job.h"
#include "lib/eval/generate_job.h"
#include "lib/io/byte_sink.h"
#include "lib/io/process_memory.h"
#include "lib/objective/objective_registry.h"
#include "lib/optim/optimizer_registry.h"
#include "lib/train/train_job.h"
#include "tests/device/process_state.h"
#include "tests/model/families.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// A limit on this process's memory that nothing reaches: under one, tensors can be made to leave room.
class FarLimit {
 public:
  FarLimit() {
    getrlimit(RLIMIT_DATA, &before_);
    rlimit far = before_;
    far.rlim_cur =
        std::min<rlim_t>(before_.rlim_max, static_cast<rlim_t>(PrivateWritableBytes()) + (rlim_t{1} << 36));
    setrlimit(RLIMIT_DATA, &far);
  }
  ~FarLimit() { setrlimit(RLIMIT_DATA, &before_); }
  FarLimit(const FarLimit&) = delete;
  FarLimit& operator=(const FarLimit&) = delete;

 private:
  rlimit before_{};
};

class UntouchedProcessTest : public testing::Test {
 protected:
  UntouchedProcessTest() {
    std::string lines;
    for (int line = 0; line < 40; ++line) lines += "abcdefgh " + std::to_string(line) + " abcdefgh\n";
    test::WriteFile(folder_.path("in.txt"), lines);
    const test::ProcessResult made =
        test::RunShell("cd '" + folder_.path() + "' && pretokenize -q in.txt | pack -q --chunk 64 -o shards");
    EXPECT_EQ(made.exit_status, 0) << made.standard_error;
    test::WriteFile(folder_.path("model.json"),
                    R"({"model_type":"llama","vocab_size":258,"hidden_size":16,"num_hidden_layers":1,)"
                    R"("intermediate_size":32,"num_attention_heads":2,"max_position_embeddings":64})");
  }

  void Train() const {
    TrainSettings settings;
    settings.data = {folder_.path("shards")};
    settings.model = folder_.path("model.json");
    settings.out = folder_.path("run");
    settings.steps = 2;
    settings.batch = 2;
    settings.seq = 32;
    settings.threads = process_.threads + 1;
    settings.mem_fraction = 0.5;
    nlohmann::ordered_json summary;
    const TrainJobContext context = {.families = test::Families(),
                                     .process = process_,
                                     .progress = ProgressMode::kNever,
                                     .optimizers = BuiltInOptimizers(),
                                     .objectives = BuiltInObjectives()};
    EXPECT_EQ(RunTraining(settings, context, &summary), 0);
  }

  test::TemporaryFolder folder_;
  FarLimit limit_;
  ProcessSetup process_ = {.threads = at::get_num_threads()};
};

TEST_F(UntouchedProcessTest, IsLeftByTraining) {
  const auto before = test::DescribeProcess();
  Train();
  EXPECT_EQ(test::DescribeProcess(), before);
}

TEST_F(UntouchedProcessTest, IsLeftByEvaluating) {
  Train();
  const auto before = test::DescribeProcess();
  RunEvaluate(test::Families(), BuiltInObjectives(),
              {.checkpoint = folder_.path("run"), .data = folder_.path("shards"), .process = process_},
              ProgressMode::kNever);
  EXPECT_EQ(test::DescribeProcess(), before);
}

TEST_F(UntouchedProcessTest, IsLeftByGenerating) {
  Train();
  GenerateSettings settings;
  settings.checkpoint = folder_.path("run");
  settings.prompt = "abc";
  settings.max_tokens = 3;
  settings.threads = process_.threads + 1;
  MemorySink out;
  const auto before = test::DescribeProcess();
  RunGenerate(test::Families(), settings, process_, &out);
  EXPECT_EQ(test::DescribeProcess(), before);
}

}  // namespace
}  // namespace trainwright

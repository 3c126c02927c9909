#include "tools/train_absent_options.h"

namespace trainwright {
namespace {

constexpr char kTensor[] =
    "a matrix is not divided among ranks; --zero 1 or 2 divides moments and gradients, "
    "--checkpoint-activations, "
    "--offload, --lora and --quant make a rank's memory smaller, and PARALLELISM in train(1) says what "
    "dividing "
    "would take";
constexpr char kPipeline[] =
    "layers are not divided among ranks; --zero 1 or 2 divides moments and gradients, "
    "--checkpoint-activations, "
    "--offload, --lora and --quant make a rank's memory smaller, and PARALLELISM in train(1) says what "
    "dividing "
    "would take";
constexpr char kMaxTokens[] =
    "--max-tokens-per-batch limits the tokens of a micro-batch, without padding; a lower --batch with a "
    "higher "
    "--accum keeps the step, too. How long a run is --tokens says";

}  // namespace

const std::map<std::string, std::string>& OptionsThatTrainLacks() {
  static const std::map<std::string, std::string> options = {{"--tensor-parallel", kTensor},
                                                             {"--tensor-parallel-size", kTensor},
                                                             {"--tensor-model-parallel-size", kTensor},
                                                             {"--tp", kTensor},
                                                             {"--pipeline", kPipeline},
                                                             {"--pipeline-parallel", kPipeline},
                                                             {"--pipeline-model-parallel-size", kPipeline},
                                                             {"--pp", kPipeline},
                                                             {"--max-tokens", kMaxTokens}};
  return options;
}

}  // namespace trainwright

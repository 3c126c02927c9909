#include "tools/all_tools.h"

#include <memory>

#include "tools/bench_options.h"
#include "tools/ckpt_compress_options.h"
#include "tools/embed_options.h"
#include "tools/evaluate_options.h"
#include "tools/generate_options.h"
#include "tools/gpu_probe_options.h"
#include "tools/pack_options.h"
#include "tools/pretokenize_options.h"
#include "tools/train_options.h"

namespace trainwright {
namespace {

template <typename Options>
ToolDefinition Tool(const ToolInfo& info, void (*define)(CLI::App&, Options*)) {
  return {&info,
          [define, options = std::make_shared<Options>()](CLI::App& app) { define(app, options.get()); }};
}

}  // namespace

std::vector<ToolDefinition> AllTools() {
  return {
      Tool(PretokenizeInfo(), DefinePretokenizeOptions),
      Tool(PackInfo(), DefinePackOptions),
      Tool(TrainInfo(), DefineTrainOptions),
      Tool(EvaluateInfo(), DefineEvaluateOptions),
      Tool(GenerateInfo(), DefineGenerateOptions),
      Tool(EmbedInfo(), DefineEmbedOptions),
      Tool(CkptCompressInfo(), DefineCkptCompressOptions),
      Tool(GpuProbeInfo(), DefineGpuProbeOptions),
      Tool(BenchInfo(), DefineBenchOptions),
  };
}

}  // namespace trainwright

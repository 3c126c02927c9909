#include "lib/cli/tool.h"
#include "lib/codec/ckpt_compress_job.h"
#include "tools/ckpt_compress_options.h"

int main(int argc, char** argv) {
  using namespace trainwright;
  CkptCompressOptions options;
  return RunTool(
      argc, argv, CkptCompressInfo(), [&](CLI::App& app) { DefineCkptCompressOptions(app, &options); },
      [&](ToolRun& run) {
        run.KeepFromSummary({options.output, options.base});
        return RunCkptCompress(options, run.common.progress, &run.summary);
      });
}

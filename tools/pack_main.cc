#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/cli/tool.h"
#include "lib/data/pack_job.h"
#include "lib/data/shard_inspection.h"
#include "tools/pack_options.h"

namespace trainwright {
namespace {

constexpr double kMuchPadding = 0.1;

void Print(const std::string& text) {
  StdoutSink().Write(AsBytes(text));
}

void Inspect(const PackOptions& options, const std::string& path, ToolRun* run) {
  if (options.cat) {
    const std::unique_ptr<ByteSink> out = OpenSink(options.output, /*binary=*/false, options.force);
    if (options.json) {
      CatShardsAsJson(path, out.get());
    } else {
      CatShardsAsText(path, out.get());
    }
    out->Commit();
    return;
  }
  const ShardSetSummary summary = options.verify ? VerifyShards(path) : InspectShards(path);
  const nlohmann::ordered_json json = ToJson(summary);
  run->summary.update(json);
  const std::string name = path == "-" ? "standard input" : path;
  if (options.json) {
    Print(json.dump() + "\n");
  } else if (options.verify) {
    Print(name + ": sound, " + OneLine(summary) + "\n");
  } else {
    Print(name + "\n" + Describe(summary));
  }
}

/// Conversations that lose what they should teach are worth a line, however few they are.
void WarnOfLostAnswers(const PackReport& report) {
  const uint64_t dropped = report.input.loss_tokens_dropped;
  if (report.set.header.record_kind != RecordKind::kSft || dropped == 0) return;
  LogWarning(
      FormatFixed(100.0 * static_cast<double>(dropped) / static_cast<double>(report.input.loss_tokens), 2) +
      " % of the predicted tokens are lost: " + std::to_string(report.input.documents_truncated) +
      " conversations truncated, " + std::to_string(report.input.documents_dropped) + " dropped");
  LogHint("a larger --chunk loses fewer");
}

void Pack(const PackOptions& options, const std::vector<std::string>& inputs, ToolRun* run) {
  PackJobOptions job;
  job.inputs = inputs;
  job.output = options.output;
  job.allow_terminal = options.force;
  job.packer = {options.mode, options.overflow.value_or(OverflowPolicy::kSplit), options.chunk,
                options.window, options.keep_answer};
  job.overflow_chosen = options.overflow.has_value();
  job.level = options.level;
  job.threads = options.threads > 0 ? options.threads
                                    : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  job.shard_size_bytes = ParseBytes(options.shard_size, "--shard-size");
  const auto start = std::chrono::steady_clock::now();
  const PackReport report = RunPack(job, run->common.progress);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const double source_bytes_per_s = static_cast<double>(report.input.source_bytes) / elapsed.count();
  LogInfo(OneLine(report.set) + ", " + FormatFixed(source_bytes_per_s / 1e6, 1) + " MB/s of text");
  if (report.set.padding_share() > kMuchPadding && report.set.totals.chunks > 1) {
    LogWarning(
        FormatFixed(100.0 * report.set.padding_share(), 0) +
        " % of the chunks is padding: too few documents are short enough to fill what the long ones leave");
    LogHint("--mode concat needs no padding but cuts documents; a larger --chunk needs less");
  }
  WarnOfLostAnswers(report);
  run->summary.update(ToJson(report.set));
  run->summary["input_docs"] = report.input.documents;
  run->summary["input_tokens"] = report.input.tokens;
  run->summary["docs_empty"] = report.input.documents_empty;
  run->summary["docs_truncated"] = report.input.documents_truncated;
  run->summary["docs_dropped"] = report.input.documents_dropped;
  if (report.set.header.record_kind == RecordKind::kSft) {
    run->summary["input_loss_tokens"] = report.input.loss_tokens;
    run->summary["loss_tokens_dropped"] = report.input.loss_tokens_dropped;
  }
  run->summary["source_bytes_per_s"] = source_bytes_per_s;
}

int Run(const PackOptions& options, ToolRun* run) {
  const bool inspect = options.info || options.verify || options.cat;
  if (options.json && !inspect) {
    throw Error(ErrorCode::kUsage, "--json",
                "shapes the output of --info, --verify and --cat, and none is given", "",
                "packing reports its counts as JSON with --summary FILE");
  }
  std::vector<std::string> inputs = options.inputs;
  if (inputs.empty()) inputs = {"-"};
  if (inputs[0] == "-" && isatty(STDIN_FILENO) == 1) {
    throw Error(
        ErrorCode::kUsage, "standard input", "is a terminal", "",
        inspect ? "name a folder or file of shards" : "pipe pretokenize into pack, or name its output files");
  }
  if (inspect) {
    for (const std::string& path : inputs) Inspect(options, path, run);
  } else {
    Pack(options, inputs, run);
  }
  return 0;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PackOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::PackInfo(),
      [&](CLI::App& app) { trainwright::DefinePackOptions(app, &options); },
      [&](trainwright::ToolRun& run) { return trainwright::Run(options, &run); });
}

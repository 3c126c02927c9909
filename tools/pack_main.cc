#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/cli/tool.h"
#include "lib/formats/json_text.h"
#include "lib/io/output_link.h"
#include "lib/packing/foreign_documents.h"
#include "lib/packing/pack_job.h"
#include "lib/packing/shard_inspection.h"
#include "lib/packing/shard_repair.h"
#include "lib/report/option_need.h"
#include "tools/pack_options.h"

namespace trainwright {
namespace {

constexpr double kMuchPadding = 0.1;

void Print(const std::string& text) {
  StdoutSink().Write(AsBytes(text));
}

/// --cat and --export: all inputs, one behind the other.
void WriteContent(const PackOptions& options, const std::vector<std::string>& paths) {
  RefuseToReplaceInputs(options.output, paths);
  const std::unique_ptr<ByteSink> out =
      OpenSink(options.output, /*binary=*/options.export_nanogpt, options.force);
  for (const std::string& path : paths) {
    if (options.export_nanogpt) {
      ExportAsNanoGpt(path, out.get());
    } else if (options.json) {
      CatShardsAsJson(path, out.get());
    } else {
      CatShardsAsText(path, out.get());
    }
  }
  out->Commit();
}

void Inspect(const PackOptions& options, const std::string& path, ToolRun* run) {
  const ShardSetSummary summary = options.verify ? VerifyShards(path) : InspectShards(path);
  for (const std::string& stray : options.verify ? ShardsOutsideTheSet(path) : std::vector<std::string>()) {
    LogWarning(path + ": " + stray + " is no part of the set: MANIFEST.json does not name it");
  }
  const nlohmann::ordered_json json = ToJson(summary);
  run->summary.update(json);
  const std::string name = path == "-" ? "standard input" : path;
  if (options.json) {
    Print(JsonLineOf(json));
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
  LogHint("a larger --chunk loses fewer", LogLevel::kWarning);
}

int ThreadsOf(const PackOptions& options) {
  if (options.threads > 0) return options.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

ImportOptions ImportOf(const PackOptions& options) {
  ImportOptions import;
  import.format = options.from;
  import.tokenizer = options.tokenizer;
  if (options.vocab > 0) import.vocab_size = options.vocab;
  import.one_document = options.eot == "none";
  if (options.eot.empty() || import.one_document) return import;
  uint32_t id = 0;
  const char* const end = options.eot.data() + options.eot.size();
  const auto [stop, error] = std::from_chars(options.eot.data(), end, id);
  if (error != std::errc() || stop != end) {
    throw Error(ErrorCode::kUsage, "--eot", "\"" + options.eot + "\" is neither an id nor none");
  }
  import.end_of_text = id;
  return import;
}

void Repair(const PackOptions& options, const std::string& path, ToolRun* run) {
  RepairOptions job;
  job.input = path;
  job.output = options.output;
  job.allow_terminal = options.force;
  job.writer.level = options.level;
  job.writer.threads = ThreadsOf(options);
  job.writer.shard_size_bytes = ParseBytes(options.shard_size, "--shard-size");
  const RepairReport report = RepairShards(job);
  for (const std::string& line : report.damage_lines) LogWarning(line);
  if (report.damages > report.damage_lines.size()) {
    LogWarning("and " + std::to_string(report.damages - report.damage_lines.size()) + " more such places");
  }
  if (report.tokenizer_lost) LogWarning("the tokenizer's model is lost: readers know its hash alone");
  const std::string saved = "saved " + OneLine(report.set);
  if (report.sound()) {
    LogInfo(path + " is sound, nothing is lost; " + saved);
  } else {
    LogWarning(path + ": " + saved + "; lost " + FormatNumberOf(report.chunks_lost, "chunk") +
               (report.end_known ? "" : ", and any after them: what counts the last ones is lost") +
               ", and " +
               (report.documents_lost ? FormatNumberOf(*report.documents_lost, "document")
                                      : "an unknown number of documents"));
  }
  run->summary.update(ToJson(report.set));
  run->summary["chunks_lost"] = report.end_known ? nlohmann::ordered_json(report.chunks_lost) : nullptr;
  run->summary["docs_lost"] =
      report.documents_lost ? nlohmann::ordered_json(*report.documents_lost) : nullptr;
  run->summary["damages"] = report.damages;
}

void Pack(const PackOptions& options, const std::vector<std::string>& inputs, ToolRun* run) {
  PackJobOptions job;
  job.inputs = inputs;
  job.output = options.output;
  job.allow_terminal = options.force;
  job.import = ImportOf(options);
  job.packer = {options.mode, options.overflow.value_or(OverflowPolicy::kSplit), options.chunk,
                options.window, options.keep_answer};
  job.packer.stride_tokens = options.stride;
  job.skip_corrupt = options.skip_corrupt;
  job.overflow_chosen = options.overflow.has_value();
  job.level = options.level;
  job.remap = options.remap;
  job.append = options.append;
  job.threads = ThreadsOf(options);
  job.shard_size_bytes = ParseBytes(options.shard_size, "--shard-size");
  run->KeepFromSummary(FilesOfInputs(job.inputs, job.import));
  const auto start = std::chrono::steady_clock::now();
  const PackReport report = RunPack(job, run->common.progress);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const double source_bytes_per_s = static_cast<double>(report.input.source_bytes) / elapsed.count();
  LogInfo(OneLine(report.set) + ", " + FormatFixed(source_bytes_per_s / 1e6, 1) + " MB/s of text");
  if (report.set.padding_share() > kMuchPadding && report.set.totals.chunks > 1) {
    LogWarning(
        FormatFixed(100.0 * report.set.padding_share(), 0) +
        " % of the chunks is padding: too few documents are short enough to fill what the long ones leave");
    const bool may_be_cut = report.set.header.record_kind == RecordKind::kLm;
    LogHint(std::string(may_be_cut ? "--mode concat needs no padding but cuts documents; " : "") +
                "a larger --chunk needs less",
            LogLevel::kWarning);
  }
  WarnOfLostAnswers(report);
  run->summary.update(ToJson(report.set));
  run->summary["input_docs"] = report.input.documents;
  run->summary["input_tokens"] = report.input.tokens;
  run->summary["files"] = report.files;
  run->summary["files_skipped"] = report.files_skipped;
  run->summary["tokens_repeated"] = report.input.tokens_repeated;
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
  const bool inspect = options.info || options.verify || options.cat || options.export_nanogpt;
  if (!inspect) {
    RefuseWithout("--info, --verify or --cat", {"json"}, run->options,
                  "packing reports its counts as JSON with --summary FILE");
  }
  if (options.append && (inspect || options.repair)) {
    throw Error(
        ErrorCode::kUsage, "--append", "extends a set by packing, and shards are read here", "",
        options.repair ? "save to a new -o, and give train both sets: --data once for each" : "leave it out");
  }
  if ((options.info || options.verify) && !IsStandardOutput(options.output)) {
    throw Error(ErrorCode::kUsage, "-o", "has no meaning for --info and --verify, which print what they find",
                "", "redirect standard output");
  }
  std::vector<std::string> inputs = options.inputs;
  if (options.repair && (inputs.size() != 1 || inputs[0] == "-")) {
    throw Error(ErrorCode::kUsage, "--repair", "takes one file or folder of shards", "",
                "name it; what comes through a pipe goes into a file first");
  }
  if (inputs.empty()) inputs = {"-"};
  if (inputs[0] == "-" && isatty(STDIN_FILENO) == 1) {
    throw Error(
        ErrorCode::kUsage, "standard input", "is a terminal", "",
        inspect ? "name a folder or file of shards" : "pipe pretokenize into pack, or name its output files");
  }
  if (options.repair) {
    Repair(options, inputs[0], run);
  } else if (options.cat || options.export_nanogpt) {
    WriteContent(options, inputs);
  } else if (inspect) {
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

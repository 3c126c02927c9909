#include <algorithm>
#include <thread>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/cli/tool.h"
#include "lib/data/decode_job.h"
#include "lib/data/pretokenize_job.h"
#include "tools/pretokenize_options.h"

namespace trainwright {
namespace {

Error UsageError(const std::string& flag, const std::string& problem, const std::string& hint = "") {
  return Error(ErrorCode::kUsage, flag, problem, "", hint);
}

std::vector<DocumentInput> InputsOf(const PretokenizeOptions& options) {
  std::vector<DocumentInput> inputs;
  for (const std::string& path : options.inputs) {
    const bool guess = options.format == "auto";
    const InputFormat format = guess
                                   ? GuessInputFormat(path, !options.keys.empty() || options.records == "sft")
                                   : ParseInputFormat(options.format);
    inputs.push_back({.path = path, .format = format, .guessed = guess});
  }
  return inputs;
}

void PlanHoldout(const PretokenizeOptions& options, PretokenizeJobOptions* job) {
  if (options.holdout == 0) {
    if (!options.holdout_output.empty()) {
      throw UsageError("--holdout-output", "nothing is held out", "--holdout F says which share");
    }
    return;
  }
  if (options.holdout >= 1) throw UsageError("--holdout", "takes a share below 1");
  job->holdout = options.holdout;
  job->holdout_output = options.holdout_output;
  if (job->holdout_output.empty()) {
    if (options.output == "-") {
      throw UsageError("--holdout", "needs a file for the held out documents",
                       "name it by --holdout-output FILE");
    }
    job->holdout_output = DefaultHoldoutPath(options.output);
  }
  if (job->holdout_output == options.output) {
    throw UsageError("--holdout-output", "is the same file as --output");
  }
}

void PlanRecords(const PretokenizeOptions& options, PretokenizeJobOptions* job) {
  if (options.records != "sft") {
    const std::pair<const char*, bool> without_meaning[] = {{"--template", options.chat_template != "plain"},
                                                            {"--prompt-key", !options.prompt_key.empty()},
                                                            {"--response-key", !options.response_key.empty()},
                                                            {"--loss-turns", options.loss_turns != "all"}};
    for (const auto& [flag, given] : without_meaning) {
      if (given)
        throw UsageError(flag, "has no meaning for --records lm", "--records sft reads conversations");
    }
    return;
  }
  if (!options.keys.empty()) {
    throw UsageError("--key", "has no meaning for --records sft",
                     "--prompt-key and --response-key name the keys");
  }
  if (options.eos)
    throw UsageError("--eos", "has no meaning for --records sft", "the template's {eos} ends a turn");
  if (options.prompt_key.empty() != options.response_key.empty()) {
    throw UsageError(options.prompt_key.empty() ? "--response-key" : "--prompt-key", "is given alone",
                     "give --prompt-key and --response-key, or neither");
  }
  job->records = RecordKind::kSft;
  job->chat_template = LoadChatTemplate(options.chat_template);
  job->chat = {options.prompt_key, options.response_key};
  job->last_turn_only = options.loss_turns == "last";
}

PretokenizeJobOptions PlanJob(const PretokenizeOptions& options) {
  constexpr uint64_t kMaxDocumentBytes = uint64_t{2} << 30;
  PretokenizeJobOptions job;
  job.inputs = InputsOf(options);
  if (!options.keys.empty()) {
    if (options.format != "auto" && options.format != "jsonl") {
      throw UsageError("--key", "has no meaning for --format " + options.format,
                       "--format jsonl reads JSON lines");
    }
    job.keys = options.keys;
  }
  job.tokenizer = options.tokenizer;
  job.add_bos = options.bos;
  job.add_eos = options.eos;
  PlanRecords(options, &job);
  job.max_tokens = options.max_record_tokens;
  job.max_characters = options.max_chars > 0 ? options.max_chars : 10 * options.max_record_tokens;
  job.skip_bad_documents = options.on_error == "skip";
  job.replace_invalid_utf8 = options.invalid_utf8 == "replace";
  job.max_document_bytes = ParseBytes(options.max_document, "--max-document");
  if (job.max_document_bytes == 0 || job.max_document_bytes > kMaxDocumentBytes) {
    throw UsageError("--max-document", "takes 1 byte to 2GiB");
  }
  job.limit = options.limit;
  job.output = options.output;
  job.to = options.to == "jsonl" ? OutputFormat::kJsonl : OutputFormat::kTokens;
  job.allow_terminal = options.force;
  job.threads = options.threads > 0 ? options.threads
                                    : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  PlanHoldout(options, &job);
  return job;
}

void Decode(const PretokenizeOptions& options, ToolRun* run) {
  const std::pair<const char*, bool> without_meaning[] = {{"--bos", options.bos},
                                                          {"--eos", options.eos},
                                                          {"--key", !options.keys.empty()},
                                                          {"--format", options.format != "auto"},
                                                          {"--holdout", options.holdout > 0}};
  for (const auto& [flag, given] : without_meaning) {
    if (given) throw UsageError(flag, "has no meaning with --decode");
  }
  const TokenStreamTotals totals = RunDecode({.inputs = options.inputs,
                                              .output = options.output,
                                              .as_jsonl = options.to == "jsonl",
                                              .limit = options.limit},
                                             run->common.progress);
  run->summary["documents"] = totals.documents;
  run->summary["tokens"] = totals.tokens;
  run->summary["source_bytes"] = totals.source_bytes;
}

int Run(PretokenizeOptions options, ToolRun* run) {
  if (options.inputs.empty()) options.inputs = {"-"};
  if (options.decode) {
    Decode(options, run);
    return 0;
  }
  const PretokenizeReport report = RunPretokenize(PlanJob(options), run->common.progress);
  run->summary.update(ToJson(report));
  LogInfo(Describe(report));
  return 0;
}

}  // namespace
}  // namespace trainwright

int main(int argc, char** argv) {
  trainwright::PretokenizeOptions options;
  return trainwright::RunTool(
      argc, argv, trainwright::PretokenizeInfo(),
      [&](CLI::App& app) { trainwright::DefinePretokenizeOptions(app, &options); },
      [&](trainwright::ToolRun& run) { return trainwright::Run(options, &run); });
}

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <thread>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/cli/tool.h"
#include "lib/documents/decode_job.h"
#include "lib/documents/input_files.h"
#include "lib/documents/input_slice.h"
#include "lib/documents/line_ranges.h"
#include "lib/documents/pretokenize_folder_job.h"
#include "lib/documents/pretokenize_job.h"
#include "lib/formats/token_stream_set.h"
#include "lib/io/byte_sink.h"
#include "lib/io/output_link.h"
#include "lib/tok/tokenizer_folder.h"
#include "tools/pretokenize_options.h"

namespace trainwright {
namespace {

Error UsageError(const std::string& flag, const std::string& problem, const std::string& hint = "") {
  return Error(ErrorCode::kUsage, flag, problem, "", hint);
}

std::vector<std::string> FilesOf(const PretokenizeOptions& options) {
  std::vector<std::string> arguments = options.inputs;
  if (arguments.empty() && options.files_from.empty()) arguments = {"-"};
  if (options.files_from == "-" && std::count(arguments.begin(), arguments.end(), "-") > 0) {
    throw UsageError("--files-from", "- reads the list from standard input, which is an input, too");
  }
  return ExpandInputs(
      {.arguments = arguments, .list = options.files_from, .every_file = options.format != "auto"});
}

std::vector<DocumentInput> InputsOf(const PretokenizeOptions& options) {
  std::vector<DocumentInput> inputs;
  for (const std::string& path : FilesOf(options)) {
    const bool guess = options.format == "auto";
    const InputFormat format = guess
                                   ? GuessInputFormat(path, !options.keys.empty() || options.records != "lm")
                                   : ParseInputFormat(options.format);
    inputs.push_back({.path = path, .format = format, .guessed = guess, .has_format_flag = true});
  }
  return inputs;
}

/// "0.001" or "1/1000".
double ParseShare(const std::string& text) {
  const auto number = [&](std::string_view part) {
    double value = -1;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), value);
    return parsed.ec == std::errc() && parsed.ptr == part.data() + part.size() ? value : -1;
  };
  const size_t slash = text.find('/');
  const double over = number(std::string_view(text).substr(0, slash));
  const double under = slash == std::string::npos ? 1 : number(std::string_view(text).substr(slash + 1));
  const double share = under > 0 ? over / under : -1;
  if (!(over >= 0 && share >= 0 && share < 1)) {
    throw UsageError("--holdout", "takes a share of 0 to below 1, not \"" + text + "\"", "0.001 or 1/1000");
  }
  return share;
}

void PlanHoldout(const PretokenizeOptions& options, PretokenizeJobOptions* job) {
  const double holdout = ParseShare(options.holdout);
  if (holdout == 0) {
    if (!options.holdout_output.empty()) {
      throw UsageError("--holdout-output", "nothing is held out", "--holdout F says which share");
    }
    return;
  }
  job->holdout = holdout;
  job->holdout_output = options.holdout_output;
  if (job->holdout_output.empty()) {
    if (IsStandardOutput(options.output)) {
      throw UsageError("--holdout", "needs a file for the held out documents",
                       "name it by --holdout-output FILE");
    }
    job->holdout_output = DefaultHoldoutPath(options.output);
  }
  // Under two names, too: a link, or a dot in the path.
  std::error_code ignored;
  const auto place_of = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
  };
  if (job->holdout_output == options.output ||
      (!IsStandardOutput(options.output) && place_of(job->holdout_output) == place_of(options.output))) {
    throw UsageError("--holdout-output", "is the same file as --output");
  }
}

void PlanRecords(const PretokenizeOptions& options, PretokenizeJobOptions* job) {
  const std::string flag_of_records = "--records " + options.records;
  const auto refuse = [&](const char* flag, bool given, const std::string& hint) {
    if (given) throw UsageError(flag, "has no meaning for " + flag_of_records, hint);
  };
  const std::string hint = "--records sft reads conversations";
  if (options.records == "lm") refuse("--template", !options.chat_template.empty(), hint);
  if (options.records != "sft") {
    refuse("--prompt-key", !options.prompt_key.empty(), hint);
    refuse("--response-key", !options.response_key.empty(), hint);
    refuse("--loss-turns", options.loss_turns != "all", hint);
  }
  if (options.records != "contrastive") {
    const std::string contrastive_hint = "--max-record-tokens leaves out long documents";
    refuse("--query-max-tokens", options.query_max_tokens > 0, contrastive_hint);
    refuse("--passage-max-tokens", options.passage_max_tokens > 0, contrastive_hint);
  }
  if (options.records == "lm") return;
  refuse("--key", !options.keys.empty(),
         options.records == "sft" ? "--prompt-key and --response-key name the keys"
                                  : "contrastive records have \"query\", \"pos\" and \"neg\"");
  refuse("--eos", options.eos, "the template's {eos} is EOS");
  refuse("--no-eos", options.no_eos, "a template without {eos} writes none");
  if (options.records == "contrastive") {
    job->records = RecordKind::kContrastive;
    job->chat_template = LoadChatTemplate(options.chat_template.empty() ? "grit" : options.chat_template);
    if (job->chat_template.is_jinja) {
      throw UsageError("--template", "takes no template in Jinja for contrastive records", "--template grit");
    }
    job->contrastive_limits = {options.query_max_tokens, options.passage_max_tokens};
    return;
  }
  if (options.prompt_key.empty() != options.response_key.empty()) {
    throw UsageError(options.prompt_key.empty() ? "--response-key" : "--prompt-key", "is given alone",
                     "give --prompt-key and --response-key, or neither");
  }
  job->records = RecordKind::kSft;
  job->chat_template = ConversationTemplate(options.chat_template, options.tokenizer);
  job->chat = {options.prompt_key, options.response_key, job->chat_template.is_jinja};
  job->last_turn_only = options.loss_turns == "last";
}

PretokenizeJobOptions PlanJob(const PretokenizeOptions& options) {
  constexpr uint64_t kMaxDocumentBytes = uint64_t{2} << 30;
  PretokenizeJobOptions job;
  job.inputs = InputsOf(options);
  for (const DocumentInput& input : job.inputs) job.formats.insert(input.format);
  if (!options.slice.empty()) {
    if (options.limit > 0)
      throw UsageError("--limit", "has no meaning with --slice", "leave one of them out");
    job.inputs = SliceOf(job.inputs, ParseInputSlice(options.slice));
  }
  if (!options.lines.empty()) {
    if (!options.slice.empty())
      throw UsageError("--lines", "has no meaning with --slice", "leave one of them out");
    if (job.inputs.size() != 1)
      throw UsageError("--lines", "counts the lines of one input, and there are several", "name one file");
    job.inputs = LinesOf(job.inputs[0], ParseLineRanges(options.lines));
  }
  if (!options.keys.empty()) {
    if (options.format != "auto" && options.format != "jsonl" && options.format != "parquet") {
      throw UsageError("--key", "has no meaning for --format " + options.format,
                       "--format jsonl reads JSON lines, --format parquet columns");
    }
    job.keys = options.keys;
    job.keys_instead.clear();
  }
  job.tokenizer = options.tokenizer;
  if (!options.names_tokenizer) HoldInfo("no --tokenizer is given: a token is a byte");
  job.add_bos = options.bos;
  job.add_eos = options.eos;
  job.add_known_eos = !options.no_eos;
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
  job.verify_every = options.verify;
  if (!options.files_from.empty()) job.also_read.push_back(options.files_from);
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
                                                          {"--no-eos", options.no_eos},
                                                          {"--verify", options.verify > 0},
                                                          {"--key", !options.keys.empty()},
                                                          {"--format", options.format != "auto"},
                                                          {"--holdout", ParseShare(options.holdout) > 0},
                                                          {"--slice", !options.slice.empty()},
                                                          {"--lines", !options.lines.empty()}};
  for (const auto& [flag, given] : without_meaning) {
    if (given) throw UsageError(flag, "has no meaning with --decode");
  }
  PretokenizeOptions streams = options;
  streams.inputs = WithStreamsOfFolders(options.inputs);
  const TokenStreamTotals totals = RunDecode({.inputs = FilesOf(streams),
                                              .output = options.output,
                                              .as_jsonl = options.to == "jsonl",
                                              .limit = options.limit},
                                             run->common.progress);
  run->summary["documents"] = totals.documents;
  run->summary["tokens"] = totals.tokens;
  run->summary["source_bytes"] = totals.source_bytes;
}

int Run(const PretokenizeOptions& options, ToolRun* run) {
  if (options.decode) {
    Decode(options, run);
    return 0;
  }
  const bool to_folder = IsFolderPath(options.output);
  if (to_folder && !options.slice.empty()) {
    throw UsageError("--slice", "has no meaning when the output is a folder",
                     "write the stream of each slice to a file of its own");
  }
  if (to_folder && !options.lines.empty()) {
    throw UsageError("--lines", "has no meaning when the output is a folder", "name a file for the stream");
  }
  const PretokenizeJobOptions job = PlanJob(options);
  std::vector<std::string> files = job.also_read;
  files.push_back(job.holdout_output);
  files.push_back(TokenizerFileOf(job.tokenizer));
  for (const DocumentInput& input : job.inputs) files.push_back(input.path);
  run->KeepFromSummary(files);
  const PretokenizeReport report = to_folder ? RunPretokenizeToFolder(job, run->common.progress)
                                             : RunPretokenize(job, run->common.progress);
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

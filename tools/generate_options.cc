#include "tools/generate_options.h"

#include <CLI/App.hpp>
#include <limits>

#include "tools/compute_options.h"
#include "tools/template_names.h"
#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& GenerateInfo() {
  static const ToolInfo info = {
      .name = "generate",
      .summary = "continue prompts with a model",
      .text = ParseToolText(kGenerateText),
      .see_also = {"train(1)", "evaluate(1)", "embed(1)", "trainwright-context(5)",
                   "trainwright-glossary(7)"},
      .may_be_empty = {"prompt"},
      .variables = {{"format", "generate-format"}, {"keep", "generate-keep"}},
      .suggestions = {{"template", TemplateNames()}},
      .outputs = {{"state-out", {"state-in"}}},
  };
  return info;
}

namespace {

void DefinePromptOptions(CLI::App& app, GenerateSettings* settings) {
  CLI::Option* const prompt = app.add_option("--prompt,prompt", settings->prompt,
                                             "text to continue (default: JSON lines of --input)");
  prompt->type_name("TEXT");
  CLI::Option* const input =
      app.add_option("--input", settings->input, "JSON lines with prompts; - is standard input");
  input->type_name("FILE")->excludes(prompt);
  app.add_option("--max-tokens", settings->max_tokens, "longest continuation in tokens")
      ->check(CLI::PositiveNumber);
  app.add_option("--stop", settings->stops,
                 "text that ends a sample and is not part of it; may be given several times")
      ->type_name("TEXT");
  app.add_option("--template", settings->chat_template,
                 "how a conversation is written, as pretokenize --template: prompts are then conversations")
      ->type_name("NAME|FILE");
  CLI::Option* const chat =
      app.add_flag("--chat", settings->chat,
                   "a conversation: each line of standard input is answered, with what was said before");
  chat->excludes(prompt)->excludes(input);
  app.add_option("--system", settings->system, "what the system turn of --chat says")
      ->type_name("TEXT")
      ->needs(chat);
  app.add_option(
         "--format", settings->format,
         "how samples are written: as text, as JSON lines, or auto: as text where one sample of --prompt "
         "goes to a terminal, and in --chat")
      ->check(CLI::IsMember({"auto", "text", "jsonl"}));
  app.add_flag("--bos", settings->add_bos, "begin the prompt with the tokenizer's BOS");
}

void DefineContextOptions(CLI::App& app, GenerateSettings* settings) {
  app.add_option(
         "--context-cache", settings->context_cache,
         "folder that embed --context-cache made: prompts name its texts by \"context\", and their keys "
         "and values are read instead of computed")
      ->type_name("DIR")
      ->excludes(app.get_option("--prompt"));
  app.add_option("--state-in", settings->state_in,
                 "go on from the state in a file that --state-out wrote: prompts are appended to its tokens")
      ->type_name("FILE");
  app.add_option("--state-out", settings->state_out,
                 "write the state of a recurrent model after --prompt, for --state-in")
      ->type_name("FILE");
  app.add_option("--state-after", settings->state_after,
                 "whether --state-out is the state after the prompt, or after its one sample")
      ->check(CLI::IsMember({"prompt", "sample"}));
}

void DefineSamplingOptions(CLI::App& app, GenerateSettings* settings) {
  const std::string sampling = "Sampling";
  app.add_option("--samples", settings->samples, "samples of each prompt")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->group(sampling);
  app.add_option("--temperature", settings->sampling.temperature, "0: the most probable token each time")
      ->check(CLI::NonNegativeNumber)
      ->group(sampling);
  app.add_option("--top-k", settings->sampling.top_k,
                 "draw from this many of the most probable tokens; 0: from all")
      ->check(CLI::NonNegativeNumber)
      ->group(sampling);
  app.add_option("--top-p", settings->sampling.top_p,
                 "draw from the most probable tokens that together have this probability")
      ->check(CLI::Range(std::numeric_limits<double>::denorm_min(), 1.0, "above 0 and at most 1"))
      ->group(sampling);
  app.add_option(
         "--min-p", settings->sampling.min_p,
         "draw from the tokens of at least this share of the most probable one's probability; 0: from all")
      ->check(CLI::Range(0.0, 1.0))
      ->group(sampling);
  app.add_option("--repetition-penalty", settings->sampling.repetition_penalty,
                 "divide positive logits of tokens that the sequence already has by this, and multiply "
                 "negative ones; 1: off")
      ->check(CLI::PositiveNumber)
      ->group(sampling);
  app.add_option(
         "--logprobs", settings->log_probabilities,
         "write the log probability of each token, and of this many of the most probable ones as well")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->group(sampling);
  app.add_option("--seed", settings->seed, "seed of the random numbers")->group(sampling);
}

void DefineRejectionOptions(CLI::App& app, GenerateSettings* settings) {
  const std::string rejection = "Rejection";
  app.add_option("--keep-if", settings->keep_if,
                 "write only samples that answer something, or that are right by the gold answers")
      ->check(CLI::IsMember({"answered", "valid", "strict"}))
      ->group(rejection);
  app.add_option("--keep", settings->keep,
                 "of a prompt's samples that pass: the first, all, or those with distinct texts")
      ->check(CLI::IsMember({"first", "all", "distinct"}))
      ->group(rejection);
  app.add_option(
         "--gold", settings->gold,
         "gold answers for --keep-if, as evaluate --metric answers takes them; nothing else reads them")
      ->type_name("FILE")
      ->group(rejection);
  app.add_option("--answer-format", settings->answer_format, "where a text has its answer, as evaluate's")
      ->check(CLI::IsMember({"auto", "tag", "gsm8k"}))
      ->group(rejection);
}

}  // namespace

void DefineGenerateOptions(CLI::App& app, GenerateSettings* settings) {
  AddCheckpointOption(app, &settings->checkpoint);
  AddAdapterOption(app, &settings->adapter, &settings->allow_other_base);
  DefinePromptOptions(app, settings);
  DefineContextOptions(app, settings);
  DefineSamplingOptions(app, settings);
  DefineRejectionOptions(app, settings);

  const std::string computing = "Computing";
  app.add_option("--batch", settings->batch, "sequences that are decoded together")
      ->check(CLI::Range(int64_t{1}, int64_t{65536}))
      ->group(computing);
  app.add_flag("--batch-invariant", settings->batch_invariant,
               "give the same bytes for every --batch and number of ranks")
      ->group(computing);
  AddPrecisionOption(app, &settings->mixed_precision);
  AddQuantOption(app, &settings->quant)->group(computing);
  AddDeviceOptions(app, computing, &settings->device, &settings->attn_backend, &settings->threads,
                   &settings->kernels);
  AddRankOptions(app, computing, &settings->nproc, &settings->dist_timeout_s);
}

}  // namespace trainwright

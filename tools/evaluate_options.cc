#include "tools/evaluate_options.h"

#include <CLI/App.hpp>

#include "tools/compute_options.h"
#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& EvaluateInfo() {
  static const ToolInfo info = {
      .name = "evaluate",
      .summary = "measure how well a model predicts text",
      .text = ParseToolText(kEvaluateText),
      .see_also = {"train(1)", "generate(1)", "pretokenize(1)", "pack(1)"},
  };
  return info;
}

void DefineEvaluateOptions(CLI::App& app, EvaluateOptions* options) {
  AddCheckpointOption(app, &options->checkpoint)->required(false);
  AddAdapterOption(app, &options->adapter, &options->allow_other_base);
  app.add_option("--data", options->data,
                 "shards (folder or .tws file), or text to cut with the checkpoint's tokenizer (plain, gzip "
                 "or zstd); - is standard input")
      ->type_name("FILE");
  app.add_option(
         "--metric", options->metric,
         "what to measure: perplexity of --data under --checkpoint, or the answers in --samples; see METRICS")
      ->check(CLI::IsMember({"perplexity", "answers"}));
  app.add_option("--samples", options->samples,
                 "answers: what generate(1) wrote, a JSON line a sample; - is standard input")
      ->type_name("FILE");
  app.add_option("--gold", options->gold,
                 "answers: the right answers, JSON lines with prompt (or question) and gold (or answer), a "
                 "number or a text that holds one as --answer-format auto finds it")
      ->type_name("FILE");
  app.add_option("--answer-format", options->answer_format,
                 "answers: where a sample's number is. tag: between <answer> and </answer>, or the first of "
                 "the text; gsm8k: behind ####; auto: by what is there")
      ->check(CLI::IsMember({"tag", "gsm8k", "auto"}));
  app.add_option("--min-accuracy", options->min_accuracy,
                 "answers: exit with status 1 when the accuracy is below this share")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--format", options->format,
                 "what --data is; auto: shards for folders and shard files, jsonl for .jsonl, else lines")
      ->check(CLI::IsMember({"auto", "shards", "lines", "jsonl", "nul", "file"}));
  app.add_option("--key", options->keys,
                 "where a JSON line keeps its text; may be given again (default: text)")
      ->type_name("PATH");
  app.add_flag("--bos", options->bos, "begin each document of raw text with the tokenizer's BOS");
  app.add_flag("--eos", options->eos, "end each document of raw text with the tokenizer's EOS");
  app.add_flag("--allow-other-tokenizer", options->allow_other_tokenizer,
               "evaluate shards of another tokenizer than the checkpoint's");
  app.add_option("--loss-on", options->loss_on,
                 "of conversations in shards (pretokenize --records sft), what is measured: assistant for "
                 "the answers and the marks that end them, all for every token")
      ->check(CLI::IsMember({"assistant", "all"}));
  app.add_option("--eval-split", options->eval_split,
                 "of shards, only what train --eval-split holds out: a share or a number of the documents")
      ->type_name("SHARE|COUNT");
  app.add_option("--eval-split-seed", options->eval_split_seed, "as train's, with --eval-split");
  app.add_option("--seq", options->seq, "longest span in tokens; 0: the model's context")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch", options->batch, "sequences computed at once")->check(CLI::PositiveNumber);
  AddPrecisionOption(app, &options->mixed_precision);
  AddDeviceOptions(app, "", &options->device, &options->attn_backend, &options->threads);
  AddRankOptions(app, "", &options->nproc, &options->dist_timeout_s);
  app.add_option("--logits", options->logits,
                 "also write tokens, span_starts and fp32 logits of the first batch as safetensors, for "
                 "comparison with other implementations")
      ->type_name("FILE");
}

}  // namespace trainwright

#include "tools/evaluate_options.h"

#include <CLI/CLI.hpp>

#include "tools/compute_options.h"

namespace trainwright {

const ToolInfo& EvaluateInfo() {
  static const ToolInfo info = {
      .name = "evaluate",
      .summary = "measure how well a model predicts text",
      .description =
          "Computes the loss of a checkpoint on shards or on raw text and prints one JSON object.\n"
          "\n"
          "Documents are cut into spans of at most --seq tokens, as train(1) cuts them: attention stays "
          "inside a "
          "span, and the last label of a cut span is the token after the cut. Every token but the first of a "
          "document is predicted.",
      .sections =
          {{"OUTPUT",
            "loss_nats is the mean over all predicted tokens of -log p; perplexity is its "
            "exponential; bits_per_token "
            "the same in bits; bits_per_byte all bits divided by the bytes of the documents' text, "
            "which makes "
            "models with different tokenizers comparable. tokens and docs count what was read, "
            "labels the predicted "
            "tokens, source_bytes the bytes of text. loss_on says what is predicted: all, or, of shards of "
            "conversations, assistant: the answers and the marks that end them. Then labels counts their "
            "tokens, source_bytes the bytes of their text, and perplexity is that of the answers given their "
            "prompts; --loss-on all measures every token."},
           {"METRICS",
            "perplexity needs --checkpoint and --data.\n"
            "\n"
            "answers needs --samples and --gold, and no model: it reads what generate(1) wrote and scores "
            "it. A "
            "sample belongs to the question that its prompt is, white space at both ends apart. Its answer "
            "is "
            "the number between <answer> and </answer> (or to the end of the text), behind the last ####, or "
            "the first number of the text, as --answer-format says; a text without a number has no answer, "
            "which is never taken for 0. accuracy counts answers within 5 % of the gold answer, both rounded "
            "to three decimals (within 0.001 of a gold 0); strict_accuracy those within a relative 0.001; "
            "exact_accuracy equal numbers, as GSM8K is scored; answer_rate those that are numbers. Each is "
            "of "
            "n, the number of gold questions, and has Wilson's 95 % interval beside it. Where a question has "
            "several samples the first one counts; sample_accuracy is the share of valid ones among all "
            "samples, any_valid that of questions with at least one. missing counts questions without a "
            "sample, which have no answer."},
           {"CHECKPOINTS",
            "--checkpoint takes a checkpoint folder of train(1), a run directory (its latest "
            "checkpoint is used), or "
            "any Llama, Mistral, Qwen2, GPT-2 or GPT-NeoX model folder as Hugging Face transformers "
            "writes it. Files that "
            "metadata.json lists are "
            "checked against their hashes first."}},
      .examples =
          {{"pretokenize tinyshakespeare.txt | pack --chunk 1024 -o shards/ && train --steps 2 "
            "--batch 1 --seq 64 --out runs/tiny && head "
            "-n 200 tinyshakespeare.txt | evaluate --checkpoint runs/tiny --data -",
            "Perplexity on text, a document a line, cut by the tokenizer inside the checkpoint."},
           {"printf '{\"prompt\": \"2+2? \", \"text\": \"<answer>4</answer>\", \"sample\": 0}\\n' > "
            "samples.jsonl && printf "
            "'{\"prompt\": \"2+2?\", \"gold\": 4}\\n' > gold.jsonl && evaluate --metric answers --samples "
            "samples.jsonl --gold gold.jsonl",
            "The share of right answers among samples, with its interval."}},
      .see_also = {"train(1)", "generate(1)", "pretokenize(1)", "pack(1)"},
  };
  return info;
}

void DefineEvaluateOptions(CLI::App& app, EvaluateOptions* options) {
  AddCheckpointOption(app, &options->checkpoint)->required(false);
  AddAdapterOption(app, &options->adapter, &options->allow_other_base);
  app.add_option("--data", options->data,
                 "shards (folder or .tws file), or text to cut with the checkpoint's tokenizer (plain, gzip "
                 "or zstd); "
                 "- is standard input")
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
                 "number or a "
                 "text that holds one as --answer-format auto finds it")
      ->type_name("FILE");
  app.add_option("--answer-format", options->answer_format,
                 "answers: where a sample's number is. tag: between <answer> and </answer>, or the first of "
                 "the text; "
                 "gsm8k: behind ####; auto: by what is there")
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
                 "the answers "
                 "and the marks that end them, all for every token")
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
  app.add_option("--logits", options->logits,
                 "also write tokens, span_starts and fp32 logits of the first batch as safetensors, for "
                 "comparison with "
                 "other implementations")
      ->type_name("FILE");
}

}  // namespace trainwright

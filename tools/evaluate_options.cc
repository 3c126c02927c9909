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
      .sections = {{"OUTPUT",
                    "loss_nats is the mean over all predicted tokens of -log p; perplexity is its "
                    "exponential; bits_per_token "
                    "the same in bits; bits_per_byte all bits divided by the bytes of the documents' text, "
                    "which makes "
                    "models with different tokenizers comparable. tokens and docs count what was read, "
                    "labels the predicted "
                    "tokens, source_bytes the bytes of text."},
                   {"CHECKPOINTS",
                    "--checkpoint takes a checkpoint folder of train(1), a run directory (its latest "
                    "checkpoint is used), or "
                    "any Llama or GPT-2 model folder as Hugging Face transformers writes it. Files that "
                    "metadata.json lists are "
                    "checked against their hashes first."}},
      .examples = {{"pretokenize tinyshakespeare.txt | pack --chunk 1024 -o shards/ && train --steps 2 "
                    "--batch 1 --seq 64 --out runs/tiny && head "
                    "-n 200 tinyshakespeare.txt | evaluate --checkpoint runs/tiny --data -",
                    "Perplexity on text, a document a line, cut by the tokenizer inside the checkpoint."}},
      .see_also = {"train(1)", "generate(1)", "pretokenize(1)", "pack(1)"},
  };
  return info;
}

void DefineEvaluateOptions(CLI::App& app, EvaluateOptions* options) {
  AddCheckpointOption(app, &options->checkpoint);
  app.add_option("--data", options->data,
                 "shards (folder or .tws file), or text to cut with the checkpoint's tokenizer (plain, gzip "
                 "or zstd); "
                 "- is standard input")
      ->type_name("FILE")
      ->required();
  app.add_option("--metric", options->metric, "what to measure")->check(CLI::IsMember({"perplexity"}));
  app.add_option("--format", options->format,
                 "what --data is; auto: shards for folders and .tws, jsonl for .jsonl, else lines")
      ->check(CLI::IsMember({"auto", "shards", "lines", "jsonl", "nul", "file"}));
  app.add_option("--key", options->keys,
                 "where a JSON line keeps its text; may be given again (default: text)")
      ->type_name("PATH");
  app.add_flag("--bos", options->bos, "begin each document of raw text with the tokenizer's BOS");
  app.add_flag("--eos", options->eos, "end each document of raw text with the tokenizer's EOS");
  app.add_flag("--allow-other-tokenizer", options->allow_other_tokenizer,
               "evaluate shards of another tokenizer than the checkpoint's");
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

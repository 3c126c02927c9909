#include "tools/generate_options.h"

#include <CLI/CLI.hpp>

#include "tools/compute_options.h"

namespace trainwright {

const ToolInfo& GenerateInfo() {
  static const ToolInfo info = {
      .name = "generate",
      .summary = "continue prompts with a model",
      .description =
          "Continues prompts greedily (the most probable token each time) and prints one JSON line a prompt "
          "as soon as "
          "it is done: prompt, text (the continuation), ids (its tokens), sample (its number among the "
          "prompt's "
          "samples), finish (eos, length or context).\n"
          "\n"
          "Without --prompt, prompts are read from standard input as JSON lines {\"prompt\": \"...\"}.",
      .sections =
          {{"CHECKPOINTS",
            "--checkpoint takes a checkpoint folder of train(1), a run directory (its latest checkpoint is "
            "used), or any Llama or GPT-2 model folder as Hugging Face transformers writes it, with its "
            "tokenizer."}},
      .examples = {{"pretokenize tinyshakespeare.txt | pack --chunk 1024 -o shards/ && train --steps 2 "
                    "--batch 1 --seq 64 --out runs/tiny && generate "
                    "--checkpoint runs/tiny --prompt 'O Romeo' --max-tokens 8",
                    "One continuation by a model that has hardly begun to learn."},
                   {"echo '{\"prompt\": \"O Romeo\"}' | generate --checkpoint runs/tiny --max-tokens 8",
                    "Prompts from a pipe."}},
      .see_also = {"train(1)", "evaluate(1)"},
  };
  return info;
}

void DefineGenerateOptions(CLI::App& app, GenerateOptions* options) {
  AddCheckpointOption(app, &options->checkpoint);
  app.add_option("--prompt,prompt", options->prompt,
                 "text to continue (default: JSON lines on standard input)")
      ->type_name("TEXT");
  app.add_option("--max-tokens", options->max_tokens, "longest continuation in tokens")
      ->check(CLI::PositiveNumber);
  app.add_flag("--bos", options->bos, "begin the prompt with the tokenizer's BOS");
  AddPrecisionOption(app, &options->mixed_precision);
  AddDeviceOptions(app, "", &options->device, &options->attn_backend, &options->threads);
}

}  // namespace trainwright

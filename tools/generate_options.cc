#include "tools/generate_options.h"

#include <CLI/CLI.hpp>

#include "tools/compute_options.h"

namespace trainwright {

const ToolInfo& GenerateInfo() {
  static const ToolInfo info = {
      .name = "generate",
      .summary = "continue prompts with a model",
      .description =
          "Continues prompts and prints one JSON line a sample: prompt, text (the continuation), ids (its "
          "tokens), sample (its number among the prompt's samples), finish (eos, length, context or stop) "
          "and, "
          "where the prompt's line has one, id. Lines come in the order of the prompts.\n"
          "\n"
          "Without --prompt, prompts are read as JSON lines {\"prompt\": \"...\"} from a file or standard "
          "input.",
      .sections =
          {{"CHECKPOINTS",
            "--checkpoint takes a checkpoint folder of train(1), a run directory (its latest checkpoint is "
            "used), or any Llama, Mistral, Qwen2, GPT-2 or GPT-NeoX model folder as Hugging Face "
            "transformers writes it, with its "
            "tokenizer."},
           {"CONVERSATIONS",
            "With --template, a prompt is a conversation: {\"messages\": [...]} that ends with the user's "
            "turn, "
            "{\"prompt\"}, {\"question\"} or {\"instruction\", \"input\"}; what else a line has is not "
            "looked at. The "
            "ids are those that pretokenize --records sft gives before an answer, and what ends an answer "
            "there ends "
            "the sample. In the output prompt is what the user said last."},
           {"REJECTION",
            "--keep-if looks at samples when they are made, and changes none: answered keeps those with a "
            "number as "
            "their answer (a tag that is opened must be closed), valid those within 5 % of the gold answer, "
            "strict "
            "those within 0.1 %. What is written can be given to pretokenize --records sft. The counts go to "
            "--summary."},
           {"SAMPLING",
            "--temperature 0, the default, takes the most probable token each time. Otherwise tokens are "
            "drawn "
            "from the probabilities of the logits over the temperature, of those the --top-k largest, of "
            "those the "
            "most probable that hold --top-p of the whole, in this order.\n"
            "\n"
            "A sample is a function of --seed, the prompt's number and its own number: neither of the "
            "samples "
            "around it nor of when it was made. Logits computed for another number of sequences can differ "
            "in the "
            "last bits, though, and then so can a choice between tokens that are all but equal. With "
            "--batch-invariant they do not: prompts are computed one by one and steps in rows of a fixed "
            "number, so "
            "that any --batch gives the same bytes on the same machine."}},
      .examples = {{"pretokenize tinyshakespeare.txt | pack --chunk 1024 -o shards/ && train --steps 2 "
                    "--batch 1 --seq 64 --out runs/tiny && generate "
                    "--checkpoint runs/tiny --prompt 'O Romeo' --max-tokens 8",
                    "One continuation by a model that has hardly begun to learn."},
                   {"echo '{\"prompt\": \"O Romeo\"}' | generate --checkpoint runs/tiny --max-tokens 8",
                    "Prompts from a pipe."},
                   {"generate --checkpoint runs/tiny --prompt 'O Romeo' --max-tokens 8 --samples 3 "
                    "--temperature 0.7 --top-p 0.9 --seed 1",
                    "Three samples."}},
      .see_also = {"train(1)", "evaluate(1)"},
  };
  return info;
}

void DefineGenerateOptions(CLI::App& app, GenerateSettings* settings) {
  AddCheckpointOption(app, &settings->checkpoint);
  AddAdapterOption(app, &settings->adapter, &settings->allow_other_base);
  CLI::Option* const prompt = app.add_option("--prompt,prompt", settings->prompt,
                                             "text to continue (default: JSON lines of --input)");
  prompt->type_name("TEXT");
  app.add_option("--input", settings->input, "JSON lines with prompts; - is standard input")
      ->type_name("FILE")
      ->excludes(prompt);
  app.add_option("--max-tokens", settings->max_tokens, "longest continuation in tokens")
      ->check(CLI::PositiveNumber);
  app.add_option("--stop", settings->stops,
                 "text that ends a sample and is not part of it; may be given several times")
      ->type_name("TEXT");
  app.add_option("--template", settings->chat_template,
                 "how a conversation is written, as pretokenize --template: prompts are then conversations")
      ->type_name("NAME|FILE");
  app.add_flag("--bos", settings->add_bos, "begin the prompt with the tokenizer's BOS");

  const std::string sampling = "Sampling";
  app.add_option("--samples", settings->samples, "samples of each prompt")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->group(sampling);
  app.add_option("--temperature", settings->sampling.temperature, "0: the most probable token each time")
      ->check(CLI::NonNegativeNumber)
      ->group(sampling);
  app.add_option("--top-k", settings->sampling.top_k,
                 "draw from the so many most probable tokens; 0: from all")
      ->check(CLI::NonNegativeNumber)
      ->group(sampling);
  app.add_option("--top-p", settings->sampling.top_p,
                 "draw from the most probable tokens that together have this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->group(sampling);
  app.add_option("--seed", settings->seed, "of the random numbers")->group(sampling);

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

  const std::string computing = "Computing";
  app.add_option("--batch", settings->batch, "sequences that are decoded together")
      ->check(CLI::Range(int64_t{1}, int64_t{65536}))
      ->group(computing);
  app.add_flag("--batch-invariant", settings->batch_invariant, "give the same bytes for every --batch")
      ->group(computing);
  AddPrecisionOption(app, &settings->mixed_precision);
  AddDeviceOptions(app, computing, &settings->device, &settings->attn_backend, &settings->threads);
}

}  // namespace trainwright

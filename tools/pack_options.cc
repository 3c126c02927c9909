#include "tools/pack_options.h"

#include <CLI/CLI.hpp>

namespace trainwright {

const ToolInfo& PackInfo() {
  static const ToolInfo info = {
      .name = "pack",
      .summary = "pack token streams into shards of equally long chunks",
      .description =
          "Reads the token streams that pretokenize(1) writes, from standard input or from files (plain, "
          "gzip or "
          "zstd), and packs their documents into chunks of --chunk tokens, the training sequences. Chunks "
          "are "
          "compressed and written as shards (trainwright-shard(5)): to a folder, to one file, or to standard "
          "output.\n"
          "\n"
          "Document boundaries are stored, so that train(1) keeps attention, positions and labels inside "
          "each "
          "document. A document that is cut keeps the label of its last position: no token and no label is "
          "lost under "
          "the default --overflow split.\n"
          "\n"
          "The bytes written depend on the input and on the packing options, not on --threads, nor on "
          "whether the "
          "input is a pipe or a file. An input that ends too early (a producer that died) is an error with "
          "exit "
          "status 3, and nothing is put in place of a former result.\n"
          "\n"
          "When done, one line on standard error says how many documents were cut, how much padding was "
          "needed and "
          "how many compressed bits a token takes; --summary FILE holds the same as JSON.\n"
          "\n"
          "With --info, --verify or --cat the INPUTs are not token streams but packed shards.",
      .sections =
          {{"PACKING MODES",
            "bestfit (the default) looks at a window of documents together, longest first, and puts each "
            "into the "
            "chunk with the least room that holds it. No document that fits a chunk is cut. The emptiest "
            "chunks of a "
            "window are taken apart and join the next window, so that padding is a few hundredths of a per "
            "cent "
            "wherever documents are shorter than chunks. Memory is 4 bytes for each token of --window.\n"
            "\n"
            "concat lays documents end to end in input order and cuts them where a chunk ends; only the last "
            "chunk is "
            "padded.\n"
            "\n"
            "none makes one chunk of each document, as long as the document: for evaluation document by "
            "document.\n"
            "\n"
            "Documents longer than a chunk are subject to --overflow in every mode: split (the default but for "
            "conversations) cuts them and "
            "keeps "
            "everything, truncate keeps the first chunk's worth, drop leaves them out, error refuses the "
            "input. "
            "Documents without tokens are left out."},
           {"CONVERSATIONS",
            "Of sft records (pretokenize --records sft) each token is either predicted or only read, and the "
            "shards say which. --info counts the predicted ones as loss_tokens; --cat --json shows them segment "
            "by segment.\n"
            "\n"
            "A conversation is never cut unless --overflow split asks for it. The default, error, stops at the "
            "first that is longer than --chunk, so that nothing is lost unseen. drop leaves such conversations "
            "out. truncate keeps the first --chunk tokens; where these hold fewer than --keep-answer predicted "
            "tokens, the conversation loses its beginning instead and keeps the --chunk tokens that end with the "
            "predicted token of that number. --mode concat cuts wherever a chunk ends and is refused without "
            "--overflow split."},
           {"OUTPUT",
            "A path that ends in / or names a folder makes a folder of shards. Each shard appears when it is "
            "complete; "
            "MANIFEST.json, written last, seals the set. Until then readers see the former set, if there is "
            "one; "
            "afterwards the former set's shards are deleted, and no other file. What a killed run leaves "
            "behind is "
            "removed by the next one, which says so. A folder takes one writer at a time.\n"
            "\n"
            "Any other path is a file, which appears whole or not at all. Its bytes, and those on standard "
            "output, are "
            "the bytes of the folder's shards one after the other: cat DIR/shard-*.tws gives the same "
            "stream. Every "
            "shard is also a legal zstd stream."},
           {"FILES",
            "DIR/shard-NUMBER-HASH.tws\n"
            "  a shard, see trainwright-shard(5)\n"
            "\n"
            "DIR/MANIFEST.json\n"
            "  names, sizes and content hashes of the shards: the seal of the set\n"
            "\n"
            "DIR/.lock, DIR/.pack-journal, DIR/.shard-NUMBER.tmp-PID\n"
            "  the writer's lock, its list of shards not sealed yet, and the shard it is writing"}},
      .examples =
          {{"pretokenize --tokenizer mistral-v1.model tinyshakespeare.txt | pack --chunk 2048 -o shards/",
            "Every line of a text as a document, packed into a folder of shards."},
           {"pretokenize --tokenizer mistral-v1.model --format jsonl --key question gsm8k-train.jsonl | "
            "pack --chunk 512 --overflow truncate > questions.tws",
            "One file of shards; the few questions that are longer than 512 tokens lose their end."},
           {"pretokenize --records sft --template qa-space gsm8k-train.jsonl | pack --chunk 1024 "
            "--overflow drop -o sft/",
            "Questions and answers, of which the answers are predicted; those longer than 1024 bytes are left "
            "out."},
           {"pretokenize tinyshakespeare.txt -o bytes.tok && pack --mode concat bytes.tok -o bytes.tws && "
            "pack --info bytes.tws",
            "From a token stream in a file, and a look at the result."},
           {"pretokenize tinyshakespeare.txt | pack --chunk 4096 | pack --verify",
            "Checks every byte of a stream of shards on its way."},
           {"pretokenize tinyshakespeare.txt | pack --chunk 64 | pack --cat --json | head -n 1",
            "The first chunk: its segments and ids."}},
      .see_also = {"pretokenize(1)", "train(1)", "trainwright-token-stream(5)", "trainwright-shard(5)"},
  };
  return info;
}

void DefinePackOptions(CLI::App& app, PackOptions* options) {
  app.add_option(
         "INPUT", options->inputs,
         "Token streams to pack, in this order. - or none is standard input. With --info, --verify or --cat: "
         "folders or files of shards.")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output,
                 "Where the shards go: a folder (DIR/), a file, or - for standard output. See OUTPUT.")
      ->type_name("FILE");
  app.add_flag("-f,--force", options->force, "Write binary data even to a terminal.");
  app.add_option("--threads", options->threads,
                 "Threads that compress, 0 for one a CPU. The bytes written do not depend on it.")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));

  const std::string packing = "Packing";
  app.add_option("--chunk", options->chunk, "Tokens in a chunk, the longest training sequence.")
      ->type_name("N")
      ->check(CLI::Range(2u, 1u << 24))
      ->group(packing);
  AddChoice(
      app, "--mode", &options->mode,
      {{"bestfit", PackMode::kBestFit}, {"concat", PackMode::kConcat}, {"none", PackMode::kNone}},
      "How documents share chunks. bestfit cuts no document that fits a chunk, concat cuts wherever a chunk "
      "ends, none gives each document a chunk. See PACKING MODES.")
      ->type_name("MODE")
      ->group(packing);
  AddChoice(app, "--overflow", &options->overflow,
            {{"auto", std::nullopt},
             {"split", OverflowPolicy::kSplit},
             {"truncate", OverflowPolicy::kTruncate},
             {"drop", OverflowPolicy::kDrop},
             {"error", OverflowPolicy::kError}},
            "What to do with a document longer than a chunk. split cuts it into several, truncate keeps its "
            "beginning, drop leaves it out, error refuses the input. auto is split for lm records and error for "
            "sft. See PACKING MODES and CONVERSATIONS.")
      ->type_name("POLICY")
      ->group(packing);
  app.add_option("--keep-answer", options->keep_answer,
                 "Predicted tokens that truncate leaves in a conversation at least, at the cost of its "
                 "beginning. 0 always keeps the beginning. See CONVERSATIONS.")
      ->type_name("N")
      ->group(packing);
  app.add_option("--window", options->window,
                 "Tokens that bestfit looks at together, at least one chunk's worth. 4 bytes of memory each.")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->group(packing);

  const std::string writing = "Writing shards";
  app.add_option("--level", options->level,
                 "Level of the zstd compression. 19 is some 10 % smaller and 30 times slower.")
      ->type_name("N")
      ->check(CLI::Range(1, 19))
      ->group(writing);
  app.add_option("--shard-size", options->shard_size, "Most bytes in a shard. In bytes, or as 64MiB or 1GB.")
      ->type_name("SIZE")
      ->group(writing);

  const std::string looking = "Looking into shards";
  CLI::Option* info = app.add_flag("--info", options->info, "Print what the shards hold.")->group(looking);
  CLI::Option* verify =
      app.add_flag(
             "--verify", options->verify,
             "Check every byte of the shards. Exit status 3 and a message with the place if one is wrong.")
          ->group(looking);
  CLI::Option* cat =
      app.add_flag("--cat", options->cat,
                   "Print the text of the shards in stored order. Each document, or part of one, has a "
                   "newline behind it.")
          ->group(looking);
  info->excludes(verify)->excludes(cat);
  verify->excludes(cat);
  app.add_flag("--json", options->json,
               "Print JSON. With --info or --verify one object for each INPUT, with --cat one for each chunk "
               "with its "
               "segments and ids.")
      ->group(looking);
}

}  // namespace trainwright

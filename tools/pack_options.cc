#include "tools/pack_options.h"

#include <CLI/App.hpp>

#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& PackInfo() {
  static const ToolInfo info = {
      .name = "pack",
      .summary = "pack token streams into shards of equally long chunks",
      .text = ParseToolText(kPackText),
      .see_also = {"pretokenize(1)", "train(1)", "trainwright-token-stream(5)", "trainwright-shard(5)",
                   "trainwright-glossary(7)"},
      .variables = {{"verify", "pack-verify"}},
      .outputs = {{"output", {}}},
  };
  return info;
}

namespace {

void DefineInputOptions(CLI::App& app, PackOptions* options) {
  app.add_option("INPUT", options->inputs,
                 "Token streams to pack, or folders of them, in this order. - or none is standard input. "
                 "With --info, --verify, --cat, --repair or --export: folders or files of shards.")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output,
                 "Where the shards go: a folder (DIR/), a file, or - for standard output. See OUTPUT.")
      ->type_name("FILE");
  AddChoice(app, "--on-error", &options->skip_corrupt, {{"fail", false}, {"skip", true}},
            "What to do with a corrupt INPUT. fail ends the run; skip reads every file to its end before "
            "packing, and leaves out those that are cut or corrupt, with a warning.")
      ->type_name("ACTION");
  app.add_flag("-f,--force", options->force, "Write binary data even to a terminal.");
  app.add_option("--threads", options->threads,
                 "Threads that compress, 0 for one a CPU. The bytes written do not depend on it.")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
}

void DefineImportOptions(CLI::App& app, PackOptions* options) {
  const std::string group = "Reading other programs' files";
  AddChoice(app, "--from", &options->from,
            {{"auto", std::nullopt},
             {"tokens", ForeignFormat::kTokens},
             {"llmc", ForeignFormat::kLlmC},
             {"nanogpt", ForeignFormat::kNanoGpt},
             {"megatron", ForeignFormat::kMegatron},
             {"npz", ForeignFormat::kNpz},
             {"pt", ForeignFormat::kTorch}},
            "What the INPUTs are: token streams, or token ids as other programs store them. auto looks at "
            "the first. See OTHER PROGRAMS.")
      ->type_name("FORMAT")
      ->group(group);
  app.add_option("--tokenizer", options->tokenizer,
                 "The tokenizer that made the ids, as for pretokenize. Without it, the shards say that it is "
                 "unknown.")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--vocab", options->vocab,
                 "Ids of the vocabulary, where nothing else says it; 0 is not known.")
      ->type_name("N")
      ->check(CLI::Range(0u, 1u << 31))
      ->group(group);
  app.add_option("--eot", options->eot, "Id that separates documents, or none.")
      ->type_name("ID|none")
      ->group(group);
}

void DefinePackingOptions(CLI::App& app, PackOptions* options) {
  const std::string group = "Packing";
  app.add_option("--chunk", options->chunk, "Tokens in a chunk, the longest training sequence.")
      ->type_name("N")
      ->check(CLI::Range(2u, 1u << 24))
      ->group(group);
  AddChoice(app, "--mode", &options->mode,
            {{"bestfit", PackMode::kBestFit}, {"concat", PackMode::kConcat}, {"none", PackMode::kNone}},
            "How documents share chunks. bestfit cuts no document that fits a chunk, concat cuts wherever a "
            "chunk ends, none gives each document a chunk. See PACKING MODES.")
      ->type_name("MODE")
      ->group(group);
  AddChoice(app, "--overflow", &options->overflow,
            {{"auto", std::nullopt},
             {"split", OverflowPolicy::kSplit},
             {"truncate", OverflowPolicy::kTruncate},
             {"drop", OverflowPolicy::kDrop},
             {"error", OverflowPolicy::kError}},
            "What to do with a document longer than a chunk. split cuts it into several, truncate keeps its "
            "beginning, drop leaves it out, error refuses the input. auto is split for lm records and error "
            "for sft and contrastive ones. See PACKING MODES and CONVERSATIONS.")
      ->type_name("POLICY")
      ->group(group);
  app.add_option("--stride", options->stride,
                 "Tokens from the beginning of a window to that of the next, where --overflow split cuts a "
                 "long document: 512 with --chunk 1024 has each window repeat half of the one before. 0 "
                 "repeats nothing. See PACKING MODES.")
      ->type_name("N")
      ->check(CLI::Range(0u, 1u << 24))
      ->group(group);
  app.add_option("--keep-answer", options->keep_answer,
                 "Predicted tokens that truncate leaves in a conversation at least, at the cost of its "
                 "beginning. 0 always keeps the beginning. See CONVERSATIONS.")
      ->type_name("N")
      ->group(group);
  app.add_option("--window", options->window,
                 "Tokens that bestfit considers together, at least one chunk's worth and at most 65,536 "
                 "documents. 4 bytes of memory each.")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->group(group);
}

void DefineWritingOptions(CLI::App& app, PackOptions* options) {
  const std::string group = "Writing shards";
  app.add_option("--level", options->level,
                 "Level of the zstd compression. 19 is some 10 % smaller and 30 times slower.")
      ->type_name("N")
      ->check(CLI::Range(1, 19))
      ->group(group);
  app.add_flag("--remap", options->remap,
               "Store ids as codes, short for frequent ones: some 10 % smaller, and any program of this "
               "suite reads it. See CODES.")
      ->group(group);
  app.add_option("--shard-size", options->shard_size, "Most bytes in a shard. In bytes, or as 64MiB or 1GB.")
      ->type_name("SIZE")
      ->group(group);
  app.add_flag("--append", options->append,
               "Put the shards after the finished set that the folder -o holds. See OUTPUT.")
      ->group(group);
}

void DefineLookingOptions(CLI::App& app, PackOptions* options) {
  const std::string group = "Looking into shards";
  CLI::Option* info = app.add_flag("--info", options->info, "Print what the shards hold.")->group(group);
  CLI::Option* verify =
      app.add_flag(
             "--verify", options->verify,
             "Check every byte of the shards. Exit status 3 and a message with the place if one is wrong.")
          ->group(group);
  CLI::Option* cat = app.add_flag("--cat", options->cat,
                                  "Print the text of the shards in stored order. Each document, or part of "
                                  "one, has a newline after it.")
                         ->group(group);
  CLI::Option* repair =
      app.add_flag("--repair", options->repair,
                   "Save what is left of one damaged or cut INPUT as a new set, at -o. See REPAIR.")
          ->group(group);
  CLI::Option* exported =
      AddChoice(app, "--export", &options->export_nanogpt, {{"no", false}, {"nanogpt", true}},
                "Write the ids of the shards to -o, 16 bits each and nothing else, as nanoGPT reads them.")
          ->type_name("FORMAT")
          ->group(group);
  info->excludes(verify)->excludes(cat)->excludes(repair);
  verify->excludes(cat)->excludes(repair);
  cat->excludes(repair);
  for (CLI::Option* other : {info, verify, cat, repair}) exported->excludes(other);
  app.add_flag("--json", options->json,
               "Print JSON. With --info or --verify one object for each INPUT, with --cat one for each chunk "
               "with its segments and ids.")
      ->group(group);
}

}  // namespace

void DefinePackOptions(CLI::App& app, PackOptions* options) {
  DefineInputOptions(app, options);
  DefineImportOptions(app, options);
  DefinePackingOptions(app, options);
  DefineWritingOptions(app, options);
  DefineLookingOptions(app, options);
}

}  // namespace trainwright

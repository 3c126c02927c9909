#include "tools/pack_options.h"

#include <CLI/CLI.hpp>

namespace trainwright {

const ToolInfo& PackInfo() {
  static const ToolInfo info = {
      .name = "pack",
      .summary = "pack token streams into shards of equally long chunks",
      .description =
          "Reads the token streams that pretokenize(1) writes, from standard input, from files (plain, "
          "gzip or "
          "zstd) or from finished folders of streams, and packs their documents into chunks of --chunk "
          "tokens, the training sequences. Chunks "
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
          "With --info, --verify, --cat, --export or --repair the INPUTs are not token streams but packed "
          "shards.",
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
            "Documents longer than a chunk are subject to --overflow in every mode: split (the default but "
            "for "
            "conversations) cuts them and "
            "keeps "
            "everything, truncate keeps the first chunk's worth, drop leaves them out, error refuses the "
            "input. "
            "Documents without tokens are left out."},
           {"CONVERSATIONS",
            "Of sft records (pretokenize --records sft) each token is either predicted or only read, and the "
            "shards say which. --info counts the predicted ones as loss_tokens; --cat --json shows them "
            "segment "
            "by segment.\n"
            "\n"
            "A conversation is never cut unless --overflow split asks for it. The default, error, stops at "
            "the "
            "first that is longer than --chunk, so that nothing is lost unseen. drop leaves such "
            "conversations "
            "out. truncate keeps the first --chunk tokens; where these hold fewer than --keep-answer "
            "predicted "
            "tokens, the conversation loses its beginning instead and keeps the --chunk tokens that end with "
            "the "
            "predicted token of that number. --mode concat cuts wherever a chunk ends and is refused without "
            "--overflow split."},
           {"CODES",
            "With --remap the shards store each id as a code of one to three bytes, short for frequent ids, "
            "and the "
            "table of the codes. Readers give the true ids. The frequencies are those of the first chunks, "
            "64 MiB of "
            "them in memory: 16,777,216 tokens, fewer of chunks or documents of a few tokens. They are the "
            "same of a "
            "file as of a pipe, so that the same tokens give the same bytes. The codes change the content "
            "hash: train "
            "takes a set packed with --remap for another set of data than the same without.\n"
            "\n"
            "Programs of older releases do not read such shards and say so."},
           {"OUTPUT",
            "A path that ends in / or names a folder makes a folder of shards. Each shard appears when it is "
            "complete; "
            "MANIFEST.json, written last, seals the set. Until then readers see the former set, if there is "
            "one; "
            "afterwards the former set's shards are deleted, and no other file. What a killed run leaves "
            "behind is "
            "removed by the next one, which says so. A folder takes one writer at a time.\n"
            "\n"
            "--append puts new shards behind a folder's finished set instead: tokenizer, records, --chunk, "
            "--mode "
            "and --overflow must be those of the set and are refused by name otherwise; --remap is that of "
            "the "
            "set. Readers see the former set until the new MANIFEST.json is there, whatever happens. It says "
            "how "
            "the added shards were made. The former last shard is copied, since it says that it is the last; "
            "all "
            "others stay untouched. train takes the result for another set of data.\n"
            "\n"
            "Any other path is a file, which appears whole or not at all. Its bytes, and those on standard "
            "output, are "
            "the bytes of the folder's shards one after the other: cat DIR/shard-*.tws gives the same "
            "stream. Every "
            "shard is also a legal zstd stream."},
           {"OTHER PROGRAMS",
            "Files of token ids are packed as they are; their text is not known, so source_bytes is 0. "
            "--tokenizer "
            "says which tokenizer made them. Without it, the shards carry an unknown tokenizer of --vocab "
            "ids: train and "
            "evaluate take them, and nothing that needs text does. An id outside the vocabulary is refused.\n"
            "\n"
            "llmc: .bin files of llm.c, known by their header, with the vocabulary of GPT-2 (16 bits) or "
            "Llama 3 (32 "
            "bits) unless --vocab says otherwise. A document begins with id 50256 or 128000, or that of "
            "--eot.\n"
            "\n"
            "nanogpt: .bin files of 16-bit ids without a header; never guessed. A document ends with the id "
            "of --eot; "
            "--eot none makes a file one document. --export nanogpt writes such files.\n"
            "\n"
            "megatron: the .bin and .idx of Megatron-LM; name either. Its documents are the documents.\n"
            "\n"
            "npz: a NumPy archive, compressed or not, with an array of integers named input_ids, tokens or "
            "ids (or the "
            "only one). A row is a document; with sequence_lengths, lengths or attention_mask, what these "
            "leave out "
            "is padding.\n"
            "\n"
            "pt: what torch.save wrote of a tensor of integers, a list of them, or dictionaries with those "
            "names. The "
            "file is read as data: its pickle is never run, and one that names anything else is refused.\n"
            "\n"
            "With --eot, rows of npz and pt, and Megatron's documents, are divided behind that id as well."},
           {"REPAIR",
            "--repair walks the frames of one file of shards, or of a folder with or without its "
            "MANIFEST.json, "
            "past whatever cannot be read. Chunks of frames that verify make a new, sealed set at -o; the "
            "input "
            "stays as it is. Messages say which bytes could not be read, and which chunks and how many "
            "documents "
            "are lost; --summary holds the counts as chunks_lost, docs_lost and damages, null where nothing "
            "that is "
            "left counts them. A document of which a part is lost keeps its other parts, marked as cut. A "
            "chunk "
            "may move to another number, and the content hash changes.\n"
            "\n"
            "Exit status 0 says that something was saved, 3 that nothing could be: no header, or no frame, "
            "is whole. "
            "The ids need no tokenizer, but the text does: the model is in the first shard of a set, and a "
            "warning "
            "says when it is lost."},
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
            "Questions and answers, of which the answers are predicted; those longer than 1024 bytes are "
            "left "
            "out."},
           {"pretokenize tinyshakespeare.txt -o bytes.tok && pack --mode concat bytes.tok -o bytes.tws && "
            "pack --info bytes.tws",
            "From a token stream in a file, and a look at the result."},
           {"pretokenize tinyshakespeare.txt | pack --chunk 4096 | pack --verify",
            "Checks every byte of a stream of shards on its way."},
           {"pretokenize tinyshakespeare.txt | pack --chunk 4096 | pack --export nanogpt -o train.bin && "
            "pack --from nanogpt --tokenizer bytes --eot none train.bin -o again/",
            "Writes the ids as nanoGPT reads them, and packs such a file."},
           {"pretokenize tinyshakespeare.txt | pack --chunk 4096 -o whole.tws && head -c 100000 whole.tws > "
            "cut.tws && "
            "pack --repair cut.tws -o saved.tws",
            "Saves the whole frames of a file that was cut, and says what is lost."},
           {"pretokenize tinyshakespeare.txt | pack --chunk 64 | pack --cat --json | head -n 1",
            "The first chunk: its segments and ids."}},
      .see_also = {"pretokenize(1)", "train(1)", "trainwright-token-stream(5)", "trainwright-shard(5)"},
  };
  return info;
}

void DefinePackOptions(CLI::App& app, PackOptions* options) {
  app.add_option("INPUT", options->inputs,
                 "Token streams to pack, or folders of them, in this order. - or none is standard input. "
                 "With --info, --verify, "
                 "--cat, --repair or --export: "
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

  const std::string importing = "Reading other programs' files";
  AddChoice(
      app, "--from", &options->from,
      {{"auto", std::nullopt},
       {"tokens", ForeignFormat::kTokens},
       {"llmc", ForeignFormat::kLlmC},
       {"nanogpt", ForeignFormat::kNanoGpt},
       {"megatron", ForeignFormat::kMegatron},
       {"npz", ForeignFormat::kNpz},
       {"pt", ForeignFormat::kTorch}},
      "What the INPUTs are: token streams, or token ids as other programs store them. auto looks at the "
      "first. See OTHER PROGRAMS.")
      ->type_name("FORMAT")
      ->group(importing);
  app.add_option("--tokenizer", options->tokenizer,
                 "The tokenizer that made the ids, as for pretokenize. Without it, the shards say that it is "
                 "unknown.")
      ->type_name("FILE")
      ->group(importing);
  app.add_option("--vocab", options->vocab,
                 "Ids of the vocabulary, where nothing else tells; 0 is not known.")
      ->type_name("N")
      ->check(CLI::Range(0u, 1u << 31))
      ->group(importing);
  app.add_option("--eot", options->eot, "Id that stands between documents, or none.")
      ->type_name("ID|none")
      ->group(importing);

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
  AddChoice(
      app, "--overflow", &options->overflow,
      {{"auto", std::nullopt},
       {"split", OverflowPolicy::kSplit},
       {"truncate", OverflowPolicy::kTruncate},
       {"drop", OverflowPolicy::kDrop},
       {"error", OverflowPolicy::kError}},
      "What to do with a document longer than a chunk. split cuts it into several, truncate keeps its "
      "beginning, drop leaves it out, error refuses the input. auto is split for lm records and error for "
      "sft and contrastive ones. See PACKING MODES and CONVERSATIONS.")
      ->type_name("POLICY")
      ->group(packing);
  app.add_option("--keep-answer", options->keep_answer,
                 "Predicted tokens that truncate leaves in a conversation at least, at the cost of its "
                 "beginning. 0 always keeps the beginning. See CONVERSATIONS.")
      ->type_name("N")
      ->group(packing);
  app.add_option("--window", options->window,
                 "Tokens that bestfit looks at together, at least one chunk's worth and at most 65,536 "
                 "documents. 4 bytes of "
                 "memory each.")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->group(packing);

  const std::string writing = "Writing shards";
  app.add_option("--level", options->level,
                 "Level of the zstd compression. 19 is some 10 % smaller and 30 times slower.")
      ->type_name("N")
      ->check(CLI::Range(1, 19))
      ->group(writing);
  app.add_flag(
         "--remap", options->remap,
         "Store ids as codes, short for frequent ones: some 10 % smaller, and any program of this suite "
         "reads it. See CODES.")
      ->group(writing);
  app.add_option("--shard-size", options->shard_size, "Most bytes in a shard. In bytes, or as 64MiB or 1GB.")
      ->type_name("SIZE")
      ->group(writing);

  app.add_flag("--append", options->append,
               "Put the shards behind the finished set that the folder -o holds. See OUTPUT.")
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
  CLI::Option* repair =
      app.add_flag("--repair", options->repair,
                   "Save what is left of one damaged or cut INPUT as a new set, at -o. See REPAIR.")
          ->group(looking);
  CLI::Option* exported =
      AddChoice(app, "--export", &options->export_nanogpt, {{"no", false}, {"nanogpt", true}},
                "Write the ids of the shards to -o, 16 bits each and nothing else, as nanoGPT reads them.")
          ->type_name("FORMAT")
          ->group(looking);
  info->excludes(verify)->excludes(cat)->excludes(repair);
  verify->excludes(cat)->excludes(repair);
  cat->excludes(repair);
  for (CLI::Option* other : {info, verify, cat, repair}) exported->excludes(other);
  app.add_flag("--json", options->json,
               "Print JSON. With --info or --verify one object for each INPUT, with --cat one for each chunk "
               "with its "
               "segments and ids.")
      ->group(looking);
}

}  // namespace trainwright

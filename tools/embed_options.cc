#include "tools/embed_options.h"

#include <CLI/App.hpp>

#include "tools/compute_options.h"
#include "tools/template_names.h"
#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& EmbedInfo() {
  static const ToolInfo info = {
      .name = "embed",
      .summary = "turn texts into vectors with a model",
      .text = ParseToolText(kEmbedText),
      .see_also = {"pretokenize(1)", "train(1)", "evaluate(1)", "generate(1)", "trainwright-vectors(5)",
                   "trainwright-context(5)", "trainwright-glossary(7)"},
      .variables = {{"format", "embed-format"}, {"corpus", "embed-corpus"}},
      .suggestions = {{"template", TemplateNames()}},
      .outputs = {{"output", {}}},
  };
  return info;
}

void AddEmbeddingOptions(CLI::App& app, const std::string& group, EmbeddingSettings* settings) {
  app.add_option(
         "--truncate-dim", settings->truncate_dim,
         "elements of a vector that are kept, the first ones, scaled to length 1 again where the model's "
         "vectors have it; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option(
         "--max-length", settings->max_length,
         "longest text in tokens, its instruction included; longer ones lose their end. 0: what the model "
         "was trained with for the text's role, else all of its positions")
      ->check(CLI::NonNegativeNumber)
      ->group(group);
  app.add_option("--batch-tokens", settings->batch_tokens,
                 "tokens that are computed at once, but for a longer text")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_flag("--batch-invariant", settings->batch_invariant,
               "compute one text at a time: the same bytes whatever texts are beside it, for every "
               "--batch-tokens and number of ranks")
      ->group(group);
  app.add_option("--pooling", settings->pooling,
                 "how the hidden states of a text become a vector, where the model's folder does not say it. "
                 "mean: their mean; weightedmean: the mean with weights 1, 2, 3, ...; cls: the first one, an "
                 "instruction's included; lasttoken: the last one (default: mean)")
      ->check(CLI::IsMember({"mean", "weightedmean", "cls", "lasttoken"}))
      ->group(group);
  app.add_option("--attn", settings->attention,
                 "attention, where the folder does not say it; b for bidirectional, c for causal, of "
                 "instruction and text; a third and fourth letter are about generating (default: cccc, and "
                 "bb where config.json says is_causal: false)")
      ->check(CLI::IsMember({"bbcc", "cccc", "bb", "cc"}))
      ->group(group);
  app.add_option(
         "--template", settings->text_template,
         "how a text and its instruction are written, as pretokenize --template (default: that of the "
         "model, else the text as it is)")
      ->type_name("NAME|FILE")
      ->group(group);
}

namespace {

void AddMiningOptions(CLI::App& app, MiningSettings* mining) {
  const std::string group = "Mining";
  CLI::Option* const mine =
      app.add_option("--mine-negatives", mining->records,
                     "contrastive records to find hard negatives for; instead of vectors, --output gets "
                     "these records with the texts as \"neg\" that their queries are nearest to")
          ->type_name("FILE")
          ->group(group);
  app.add_option("--corpus", mining->corpus,
                 "texts to take negatives from, as --input has texts (default: all positives of the records)")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--negatives", mining->negatives, "most hard negatives of a record")
      ->check(CLI::Range(int64_t{1}, int64_t{10000}))
      ->needs(mine)
      ->group(group);
  app.add_option("--first-place", mining->first_place,
                 "first place of the query's ranking, its positives left out, that is taken")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->needs(mine)
      ->group(group);
  app.add_option("--last-place", mining->last_place, "last place that is taken")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->needs(mine)
      ->group(group);
  app.add_option(
         "--relative-margin", mining->relative_margin,
         "share of the positive's score by which a negative has to score lower at least: what is nearer may "
         "be right, too")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(mine)
      ->group(group);
  app.add_flag("--keep-negatives", mining->keep_negatives,
               "keep a record's own negatives, in front of the new ones")
      ->needs(mine)
      ->group(group);
}

}  // namespace

void DefineEmbedOptions(CLI::App& app, EmbedSettings* settings) {
  EmbeddingSettings* const embedding = &settings->embedding;
  AddCheckpointOption(app, &embedding->checkpoint);
  AddAdapterOption(app, &embedding->adapter, &embedding->allow_other_base);
  app.add_option(
         "--input,input", settings->input,
         "texts: lines, or JSON lines with text and perhaps title, instruction, role and id (plain, gzip or "
         "zstd); - is standard input")
      ->type_name("FILE");
  app.add_option("--input-format", settings->input_format,
                 "what --input is; auto: jsonl for .jsonl, .ndjson and .json, else lines")
      ->check(CLI::IsMember({"auto", "lines", "jsonl"}));
  app.add_option("--instruction", settings->instruction,
                 "instruction of texts that have none of their own (default: none)")
      ->type_name("TEXT");
  app.add_option(
         "--role", settings->role,
         "role of texts that have none of their own; the model's longest query and passage may differ")
      ->check(CLI::IsMember({"query", "passage"}));
  app.add_option("-o,--output", settings->output, "where the vectors go; - is standard output")
      ->type_name("FILE");
  app.add_option(
         "--format", settings->format,
         "format of the vectors: npy, raw (float32 after a header) or jsonl; auto: by the name of --output, "
         ".npy, .f32 or .jsonl, and jsonl for standard output")
      ->check(CLI::IsMember({"auto", "npy", "raw", "jsonl"}));
  app.add_flag("-f,--force", settings->force_terminal, "write binary data even to a terminal");
  app.add_flag("--resume", settings->resume, "continue an --output that a stopped run began");
  app.add_option("--context-cache", settings->context_cache,
                 "folder to make for generate --context-cache: keys and values of the texts, by their ids")
      ->type_name("DIR");
  AddEmbeddingOptions(app, "Embedding", embedding);
  AddMiningOptions(app, &settings->mining);
  const std::string computing = "Computing";
  AddPrecisionOption(app, &embedding->mixed_precision);
  AddDeviceOptions(app, computing, &embedding->device, &embedding->attn_backend, &embedding->threads,
                   &embedding->kernels);
  AddRankOptions(app, computing, &embedding->nproc, &embedding->dist_timeout_s);
}

}  // namespace trainwright

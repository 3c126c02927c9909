#include "tools/evaluate_options.h"

#include <CLI/App.hpp>

#include "tools/compute_options.h"
#include "tools/embed_options.h"
#include "tools/template_names.h"
#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& EvaluateInfo() {
  static const ToolInfo info = {
      .name = "evaluate",
      .summary = "measure how well a model predicts, finds or answers",
      .text = ParseToolText(kEvaluateText),
      .see_also = {"train(1)", "generate(1)", "embed(1)", "pretokenize(1)", "pack(1)",
                   "trainwright-vectors(5)", "trainwright-glossary(7)"},
      .variables = {{"top-k", "evaluate-top-k"},
                    {"samples", "evaluate-samples"},
                    {"average", "evaluate-average"}},
      .suggestions = {{"template", TemplateNames()}},
      .outputs = {{"run-out", {}}, {"cosines-out", {}}, {"logits", {}}},
  };
  return info;
}

namespace {

void AddRetrievalOptions(CLI::App& app, EvaluateSettings* options) {
  const std::string group = "Retrieval and pairs";
  RetrievalSettings* const retrieval = &options->retrieval;
  app.add_option("--corpus", retrieval->corpus,
                 "retrieval: the documents, JSON lines with _id, text and perhaps title")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--queries", retrieval->queries, "retrieval: the queries, JSON lines with _id and text")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--qrels", retrieval->qrels,
         "retrieval: relevance judgements, which documents answer which queries, in the format of BEIR "
         "(tab-separated) or TREC")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--query-vectors", retrieval->query_vectors,
                 "vectors of the queries, as embed(1) writes them, in place of --checkpoint; of sts, of the "
                 "first texts")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--corpus-vectors", retrieval->corpus_vectors,
                 "vectors of the documents, likewise; of sts, of the second texts")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--run", retrieval->run,
                 "retrieval: a TREC run to score, in place of --checkpoint and vectors")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--run-out", retrieval->run_out, "retrieval: also write the ranking as a TREC run")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--baseline", retrieval->baseline,
                 "retrieval: also measure bm25 on --corpus and --queries, in the same table")
      ->check(CLI::IsMember({"bm25"}))
      ->group(group);
  app.add_option("--query-instruction", retrieval->query_instruction,
                 "instruction of the queries; of sts, of all texts (default: none)")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--passage-instruction", retrieval->passage_instruction,
                 "instruction of the documents (default: none)")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("-k,--top-k", retrieval->top_k, "documents that are ranked for each query")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}))
      ->group(group);
  app.add_option("--metric-at", options->metric_at,
                 "cutoffs k of nDCG@k, recall@k and MRR@k, rising, between commas; at most --top-k, unless "
                 "--run is given")
      ->type_name("LIST")
      ->group(group);
  app.add_option("--gain", options->gain,
                 "what a document of grade g adds to nDCG: g (linear, as trec_eval) or 2^g - 1 (exp)")
      ->check(CLI::IsMember({"linear", "exp"}))
      ->group(group);
  app.add_option("--average", options->average,
                 "queries that measures are averaged over; those that the run and the judgements have in "
                 "common (run, as trec_eval), or all that are judged (all, as trec_eval -c)")
      ->check(CLI::IsMember({"run", "all"}))
      ->group(group);
  app.add_option("--bootstrap", retrieval->bootstrap_draws,
                 "resamples of the queries for the 95 % intervals; 0: no intervals")
      ->check(CLI::Range(0, 1000000))
      ->group(group);
  app.add_option("--bootstrap-seed", retrieval->seed, "seed of --bootstrap")->group(group);
  app.add_option("--min-ndcg", options->min_ndcg, "exit with status 1 when nDCG@10 is below this")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  app.add_option("--cosines-out", options->cosines_out,
                 "sts: also write the cosine and the score of each pair, a JSON line a pair")
      ->type_name("FILE")
      ->group(group);
  AddEmbeddingOptions(app, group, &retrieval->embedding);
}

}  // namespace

void DefineEvaluateOptions(CLI::App& app, EvaluateSettings* options) {
  AddCheckpointOption(app, &options->checkpoint)->required(false);
  AddAdapterOption(app, &options->adapter, &options->allow_other_base);
  app.add_option("--data", options->data,
                 "shards (folder or .tws file), or text to cut with the checkpoint's tokenizer (plain, gzip "
                 "or zstd), or of sts JSON lines with a, b and score; - is standard input")
      ->type_name("FILE");
  app.add_option("--metric", options->metric,
                 "what to measure: perplexity of --data under --checkpoint; retrieval from a --corpus; sts, "
                 "the similarity of pairs of texts in --data; or the answers in --samples. See METRICS")
      ->check(CLI::IsMember({"perplexity", "retrieval", "sts", "answers"}));
  app.add_option("--samples", options->samples,
                 "answers: what generate(1) wrote, a JSON line a sample; - is standard input")
      ->type_name("FILE");
  app.add_option("--gold", options->gold,
                 "answers: the right answers, JSON lines with prompt (or question) and gold (or answer), a "
                 "number or a text that holds one as --answer-format auto finds it")
      ->type_name("FILE");
  app.add_option("--answer-format", options->answer_format,
                 "answers: where a sample's number is. tag: between <answer> and </answer>, or the first of "
                 "the text; gsm8k: after ####; auto: by what is there")
      ->check(CLI::IsMember({"tag", "gsm8k", "auto"}));
  app.add_option("--min-accuracy", options->min_accuracy,
                 "answers: exit with status 1 when the accuracy is below this share")
      ->check(CLI::Range(0.0, 1.0));
  AddRetrievalOptions(app, options);
  app.add_option("--format", options->format,
                 "what --data is; auto: shards for folders and shard files, jsonl for .jsonl, .ndjson and "
                 ".json, parquet for .parquet (as pretokenize(1) reads it), else lines")
      ->check(CLI::IsMember({"auto", "shards", "lines", "jsonl", "paragraphs", "nul", "file", "parquet"}));
  app.add_option("--key", options->keys,
                 "where a JSON line or parquet row keeps its text; may be given again (default: text)")
      ->type_name("PATH");
  CLI::Option* bos = app.add_flag("--bos", options->bos,
                                  "begin each document of raw text with the tokenizer's BOS (default: as in "
                                  "the checkpoint's training data)");
  app.add_flag("--no-bos", options->no_bos, "begin documents of raw text with nothing")->excludes(bos);
  CLI::Option* eos =
      app.add_flag("--eos", options->eos,
                   "end each document of raw text with the tokenizer's EOS (default: as in the "
                   "checkpoint's training data)");
  app.add_flag("--no-eos", options->no_eos, "end documents of raw text with nothing")->excludes(eos);
  app.add_flag("--allow-other-tokenizer", options->allow_other_tokenizer,
               "evaluate shards of another tokenizer than the checkpoint's");
  app.add_option("--loss-on", options->loss_on,
                 "of conversations in shards (pretokenize --records sft), what is measured: assistant for "
                 "the answers and their end-of-turn tokens, all for every token")
      ->check(CLI::IsMember({"assistant", "all"}));
  app.add_option("--eval-split", options->eval_split,
                 "of shards, only what train --eval-split holds out: a share or a number of the documents")
      ->type_name("SHARE|COUNT");
  app.add_option("--eval-split-seed", options->eval_split_seed, "as train's, with --eval-split");
  app.add_option("--seq", options->seq, "longest span in tokens; 0: the model's context")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch", options->batch,
                 "sequences computed at once (default: 8, or as many as have 32,768 tokens)")
      ->check(CLI::PositiveNumber);
  AddPrecisionOption(app, &options->mixed_precision);
  AddQuantOption(app, &options->quant);
  AddDeviceOptions(app, "", &options->device, &options->attn_backend, &options->threads, &options->kernels);
  AddRankOptions(app, "", &options->nproc, &options->dist_timeout_s);
  app.add_option("--logits", options->logits,
                 "also write tokens, span_starts and fp32 logits of the first batch as safetensors, for "
                 "comparison with other implementations; of data whose tokens are predicted")
      ->type_name("FILE");
}

}  // namespace trainwright

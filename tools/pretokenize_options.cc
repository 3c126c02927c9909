#include "tools/pretokenize_options.h"

#include <CLI/App.hpp>

#include "lib/cli/text_folding.h"
#include "tools/template_names.h"
#include "tools/tool_texts.h"

namespace trainwright {

const ToolInfo& PretokenizeInfo() {
  static const ToolInfo info = {
      .name = "pretokenize",
      .summary = "turn text into a stream of token ids",
      .text = ParseToolText(kPretokenizeText),
      .see_also = {"pack(1)", "train(1)", "trainwright-token-stream(5)", "trainwright-glossary(7)"},
      .values_of_others = {{"format", {"shards"}}},
      .suggestions = {{"tokenizer", {"bytes"}}, {"template", TemplateNames()}},
      .outputs = {{"output", {}}, {"holdout-output", {}}},
  };
  return info;
}

namespace {

void DefineInputOptions(CLI::App& app, PretokenizeOptions* options) {
  app.add_option(
         "FILE", options->inputs,
         "Inputs, read in this order: files, folders and patterns in quotes; see FILES, FOLDERS AND "
         "PATTERNS. - or none is standard input. With --decode they are token streams, or folders of them.")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output,
                 "Where the tokens go: a file, a folder (DIR/) with a stream for each input, or - for "
                 "standard output. See OUTPUT FOLDERS.")
      ->type_name("FILE");
  app.add_option(
         "--to", options->to,
         "Form of the output. tokens is the stream for pack; jsonl is {\"doc\":0,\"ids\":[...]} for each "
         "document, numbered from 0 in each output, of conversations with \"loss_spans\":[[begin,end],...]; "
         "of contrastive records {\"doc\":0,\"query\":T,\"pos\":[T,...],\"neg\":[T,...]} with T "
         "{\"instruction_tokens\":0,\"ids\":[...]}. With --decode, jsonl is {\"doc\":0,\"text\":\"...\"}, of "
         "conversations with \"segments\"; of contrastive records, texts are [what comes before it, text].")
      ->type_name("FORM")
      ->check(CLI::IsMember({"tokens", "jsonl"}));
  app.add_flag("--decode", options->decode,
               "Read token streams and write their text. Each document has a newline after it; the "
               "tokenizer is the one that the stream carries, whatever --tokenizer says.");
  app.add_flag("-f,--force", options->force, "Write binary data even to a terminal.");
  app.add_option("--threads", options->threads,
                 "Threads that tokenize, 0 for one a CPU. The bytes written do not depend on it.")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
}

void DefineTokenizingOptions(CLI::App& app, PretokenizeOptions* options) {
  const std::string group = "Tokenizing";
  app.add_option(
         "--tokenizer", options->tokenizer,
         "SentencePiece .model file, tokenizer.json file, .tiktoken file, folder that holds one, or bytes. "
         "See TOKENIZERS.")
      ->type_name("FILE")
      ->each([options](const std::string&) { options->names_tokenizer = true; })
      ->group(group);
  app.add_flag("--bos", options->bos, "Put the tokenizer's BOS before each document.")->group(group);
  CLI::Option* eos =
      app.add_flag("--eos", options->eos,
                   "Put the tokenizer's EOS after each document. Without this option it is added if "
                   "the tokenizer has one.")
          ->group(group);
  app.add_flag("--no-eos", options->no_eos, "Put nothing after documents.")->excludes(eos)->group(group);
  app.add_option("--verify", options->verify,
                 "Encode every N-th document of each input, beginning with the first, another way, too, and "
                 "end the run with exit status 1 when an id differs; 0 for none. See VERIFICATION.")
      ->type_name("N")
      ->group(group);
}

void DefineReadingOptions(CLI::App& app, PretokenizeOptions* options) {
  const std::string group = "Reading documents";
  app.add_option("--files-from", options->files_from,
                 "File with the names of more inputs, one a line or between zero bytes (find -print0); - is "
                 "standard input.")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--slice", options->slice,
                 "Read only part K of N of the inputs, counted from 1. See SLICES.")
      ->type_name("K/N")
      ->group(group);
  app.add_option("--lines", options->lines,
                 "Read only these lines of the one input, or rows of a parquet file, counted from 1: 7, "
                 "10-20, 500- for the rest, or several with commas between. See LINES BY NUMBER.")
      ->type_name("LIST")
      ->group(group);
  app.add_option("--format", options->format, "What a document is. See INPUT FORMATS.")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "lines", "jsonl", "paragraphs", "nul", "file", "parquet"}))
      ->group(group);
  app.add_option(
         "--key", options->keys,
         "Where a JSON line or parquet row keeps its text (without this option: text; of a JSON line that "
         "has no text, content, article or document). A key, or a "
         "path through objects like message.content. Given several times, the values are joined with "
         "newlines in that order.")
      ->type_name("KEY")
      ->group(group);
  app.add_option("--max-chars", options->max_chars,
                 "Leave out documents of more characters without tokenizing them, 0 for no limit (with "
                 "--max-record-tokens N: 10 N). They are counted as over_max_chars.")
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--max-record-tokens", options->max_record_tokens,
         "Leave out documents of more tokens, 0 for no limit. They are counted as over_max_record_tokens.")
      ->type_name("N")
      ->group(group);
  app.add_option("--max-document", options->max_document,
                 "Longest line or document that is read, at most 2GiB. In bytes, or as 64MiB or 1GB.")
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--limit", options->limit, "Stop after this many documents, 0 for no limit.")
      ->type_name("N")
      ->group(group);
  app.add_option("--on-error", options->on_error,
                 "What to do with a bad document. fail ends the run; skip leaves the document out and counts "
                 "it. See INVALID INPUT.")
      ->type_name("ACTION")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->group(group);
  app.add_option("--invalid-utf8", options->invalid_utf8,
                 "What to do with bytes that are not UTF-8. error makes theirs a bad document; replace reads "
                 "each as U+FFFD.")
      ->type_name("ACTION")
      ->check(CLI::IsMember({"error", "replace"}))
      ->group(group);
}

void DefineConversationOptions(CLI::App& app, PretokenizeOptions* options) {
  const std::string group = "Conversations";
  app.add_option("--records", options->records,
                 "What a document is for. lm is text, all of which is predicted; sft is a conversation in "
                 "JSON, of which the answers are; contrastive is a query in JSON with texts that its vector "
                 "should be close to and far from. See CONVERSATIONS and CONTRASTIVE RECORDS.")
      ->type_name("KIND")
      ->check(CLI::IsMember({"lm", "sft", "contrastive"}))
      ->group(group);
  app.add_option(
         "--template", options->chat_template,
         "How a conversation or a contrastive text is written: " + Join(TemplateNames(), ", ") +
             ", a file, or a model's folder with a template in Jinja. Without it: that of the tokenizer's "
             "folder, or plain, for sft; grit for contrastive. See CHAT TEMPLATES.")
      ->type_name("NAME|FILE")
      ->group(group);
  app.add_option("--prompt-key", options->prompt_key,
                 "Where a JSON line keeps the prompt, as --key takes it: a string or a list of turns. With "
                 "--response-key; without both, the usual shapes are recognised.")
      ->type_name("KEY")
      ->group(group);
  app.add_option("--response-key", options->response_key, "Where a JSON line keeps the response.")
      ->type_name("KEY")
      ->group(group);
  app.add_option("--loss-turns", options->loss_turns,
                 "Which answers of a conversation are predicted: all, or the last alone.")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"all", "last"}))
      ->group(group);
}

void DefineContrastiveOptions(CLI::App& app, PretokenizeOptions* options) {
  const std::string group = "Contrastive records";
  app.add_option(
         "--query-max-tokens", options->query_max_tokens,
         "Cut queries to this many tokens, instruction included, 0 for no limit. See CONTRASTIVE RECORDS.")
      ->type_name("N")
      ->group(group);
  app.add_option("--passage-max-tokens", options->passage_max_tokens, "Likewise for positives and negatives.")
      ->type_name("N")
      ->group(group);
}

void DefineHoldoutOptions(CLI::App& app, PretokenizeOptions* options) {
  const std::string group = "Holding out documents";
  app.add_option("--holdout", options->holdout,
                 "Share of the documents to put into a second stream, 0 to below 1: 0.001 or 1/1000. See "
                 "HELD OUT DOCUMENTS.")
      ->type_name("F")
      ->group(group);
  app.add_option(
         "--holdout-output", options->holdout_output,
         "File of the held out documents. Without it: the name of --output with .holdout before its ending.")
      ->type_name("FILE")
      ->group(group);
}

}  // namespace

void DefinePretokenizeOptions(CLI::App& app, PretokenizeOptions* options) {
  DefineInputOptions(app, options);
  DefineTokenizingOptions(app, options);
  DefineReadingOptions(app, options);
  DefineConversationOptions(app, options);
  DefineContrastiveOptions(app, options);
  DefineHoldoutOptions(app, options);
}

}  // namespace trainwright

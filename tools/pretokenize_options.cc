#include "tools/pretokenize_options.h"

#include <CLI/CLI.hpp>

namespace trainwright {

const ToolInfo& PretokenizeInfo() {
  static const ToolInfo
      info =
          {
              .name = "pretokenize",
              .summary = "turn text into a stream of token ids",
              .description =
                  R"(Reads documents from text, JSON lines, NUL-separated or whole files, plain, gzip or zstd, and from parquet files, from standard input or from the FILEs in their order, and writes the token ids of each document as a token stream (trainwright-token-stream(5)), which pack(1) reads. The stream carries the tokenizer itself, so no later tool asks for it.

The ids of a document are those that the tokenizer's own library gives for the whole document: newlines and spaces inside it are text, and nothing is added but what --bos and --eos ask for.

The bytes written depend on the documents and on the options that shape them, not on --threads, nor on whether the input is a pipe, a file or compressed. An output FILE appears when all has gone well, or not at all (see OUTPUT FOLDERS for many inputs); on standard output a stream that was cut off lacks its trailer, and pack(1) refuses it.

A document without text, or in which the tokenizer finds no token, is left out and counted. When done, one line on standard error gives the counts; --summary FILE holds them as JSON.

Memory does not grow with the input: it holds some 64 MiB of documents under way, or the longest document if that is longer. What it remembers of the tokenizer's work takes up to 64 MiB a thread, and a word without a place to cut it, such as megabytes of one letter, 40 bytes a byte.)",
              .sections =
                  {
                      {"INPUT FORMATS",
                       R"(lines: a line is a document. It ends before its newline; a carriage return in front of that belongs to the document. The last line needs no newline. An empty line is an empty document.

jsonl: a line is a JSON object, and the string under --key is the document, its escapes resolved. A byte order mark at the start of a file is passed over; a blank line is an empty document.

nul: a document ends before a zero byte, so that it may hold newlines. The last one needs no zero byte.

file: a FILE is a document.

parquet: a row is a document: the text of the column --key, which may lie in structs (message.content) but not in lists. Strings, large strings, dictionaries of strings and binary columns are text; several keys give their columns joined with newlines. Only these columns are read, a page at a time. parquet is read from files alone, with --records lm alone, and by an optional part of the installation, libtrainwright_parquet.so in libexec/trainwright, which is built where scripts/fetch_arrow.sh was run before; TRAINWRIGHT_PARQUET_PLUGIN names it elsewhere. Without it a parquet file is refused with exit status 2.

auto, the default, goes by the name of each FILE: parquet for .parquet, jsonl for .jsonl, .ndjson and .json (with .gz or .zst behind), otherwise lines. When --key is given, auto means jsonl for every input but .parquet. Standard input holds lines unless --key or --format says otherwise. Compression is recognised by content.)"},
                      {"FILES, FOLDERS AND PATTERNS",
                       R"(A folder stands for the files in it and below whose names tell their format: .txt, .text, .md, .jsonl, .ndjson and .json, with .gz or .zst behind or not, and .parquet; with --format, for all its files. A pattern, in quotes so that the shell leaves it alone, has * for any text and ? for any character of one name, [...] for one of several, and ** for any number of folders: 'data/**/*.jsonl.zst'. The files of a folder or pattern are read in byte order of their paths. Names that begin with a dot are passed over; symbolic links are followed, but not round in a circle. What gives no file at all is an error, and so is a file that cannot be read, before anything is written. --files-from reads names from a list, without patterns. A file that is named twice is read twice, with a warning.)"},
                      {"SLICES",
                       R"(--slice K/N reads one of N parts of the inputs, for arrays of jobs: the same command on N machines with K from 1 to N, each with its own --output. The parts are contiguous pieces of the inputs, cut by their stored size, and a document is in the part in which its first byte lies. So the streams of all parts, in order, hold the documents of the whole in order, and pack(1) of them gives the shards of the whole, byte for byte. All parts must see the same files. A compressed file that two parts share is decompressed by both, and once more to measure it. Of a parquet file the parts are rows: as large a share of them as of its size.)"},
                      {"OUTPUT FOLDERS",
                       R"(An --output that ends in / or names a folder gets a token stream for each input, each appearing when it is complete, and at last MANIFEST.json, which names them in order. pack(1) and --decode take the folder and read its streams in that order; the shards are those of one stream of all inputs, byte for byte.

When such a run is ended, however that happens, the same command goes on: it takes over every stream that is finished and makes the others. A stream is taken over when all its bytes are as they were written and it was made from the same input, which is one of the same name, size and time of change, by the same tokenizer, options that shape the content, --verify and version of pretokenize. The formats of all inputs are among these. An input that is new, or has another place in the order, costs the others nothing. The last line counts the streams that were taken over; --summary has them as streams_taken_over. The counts are those of the whole set. What a killed run left is removed, and once the set is whole, the streams of former sets are, too.

Until MANIFEST.json seals the set, nobody reads the folder: pack ends with exit status 3. A folder takes one run at a time; a second one ends with exit status 2. Files of the folder itself are never inputs. An input that changes while it is read ends the run with exit status 3.

Every stream carries the tokenizer, so that thousands of small inputs are better written as one stream. Inputs are regular files; --slice, --limit, --holdout and --to jsonl are for outputs that are one file.)"},
                      {"INVALID INPUT",
                       R"(A line that is not valid JSON or not an object, a line or row that lacks the key or holds something else than a string under it (null, too; of parquet, a missing column or one of another type makes every row a bad document), a document that is not valid UTF-8, and a document longer than --max-document end the run with exit status 3, a message that names file and line or row, and no output file. With --on-error skip they are left out and counted, each reason by itself.

With --invalid-utf8 replace each byte that is not part of a valid character is read as U+FFFD, as SentencePiece does. The tokenizer bytes takes any bytes from lines, nul, file and parquet input; JSON is UTF-8 by definition.

Damaged gzip, zstd or parquet data is always an error.)"},
                      {"TOKENIZERS",
                       R"(A SentencePiece model (FILE.model, or a folder that holds tokenizer.model) gives the ids of the SentencePiece library. BPE models that leave the text as it is, as of Llama 2 and Mistral, are encoded by this suite itself, tens of times as fast; unigram models, models that normalise text (nmt_nfkc, removed extra spaces), and the few whose pieces allow no shortcut, by the library. -v says which, and why. The text of control pieces, as <s> or [INST] in many models, is ordinary text when it occurs in a document; user-defined pieces are recognised there, as in the library.

A tokenizer.json file of Hugging Face with byte-level BPE, as of GPT-2, GPT-NeoX, Llama 3, Qwen2 and SmolLM2, is encoded by this suite itself, with the ids that the library gives when it adds no special tokens. Added tokens are recognised in a document, special ones too, as in the library: "<|endoftext|>" in a text becomes that token. What the file asks for and this version does not do exactly (other models, normalizers, pre-tokenizers and regular expressions, byte_fallback, dropout ...) is refused by name. A tokenizer_config.json beside it says which tokens --bos and --eos mean; without, they are those of the post-processor, or known by name. In a folder that has both, tokenizer.model comes first.

A .tiktoken file gives the ids of encode_ordinary of the Python package tiktoken: special tokens are text when they occur in a document, and --bos and --eos put <|endoftext|>. The file does not say how text is cut, so it must be one that is known: r50k_base (GPT-2), p50k_base or cl100k_base, recognised by its content. A folder may hold it as tokenizer.tiktoken.

bytes is built in: a byte is its own id, 256 begins and 257 ends a document, and nothing is lost, not even invalid UTF-8.)"},
                      {"VERIFICATION",
                       R"(With --verify N every N-th document is encoded a second time. Where an id differs, the run ends with exit status 1 and a message that names the document, the first token that differs and both ids, and no output is kept. --summary counts documents_verified, and verified_with says what they were compared with.

SentencePiece models are compared with the SentencePiece library, which encodes the whole document and takes some 100 bytes of memory for each of its bytes. A tokenizer.json or .tiktoken file has no library of its own here: it is compared with a second, slow encoder, which matches the regular expression as it is written, tries added tokens one by one and merges pair by pair without remembering anything; reading the file, classes of characters and normalisation are those of the fast encoder. The tokenizer bytes has nothing to be compared with.)"},
                      {"CONVERSATIONS",
                       R"(With --records sft every JSON line is a conversation, and the stream says of each token whether training predicts it (the answers, and the mark that ends each) or only reads it (everything else). pack(1) keeps this, and train(1) and evaluate(1) heed it.

Recognised are, in this order: {"messages"|"conversations": [{"role"|"from", "content"|"value"}, ...]}; {"instruction", "input"|"context" (may be absent), "output"|"response"}; {"input": [turns], "output"}; {"prompt", "response"|"completion"|"text"}, each a string or a list of turns; {"question", "answer"}; {"text": [user, assistant, user, ...]}. Other members are passed over. --prompt-key and --response-key name any other two.

Roles are system; user or human; assistant, gpt, model or bot. A conversation is one system turn or none, then user and assistant in turn, and ends with the assistant. What breaks this (bad_turns), a response of white space (empty_response), a missing key and a value of the wrong type are bad documents: see INVALID INPUT.

Every turn and every fixed text of the template is cut into tokens by itself, so no token stands for parts of two of them. A turn is text whatever it says: "</s>" or "<|im_end|>" in it never become special tokens. The bytes of text of a conversation are those of its turns.

--bos puts the tokenizer's begin mark before conversations that do not begin with it; --eos has no meaning, since the template has {eos}. Held out conversations are chosen by what precedes their first answer, so that several answers to one question stay together.)"},
                      {"CONTRASTIVE RECORDS",
                       R"(With --records contrastive every JSON line is a query with the texts that belong to it: {"query": TEXT, "pos": [TEXT, ...], "neg": [TEXT, ...]}, where a TEXT is a string or [instruction, text]; the instruction may be "". There is one positive at least; "neg" may be empty or absent. Other members are passed over.

Each text is written by the template and cut into tokens by itself, and the stream says how many of its first tokens are its instruction, with what the template puts around it: training reads them and leaves them out when it pools the text into a vector. All positives and negatives are kept, so that which of them a step uses is decided when it is loaded. pack(1) never cuts a record. Records of several files are joined in their order; to keep the files apart, as batches of one task each need, make a stream of each.

Instructions lose tabs, newlines, spaces and colons at both ends. With limits of tokens, a record is left out when an instruction has more than 10 characters a token of its text's limit (counted as over_max_chars, without tokenizing), or when it leaves its text no token (over_max_record_tokens); a text that is too long loses its end (texts_cut), and no more than 10 characters a token of the larger of both limits are looked at. A text that is empty (empty_text), a record without positives or of another shape (bad_record), a missing key and a value of the wrong type are bad documents: see INVALID INPUT.

Held out records are chosen by their query.)"},
                      {"CHAT TEMPLATES",
                       R"(A template says how a conversation is written. Built in are

plain: system, user and assistant text, the first two followed by a newline, the answer by the tokenizer's end mark

qa-space: question, a space, answer, end mark; no system turn

chatml: <|im_start|>role, newline, text, <|im_end|>, newline (Qwen, SmolLM2)

llama2, llama3, zephyr, alpaca: as these models were trained

grit: that of GRIT models, for conversations and for contrastive texts: <|user|>, instruction, <|embed|>, text

A template FILE has one line a part of the conversation; # begins a comment line. This is chatml:

  system "<|im_start|>system\n" {content} "<|im_end|>\n"
  user "<|im_start|>user\n" {content} "<|im_end|>\n"
  assistant "<|im_start|>assistant\n" [ {content} "<|im_end|>" ] "\n"

The items of a line are texts, as JSON strings; {content}, what the turn says; { content}, the same with a space before it, cut into tokens together; {bos} and {eos}, ids of the tokenizer. Between [ and ] is what training predicts; what precedes [ is how the prompt ends when a model shall answer. user and assistant are required. The other parts are begin (before everything), system, no-system (in its place when there is none), no-system-with-input, user-after-system (in place of user, behind a system turn), input (behind the user's text when the record has an input; without it: "\n\nContext: " {content}), and between (before every user turn but the first). "trim user assistant" takes white space off both ends of those turns. Of contrastive records, instruction is what stands before a text that has one, no-instruction before a text without, and text is the text, with what is pooled between [ and ] (without this line: [ {content} ]); begin comes before each.

Texts are tokenized once, at the start. Special tokens of the tokenizer that a text spells become their ids; a warning names texts like <|im_end|> that are none of its special tokens. The mark that SentencePiece puts at the beginning of a text is put at the beginning of the conversation and behind {bos}, nowhere else.)"},
                      {"HELD OUT DOCUMENTS",
                       R"(--holdout F sends about that share of the documents to a second stream for validation. Whether a document is held out depends on its text alone: reordering the input, adding to it or cutting it up moves no document between training and validation, and equal documents stay together, so that none is in both.)"},
                      {"FILES",
                       R"(DIR/stream-NUMBER-KEY.twt
  the token stream of an input, see trainwright-token-stream(5)

DIR/MANIFEST.json
  the streams in order, with their hashes, inputs and counts: the seal of the set

DIR/.lock, DIR/.pretokenize-journal, DIR/.stream-NUMBER-KEY.twt.tmp-PID
  the writer's lock, its list of streams not sealed yet, and the stream it is writing)"}},
              .examples =
                  {{"for k in 1 2 3; do pretokenize --slice $k/3 tinyshakespeare.txt -o part-$k.tok; done; "
                    "pack part-?.tok -o "
                    "parts/",
                    "Three parts, which could be three machines, and their documents in order."},
                   {"pretokenize --tokenizer mistral-v1.model tinyshakespeare.txt -o shakespeare.tok",
                    "A token stream of a text file, every line a document."},
                   {"pretokenize --tokenizer mistral-v1.model --key question --key answer --eos "
                    "gsm8k-train.jsonl | "
                    "pack "
                    "--chunk 2048 -o shards/",
                    "Question and answer of each JSON line as one document with an end mark, packed into "
                    "shards."},
                   {"pretokenize --format lines tinyshakespeare.txt gsm8k-train.jsonl -o streams/ && pack "
                    "streams/ -o "
                    "packed-streams/",
                    "A folder with a stream for each input. When the first command is ended, it goes on "
                    "where it was."},
                   {"pretokenize --holdout 0.1 --holdout-output valid.tok -o train.tok tinyshakespeare.txt",
                    "A tenth of the lines, chosen by their text, for validation."},
                   {"pretokenize --tokenizer mistral-v1.model --format file --to jsonl tinyshakespeare.txt | "
                    "head -c "
                    "60",
                    "A look at the ids of a whole file as one document."},
                   {"pretokenize --records sft --template qa-space --tokenizer mistral-v1.model "
                    "gsm8k-train.jsonl -o sft.tok && "
                    "pretokenize --decode --to jsonl --limit 1 sft.tok",
                    "Questions and answers of which training predicts the answers, and the first as it will "
                    "see it."},
                   {R"(echo '{"query": ["Who speaks here?", "To be, or not to be"], "pos": ["Hamlet"], "neg": ["Macbeth"]}' | )"
                    "pretokenize --records contrastive --tokenizer mistral-v1.model - | pack --chunk 512 | "
                    "pack --info",
                    "Queries with their positives and negatives, each record whole in a chunk."},
                   {"head -n 20 tinyshakespeare.txt | pretokenize --tokenizer mistral-v1.model | pretokenize "
                    "--decode",
                    "From text to ids and back."}},
              .see_also = {"pack(1)", "train(1)", "trainwright-token-stream(5)"},
          };
  return info;
}

void DefinePretokenizeOptions(CLI::App& app, PretokenizeOptions* options) {
  app.add_option("FILE", options->inputs,
                 "Inputs, read in this order: files, folders and patterns in quotes; see FILES, FOLDERS AND "
                 "PATTERNS. - or "
                 "none is standard input. With --decode they are token streams, or folders of them.")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output,
                 "Where the tokens go: a file, a folder (DIR/) with a stream for each input, or - for "
                 "standard output. See "
                 "OUTPUT FOLDERS.")
      ->type_name("FILE");
  app.add_option(
         "--to", options->to,
         "Form of the output. tokens is the stream for pack; jsonl is {\"doc\":0,\"ids\":[...]} for each "
         "document, numbered from 0 in each output, of conversations with \"loss_spans\":[[begin,end],...]; "
         "of contrastive "
         "records {\"doc\":0,\"query\":T,\"pos\":[T,...],\"neg\":[T,...]} with T "
         "{\"instruction_tokens\":0,\"ids\":[...]}. With "
         "--decode, jsonl is {\"doc\":0,\"text\":\"...\"}, of conversations with \"segments\"; of "
         "contrastive "
         "records, texts are [what stands before it, text].")
      ->type_name("FORM")
      ->check(CLI::IsMember({"tokens", "jsonl"}));
  app.add_flag(
      "--decode", options->decode,
      "Read token streams and write their text. Each document has a newline behind it; the tokenizer is "
      "the one that the stream carries, whatever --tokenizer says.");
  app.add_flag("-f,--force", options->force, "Write binary data even to a terminal.");
  app.add_option("--threads", options->threads,
                 "Threads that tokenize, 0 for one a CPU. The bytes written do not depend on it.")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));

  const std::string tokenizing = "Tokenizing";
  app.add_option("--tokenizer", options->tokenizer,
                 "SentencePiece .model file, tokenizer.json file of a byte-level BPE tokenizer, .tiktoken "
                 "file, folder that holds one, or "
                 "bytes. See TOKENIZERS.")
      ->type_name("FILE")
      ->group(tokenizing);
  app.add_flag("--bos", options->bos, "Put the tokenizer's begin mark before each document.")
      ->group(tokenizing);
  app.add_flag("--eos", options->eos, "Put the tokenizer's end mark behind each document.")
      ->group(tokenizing);

  app.add_option("--verify", options->verify,
                 "Encode every N-th document of each input, beginning with the first, another way, too, and "
                 "end the run "
                 "with exit status 1 when an id differs; 0 for none. See VERIFICATION.")
      ->type_name("N")
      ->group(tokenizing);

  const std::string reading = "Reading documents";
  app.add_option(
         "--files-from", options->files_from,
         "File with the names of more inputs, one a line or between zero bytes (find -print0); - is standard "
         "input.")
      ->type_name("LIST")
      ->group(reading);
  app.add_option("--slice", options->slice,
                 "Read only part K of N of the inputs, counted from 1. See SLICES.")
      ->type_name("K/N")
      ->group(reading);
  app.add_option("--format", options->format, "What a document is. See INPUT FORMATS.")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "lines", "jsonl", "nul", "file", "parquet"}))
      ->group(reading);
  app.add_option("--key", options->keys,
                 "Where a JSON line or parquet row keeps its text (without this option: text). A key, or a "
                 "path through "
                 "objects like message.content. Given several times, the values are joined with newlines in "
                 "that order.")
      ->type_name("KEY")
      ->group(reading);
  app.add_option("--max-chars", options->max_chars,
                 "Leave out documents of more characters without tokenizing them, 0 for no limit (with "
                 "--max-record-tokens N: 10 N). They are counted as over_max_chars.")
      ->type_name("N")
      ->group(reading);
  app.add_option(
         "--max-record-tokens", options->max_record_tokens,
         "Leave out documents of more tokens, 0 for no limit. They are counted as over_max_record_tokens.")
      ->type_name("N")
      ->group(reading);
  app.add_option("--max-document", options->max_document,
                 "Longest line or document that is read, at most 2GiB. In bytes, or as 64MiB or 1GB.")
      ->type_name("SIZE")
      ->group(reading);
  app.add_option("--limit", options->limit, "Stop after so many documents, 0 for no limit.")
      ->type_name("N")
      ->group(reading);
  app.add_option(
         "--on-error", options->on_error,
         "What to do with a bad document. fail ends the run; skip leaves the document out and counts it. "
         "See INVALID INPUT.")
      ->type_name("ACTION")
      ->check(CLI::IsMember({"fail", "skip"}))
      ->group(reading);
  app.add_option(
         "--invalid-utf8", options->invalid_utf8,
         "What to do with bytes that are not UTF-8. error makes theirs a bad document; replace reads each as "
         "U+FFFD.")
      ->type_name("ACTION")
      ->check(CLI::IsMember({"error", "replace"}))
      ->group(reading);

  const std::string conversations = "Conversations";
  app.add_option(
         "--records", options->records,
         "What a document is for. lm is text, all of which is predicted; sft is a conversation in JSON, of "
         "which the answers are; contrastive is a query in JSON with texts that its vector shall be close to "
         "and far from. See CONVERSATIONS and CONTRASTIVE RECORDS.")
      ->type_name("KIND")
      ->check(CLI::IsMember({"lm", "sft", "contrastive"}))
      ->group(conversations);
  app.add_option(
         "--template", options->chat_template,
         "How a conversation or a contrastive text is written: plain, chatml, llama2, llama3, zephyr, "
         "alpaca, "
         "qa-space, grit, or a file. Without it: plain for sft, grit for contrastive. See CHAT TEMPLATES.")
      ->type_name("NAME|FILE")
      ->group(conversations);
  app.add_option("--prompt-key", options->prompt_key,
                 "Where a JSON line keeps the prompt, as --key takes it: a string or a list of turns. With "
                 "--response-key; without both, the usual shapes are recognised.")
      ->type_name("KEY")
      ->group(conversations);
  app.add_option("--response-key", options->response_key, "Where a JSON line keeps the response.")
      ->type_name("KEY")
      ->group(conversations);
  app.add_option("--loss-turns", options->loss_turns,
                 "Which answers of a conversation are predicted: all, or the last alone.")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"all", "last"}))
      ->group(conversations);

  const std::string contrastive = "Contrastive records";
  app.add_option(
         "--query-max-tokens", options->query_max_tokens,
         "Cut queries to so many tokens, instruction included, 0 for no limit. See CONTRASTIVE RECORDS.")
      ->type_name("N")
      ->group(contrastive);
  app.add_option("--passage-max-tokens", options->passage_max_tokens, "Likewise for positives and negatives.")
      ->type_name("N")
      ->group(contrastive);

  const std::string holding_out = "Holding out documents";
  app.add_option(
         "--holdout", options->holdout,
         "Share of the documents to put into a second stream, 0 to below 1: 0.001 or 1/1000. See HELD OUT "
         "DOCUMENTS.")
      ->type_name("F")
      ->group(holding_out);
  app.add_option(
         "--holdout-output", options->holdout_output,
         "File of the held out documents. Without it: the name of --output with .holdout before its ending.")
      ->type_name("FILE")
      ->group(holding_out);
}

}  // namespace trainwright

/// The whole of `pretokenize`: documents -> token ids in parallel -> a token stream, and one for validation.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/documents/chat_encoder.h"
#include "lib/documents/contrastive_encoder.h"
#include "lib/documents/document_output.h"
#include "lib/documents/document_reader.h"
#include "lib/documents/document_text.h"
#include "lib/io/byte_sink.h"
#include "lib/report/progress.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

struct PretokenizeJobOptions {
  std::vector<DocumentInput> inputs;  ///< none, of a slice without a document, gives an empty stream
  /// Those of the whole of which the inputs are a slice, for the provenance; empty: those of the inputs.
  std::set<InputFormat> formats;
  std::string tokenizer = "bytes";  ///< as LoadTokenizer takes it
  std::vector<std::string> keys = {kTextKey};
  std::vector<std::string> keys_instead = OtherTextKeys();  ///< DocumentTextOptions::instead
  /// kSft: every record is a conversation, written by this template; kContrastive: a query with positives and
  /// negatives, each written by it. `keys` and EOS have no meaning for either.
  RecordKind records = RecordKind::kLm;
  ChatTemplate chat_template;
  ChatRecordOptions chat;
  ContrastiveLimits contrastive_limits;
  bool last_turn_only = false;  ///< of a conversation only the last answer is predicted
  /// Documents of more Unicode characters are left out without being tokenised; 0: no such limit.
  uint64_t max_characters = 0;
  uint64_t max_tokens = 0;  ///< documents of more tokens are left out; 0: no such limit
  bool add_bos = false, add_eos = false;
  bool add_known_eos = false;         ///< of kLm: add_eos, if the tokenizer has EOS
  bool skip_bad_documents = false;    ///< count them instead of stopping at the first
  bool replace_invalid_utf8 = false;  ///< U+FFFD for each bad byte instead of a bad document
  uint64_t max_document_bytes = uint64_t{1} << 30;
  /// Compare every this many documents of a source with the tokenizer's reference; 0: none.
  uint64_t verify_every = 0;
  uint64_t limit = 0;          ///< stop after this many documents, held out ones included; 0: none
  double holdout = 0;          ///< share of the documents for the validation stream, in [0, 1)
  std::string holdout_output;  ///< its file; required with a holdout
  std::vector<std::string>
      also_read;  ///< files besides inputs, tokenizer and template that no output replaces
  std::string output = "-";
  OutputFormat to = OutputFormat::kTokens;
  bool allow_terminal = false;
  int threads = 1;  ///< >= 1; no byte of the outputs depends on it
};

struct PretokenizeReport {
  TokenStreamTotals written, held_out;
  uint64_t empty_documents = 0;
  std::array<uint64_t, kSkipReasonCount> skipped = {};    ///< by SkipReason
  uint64_t replaced_bytes = 0;                            ///< bytes that were read as U+FFFD
  uint64_t over_max_characters = 0, over_max_tokens = 0;  ///< documents left out as too long
  uint64_t tokenizer_calls = 0;                           ///< for the documents' text
  uint64_t documents_verified = 0;
  uint64_t documents_tied = 0;  ///< of these, with other ids than the reference's by ties alone
  std::string verified_with;    ///< what they were compared with; empty: nothing was asked for
  std::optional<LibraryIdentity> verified_library;  ///< where that is one
  RecordKind records = RecordKind::kLm;
  uint64_t loss_tokens =
      0;  ///< of `written`: those that training predicts, of sft records; pools, of contrastive
  uint64_t texts = 0,
           texts_cut = 0;  ///< of contrastive records, held out ones included; those cut to a limit
  uint64_t template_literals = 0, literal_tokenizations = 0;  ///< as ChatEncoder counts them
  uint64_t input_bytes = 0;                                   ///< decompressed
  /// XXH3-64 of the decompressed inputs one after the other; none when the limit ended the run.
  std::optional<uint64_t> input_hash;
  uint32_t vocab_size = 0;
  Sha256Digest tokenizer_sha256{};
  double time_s = 0;
  /// Of a folder: its streams, those that a former run had finished, and their tokens.
  uint64_t streams = 0, streams_taken_over = 0, tokens_taken_over = 0;
};

/// What a job loads once for any number of streams: the tokenizer, the template, and what they are compared
/// with. One stream at a time.
class Pretokenizer {
 public:
  /// \throws Error as RunPretokenize does for options and tokenizer
  explicit Pretokenizer(const PretokenizeJobOptions& options);
  ~Pretokenizer();
  /// Has the template say another time than `options.chat_template.now`. Before the first Run.
  void SetTemplateTime(std::chrono::sys_seconds now);
  /// Tokenizes what `reader` gives into `output`, and into the options' file what is held out.
  /// \param stored_bytes_before what of `progress` lies before this stream
  PretokenizeReport Run(DocumentReader* reader, std::unique_ptr<ByteSink> output, Progress* progress,
                        uint64_t stored_bytes_before = 0);
  /// What each stream begins with: the tokenizer, and the options that shape the content.
  TokenStreamHeader header() const;
  /// Of no document.
  PretokenizeReport EmptyReport() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Tokenizes. A document without text or without tokens is left out and counted. Which documents are held out
/// depends on their text alone, so reordering or cutting up the input moves none, and equal documents stay
/// together. Files appear only when everything has gone well. Memory: some 64 MiB of documents under way, or
/// the longest document if that is longer, and 40 bytes for each of the longest word.
/// \throws Error{kBadInput} naming file and line, for the first bad document in input order; Error{kUsage}
///     for a BOS or EOS that the tokenizer lacks; Error{kNo} where the reference differs; Error{kIo};
///     Error{kInterrupted, kTerminated}
PretokenizeReport RunPretokenize(const PretokenizeJobOptions& options, ProgressMode progress);

/// The counts as in --summary.
nlohmann::ordered_json ToJson(const PretokenizeReport& report);
/// The counts in one line for people.
std::string Describe(const PretokenizeReport& report);

/// Whether a document is held out: a pure function of its text; of a conversation, of what precedes its first
/// answer; of a contrastive record, of its query.
bool IsHeldOut(std::string_view text, double holdout);

/// "train.tokens" -> "train.holdout.tokens".
std::string DefaultHoldoutPath(const std::string& output);

}  // namespace trainwright

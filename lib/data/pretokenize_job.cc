#include "lib/data/pretokenize_job.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <set>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/formats/provenance.h"
#include "lib/io/ordered_workers.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxBytesUnderWay = 64 << 20;

enum class Fate : uint8_t { kTrain, kHoldout, kEmpty, kSkipped, kOverMaxCharacters, kOverMaxTokens };

struct EncodedDocument {
  size_t ids_end = 0, runs_end = 0;
  uint64_t source_bytes = 0, replaced_bytes = 0;
  Fate fate = Fate::kTrain;
  SkipReason reason = SkipReason::kBadJson;  // of Fate::kSkipped
};

struct EncodedBatch {
  std::vector<uint32_t> ids;
  std::vector<LossRun> runs;  // of sft records
  std::vector<EncodedDocument> documents;
  uint64_t tokenizer_calls = 0;
  std::optional<Error> error;  // what stops the run after `documents`
};

/// What the workers do, each with its own readers.
class BatchEncoder {
 public:
  /// \param chat_encoder of sft records, else null
  BatchEncoder(const PretokenizeJobOptions& options, const Tokenizer& tokenizer,
               const ChatEncoder* chat_encoder)
      : options_(options), tokenizer_(tokenizer), chat_encoder_(chat_encoder) {
    const DocumentTextOptions text_options = {.keys = options.keys,
                                              .require_utf8 = tokenizer.identity().kind != "bytes",
                                              .replace_invalid_utf8 = options.replace_invalid_utf8};
    for (int worker = 0; worker < options.threads; ++worker) {
      texts_.push_back(std::make_unique<DocumentText>(text_options));
      chats_.push_back(std::make_unique<ChatRecordReader>(options.chat));
    }
  }

  EncodedBatch Encode(int worker, const RecordBatch& batch) const {
    EncodedBatch out;
    out.documents.reserve(batch.records.size());
    out.ids.reserve(batch.bytes.size());  // address space, not memory: growing by copies would need both
    EncodedChat chat;
    for (size_t i = 0; i < batch.records.size(); ++i) {
      ThrowIfStopped();
      EncodedDocument document;
      const size_t ids_begin = out.ids.size(), runs_begin = out.runs.size();
      const auto problem = chat_encoder_ == nullptr ? EncodeText(worker, batch, i, &document, &out)
                                                    : EncodeChat(worker, batch, i, &document, &chat, &out);
      if (problem && !options_.skip_bad_documents) {
        out.error = ErrorOf(*problem, batch, i);
        break;
      }
      if (problem) {
        document.fate = Fate::kSkipped;
        document.reason = problem->reason;
      }
      const bool too_long = options_.max_tokens > 0 && out.ids.size() - ids_begin > options_.max_tokens;
      if (too_long) document.fate = Fate::kOverMaxTokens;
      if (document.fate != Fate::kTrain && document.fate != Fate::kHoldout) {
        out.ids.resize(ids_begin);
        out.runs.resize(runs_begin);
      }
      document.ids_end = out.ids.size();
      document.runs_end = out.runs.size();
      out.documents.push_back(document);
    }
    return out;
  }

 private:
  using Problem = std::optional<DocumentProblem>;

  bool TooManyCharacters(uint64_t characters) const {
    return options_.max_characters > 0 && characters > options_.max_characters;
  }

  Problem EncodeText(int worker, const RecordBatch& batch, size_t index, EncodedDocument* document,
                     EncodedBatch* out) const {
    DocumentText& reader = *texts_[static_cast<size_t>(worker)];
    std::string_view text;
    if (auto problem = reader.Read(batch, index, &text)) return problem;
    document->source_bytes = text.size();
    document->replaced_bytes = reader.replaced_bytes();
    if (TooManyCharacters(CountCharacters(text))) {
      document->fate = Fate::kOverMaxCharacters;
      return std::nullopt;
    }
    std::vector<uint32_t>& ids = out->ids;
    if (options_.add_bos) ids.push_back(tokenizer_.identity().bos_id);
    const size_t text_begin = ids.size();
    if (!text.empty()) {
      tokenizer_.Encode(text, &ids);
      ++out->tokenizer_calls;
    }
    if (ids.size() == text_begin) {
      document->fate = Fate::kEmpty;
      return std::nullopt;
    }
    if (options_.add_eos) ids.push_back(tokenizer_.identity().eos_id);
    document->fate = IsHeldOut(text, options_.holdout) ? Fate::kHoldout : Fate::kTrain;
    return std::nullopt;
  }

  Problem ReadChat(int worker, const RecordBatch& batch, size_t index, EncodedDocument* document,
                   ChatRecord* record) const {
    if (batch.records[index].too_long) {
      return DocumentProblem{SkipReason::kTooLong, "longer than --max-document", {}, {}};
    }
    ChatRecordReader& reader = *chats_[static_cast<size_t>(worker)];
    const std::string_view line = RawRecord(batch, index);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      document->fate = Fate::kEmpty;
      return std::nullopt;
    }
    auto problem = reader.Read(line, record);
    if (!problem || problem->reason != SkipReason::kInvalidUtf8) return problem;
    if (options_.replace_invalid_utf8) {
      return reader.Read(ReplaceInvalidUtf8(line, &document->replaced_bytes), record);
    }
    problem->byte = FindInvalidUtf8(line);
    return problem;
  }

  Problem EncodeChat(int worker, const RecordBatch& batch, size_t index, EncodedDocument* document,
                     EncodedChat* chat, EncodedBatch* out) const {
    ChatRecord record;
    if (auto problem = ReadChat(worker, batch, index, document, &record)) return problem;
    if (document->fate == Fate::kEmpty) return std::nullopt;
    if (TooManyCharacters(record.CountCharacters())) {
      document->fate = Fate::kOverMaxCharacters;
      return std::nullopt;
    }
    if (auto problem = chat_encoder_->Encode(record, chat)) return problem;
    out->tokenizer_calls += chat->tokenizer_calls;
    out->ids.insert(out->ids.end(), chat->ids.begin(), chat->ids.end());
    out->runs.insert(out->runs.end(), chat->runs.begin(), chat->runs.end());
    for (const LossRun& run : chat->runs) document->source_bytes += run.source_bytes;
    document->fate = IsHeldOut(record.HoldoutKey(), options_.holdout) ? Fate::kHoldout : Fate::kTrain;
    return std::nullopt;
  }

  const PretokenizeJobOptions& options_;
  const Tokenizer& tokenizer_;
  const ChatEncoder* chat_encoder_;
  std::vector<std::unique_ptr<DocumentText>> texts_;
  std::vector<std::unique_ptr<ChatRecordReader>> chats_;
};

/// The options that shape the ids, whatever file or pipe the documents came through.
std::string ProvenanceOf(const PretokenizeJobOptions& options, const std::string& side) {
  std::set<std::string> formats;
  for (const DocumentInput& input : options.inputs) formats.insert(NameOf(input.format));
  nlohmann::json shaping = {{"bos", options.add_bos},
                            {"eos", options.add_eos},
                            {"format", formats},
                            {"invalid_utf8", options.replace_invalid_utf8 ? "replace" : "error"},
                            {"max_document_bytes", options.max_document_bytes},
                            {"on_error", options.skip_bad_documents ? "skip" : "fail"}};
  if (options.records == RecordKind::kSft) {
    shaping["records"] = RecordKindName(options.records);
    shaping["template"] = options.chat_template.text;
    shaping["loss_turns"] = options.last_turn_only ? "last" : "all";
    if (!options.chat.prompt_key.empty()) {
      shaping["prompt_key"] = options.chat.prompt_key;
      shaping["response_key"] = options.chat.response_key;
    }
  } else if (formats.contains(NameOf(InputFormat::kJsonl))) {
    shaping["key"] = options.keys;
  }
  if (options.max_characters > 0) shaping["max_chars"] = options.max_characters;
  if (options.max_tokens > 0) shaping["max_record_tokens"] = options.max_tokens;
  if (options.limit > 0) shaping["limit"] = options.limit;
  if (options.holdout > 0) shaping["holdout"] = {{"fraction", options.holdout}, {"side", side}};
  // The inputs' hashes are known only at their end: --summary has them.
  return MakeProvenance("pretokenize", shaping, {});
}

void RequireId(uint32_t id, const std::string& flag, const PretokenizeJobOptions& options) {
  if (id != kNoId) return;
  throw Error(ErrorCode::kUsage, flag, "the tokenizer " + options.tokenizer + " has no such id", "",
              "run without " + flag);
}

/// Takes encoded batches in input order, writes their documents and counts.
class DocumentCollector {
 public:
  DocumentCollector(const PretokenizeJobOptions& options, const TokenizerIdentity& identity,
                    PretokenizeReport* report)
      : limit_(options.limit), records_(options.records), report_(*report) {
    TokenStreamHeader header{.tokenizer = identity,
                             .record_kind = options.records,
                             .provenance_json = ProvenanceOf(options, "train")};
    train_ = OpenDocumentOutput(options.output, options.to, header, options.allow_terminal);
    if (options.holdout > 0) {
      header.provenance_json = ProvenanceOf(options, "holdout");
      holdout_ = OpenDocumentOutput(options.holdout_output, options.to, header, options.allow_terminal);
    }
  }

  /// \returns false when the limit is reached
  bool Add(const EncodedBatch& batch) {
    size_t begin = 0, runs_begin = 0;
    report_.tokenizer_calls += batch.tokenizer_calls;
    for (const EncodedDocument& document : batch.documents) {
      const auto ids = std::span(batch.ids).subspan(begin, document.ids_end - begin);
      const auto runs = std::span(batch.runs).subspan(runs_begin, document.runs_end - runs_begin);
      begin = document.ids_end;
      runs_begin = document.runs_end;
      switch (document.fate) {
        case Fate::kSkipped:
          ++report_.skipped[static_cast<size_t>(document.reason)];
          continue;
        case Fate::kEmpty:
          ++report_.empty_documents;
          continue;
        case Fate::kOverMaxCharacters:
          ++report_.over_max_characters;
          continue;
        case Fate::kOverMaxTokens:
          ++report_.over_max_tokens;
          continue;
        case Fate::kTrain:
          Write(ids, runs, document.source_bytes, train_.get());
          for (const LossRun& run : runs) report_.loss_tokens += run.loss ? run.tokens : 0;
          break;
        case Fate::kHoldout:
          Write(ids, runs, document.source_bytes, holdout_.get());
          break;
      }
      report_.replaced_bytes += document.replaced_bytes;
      if (++documents_ == limit_) return false;
    }
    if (batch.error) throw *batch.error;
    return true;
  }

  /// The validation file first: whoever reads standard output to its trailer finds it there.
  void Commit() {
    if (holdout_ != nullptr) {
      report_.held_out = holdout_->totals();
      holdout_->Commit();
    }
    report_.written = train_->totals();
    train_->Commit();
  }

 private:
  void Write(std::span<const uint32_t> ids, std::span<const LossRun> runs, uint64_t source_bytes,
             DocumentOutput* output) const {
    if (records_ == RecordKind::kSft) {
      output->WriteRuns(ids, runs);
    } else {
      output->Write(ids, source_bytes);
    }
  }

  const uint64_t limit_;
  const RecordKind records_;
  PretokenizeReport& report_;
  std::unique_ptr<DocumentOutput> train_, holdout_;
  uint64_t documents_ = 0;
};

/// Reads, encodes and collects until the input or the limit ends.
/// \returns whether the input was read to its end
bool Pump(const PretokenizeJobOptions& options, const BatchEncoder& encoder, DocumentReader* reader,
          DocumentCollector* collector, ProgressMode progress_mode) {
  Progress progress(progress_mode, "pretokenize", reader->stored_bytes_total(), "bytes");
  OrderedWorkers<RecordBatch, EncodedBatch> workers(
      options.threads, static_cast<size_t>(options.threads) * 2,
      [&](int worker, const RecordBatch& batch) { return encoder.Encode(worker, batch); });
  std::deque<uint64_t> sizes;
  uint64_t bytes_under_way = 0;
  const auto collect_one = [&] {
    const EncodedBatch batch = workers.Pop();
    bytes_under_way -= sizes.front();
    sizes.pop_front();
    const bool more = collector->Add(batch);
    progress.Update(reader->stored_bytes_read());
    return more;
  };

  std::exception_ptr read_error;
  while (true) {
    RecordBatch batch;
    try {
      if (!reader->Next(&batch)) break;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted || error.code() == ErrorCode::kTerminated) throw;
      // What was read before may hold an earlier error: that one is to be reported, however fast the workers
      // are.
      read_error = std::current_exception();
      break;
    }
    const uint64_t size = batch.bytes.size();
    while (!workers.empty() && (workers.full() || bytes_under_way + size > kMaxBytesUnderWay)) {
      if (!collect_one()) return false;
    }
    bytes_under_way += size;
    sizes.push_back(size);
    workers.Push(std::move(batch));
  }
  while (!workers.empty()) {
    if (!collect_one()) return false;
  }
  if (read_error) std::rethrow_exception(read_error);
  return true;
}

}  // namespace

PretokenizeReport RunPretokenize(const PretokenizeJobOptions& options, ProgressMode progress) {
  const auto start = std::chrono::steady_clock::now();
  TRAINWRIGHT_CHECK(options.threads >= 1);
  TRAINWRIGHT_CHECK(options.holdout >= 0 && options.holdout < 1);
  const auto tokenizer = LoadTokenizer(options.tokenizer);
  const TokenizerIdentity& identity = tokenizer->identity();
  std::optional<ChatEncoder> chat_encoder;
  if (options.records == RecordKind::kSft) {
    for (const DocumentInput& input : options.inputs) {
      if (input.format == InputFormat::kJsonl) continue;
      throw Error(ErrorCode::kUsage, "--records sft",
                  "reads JSON lines, not " + std::string(NameOf(input.format)));
    }
    chat_encoder.emplace(
        options.chat_template, tokenizer.get(),
        ChatEncoderOptions{.add_bos = options.add_bos, .last_turn_only = options.last_turn_only});
    for (const std::string& mark : chat_encoder->unknown_marks()) {
      LogWarning("template " + options.chat_template.name + ": " + mark +
                 " is no special token of the tokenizer and becomes ordinary tokens");
    }
  }
  if (options.add_bos) RequireId(identity.bos_id, "--bos", options);
  if (options.add_eos) RequireId(identity.eos_id, "--eos", options);

  PretokenizeReport report;
  report.vocab_size = identity.vocab_size;
  report.tokenizer_sha256 = identity.sha256;
  report.records = options.records;
  if (chat_encoder) {
    report.template_literals = chat_encoder->literals();
    report.literal_tokenizations = chat_encoder->literal_tokenizations();
  }
  DocumentReader reader(options.inputs, options.max_document_bytes);
  const BatchEncoder encoder(options, *tokenizer, chat_encoder ? &*chat_encoder : nullptr);
  DocumentCollector collector(options, identity, &report);
  if (Pump(options, encoder, &reader, &collector, progress)) report.input_hash = reader.input_hash();
  ThrowIfStopped();
  collector.Commit();
  report.input_bytes = reader.input_bytes();
  report.time_s = SecondsSince(start);
  return report;
}

bool IsHeldOut(std::string_view text, double holdout) {
  // Any constant serves; another one would move documents between training and validation.
  constexpr uint64_t kHoldoutSeed = 0x486F6C644F757431;
  return static_cast<double>(Xxh3(AsBytes(text), kHoldoutSeed) >> 11) * 0x1p-53 < holdout;
}

std::string DefaultHoldoutPath(const std::string& output) {
  const size_t name = output.rfind('/') == std::string::npos ? 0 : output.rfind('/') + 1;
  const size_t dot = output.rfind('.');
  if (dot == std::string::npos || dot <= name) return output + ".holdout";
  return output.substr(0, dot) + ".holdout" + output.substr(dot);
}

nlohmann::ordered_json ToJson(const PretokenizeReport& report) {
  const uint64_t tokens = report.written.tokens + report.held_out.tokens;
  const uint64_t source_bytes = report.written.source_bytes + report.held_out.source_bytes;
  nlohmann::ordered_json skipped = nlohmann::ordered_json::object();
  for (size_t i = 0; i < kSkipReasonCount; ++i) skipped[kSkipReasonNames[i]] = report.skipped[i];
  nlohmann::ordered_json json = {
      {"documents", report.written.documents},
      {"tokens", report.written.tokens},
      {"source_bytes", report.written.source_bytes},
      {"holdout_documents", report.held_out.documents},
      {"holdout_tokens", report.held_out.tokens},
      {"holdout_source_bytes", report.held_out.source_bytes},
      {"empty_documents", report.empty_documents},
      {"skipped_documents", std::accumulate(report.skipped.begin(), report.skipped.end(), uint64_t{0})},
      {"skipped_by_reason", skipped},
      {"over_max_chars", report.over_max_characters},
      {"over_max_record_tokens", report.over_max_tokens},
      {"replaced_bytes", report.replaced_bytes},
      {"tokenizer_calls", report.tokenizer_calls},
      {"input_bytes", report.input_bytes},
      {"input_hash", nullptr},
      {"bytes_per_token", nullptr},
      {"tokens_per_s", static_cast<double>(tokens) / std::max(report.time_s, 1e-9)},
      {"vocab_size", report.vocab_size},
      {"tokenizer_sha256", HexEncode(report.tokenizer_sha256)}};
  if (report.records == RecordKind::kSft) {
    json["records"] = RecordKindName(report.records);
    json["loss_tokens"] = report.loss_tokens;
    json["template_literals"] = report.template_literals;
    json["literal_tokenizations"] = report.literal_tokenizations;
  }
  if (report.input_hash) json["input_hash"] = HashName(*report.input_hash);
  if (tokens > 0) json["bytes_per_token"] = static_cast<double>(source_bytes) / static_cast<double>(tokens);
  return json;
}

std::string Describe(const PretokenizeReport& report) {
  const uint64_t tokens = report.written.tokens + report.held_out.tokens;
  const uint64_t source_bytes = report.written.source_bytes + report.held_out.source_bytes;
  const auto count = [](uint64_t number, const std::string& noun) {
    return FormatCount(static_cast<double>(number)) + " " + noun + (number == 1 ? "" : "s");
  };
  std::string line = count(report.written.documents + report.held_out.documents, "document") + ", " +
                     count(tokens, "token") + " from " + FormatBytes(source_bytes);
  if (tokens > 0) {
    line += ", " + FormatFixed(static_cast<double>(source_bytes) / static_cast<double>(tokens), 2) +
            " bytes a token";
  }
  line += ", in " + FormatDuration(report.time_s) + " (" +
          FormatCount(static_cast<double>(tokens) / std::max(report.time_s, 1e-9)) + " tokens/s)";
  if (report.held_out.documents > 0) line += "; held out " + count(report.held_out.documents, "document");
  if (report.empty_documents > 0) line += "; left out " + count(report.empty_documents, "empty document");
  const uint64_t too_long = report.over_max_characters + report.over_max_tokens;
  if (too_long > 0) line += "; left out " + count(too_long, "document") + " as too long";
  for (size_t i = 0; i < kSkipReasonCount; ++i) {
    if (report.skipped[i] > 0) {
      line += "; skipped " + count(report.skipped[i], "document") + " (" + kSkipReasonNames[i] + ")";
    }
  }
  if (report.replaced_bytes > 0) line += "; replaced " + count(report.replaced_bytes, "bad byte");
  return line;
}

}  // namespace trainwright

#include "lib/documents/pretokenize_job.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/elapsed.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/documents/recorded_template.h"
#include "lib/documents/reference_check.h"
#include "lib/formats/provenance.h"
#include "lib/io/ordered_workers.h"
#include "lib/tok/folder_text_marks.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/tokenizer_folder.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxBytesUnderWay = 64 << 20;

enum class Fate : uint8_t { kTrain, kHoldout, kEmpty, kSkipped, kOverMaxCharacters, kOverMaxTokens };

struct EncodedDocument {
  size_t ids_end = 0, runs_end = 0;
  uint64_t source_bytes = 0, replaced_bytes = 0, texts_cut = 0;
  Fate fate = Fate::kTrain;
  SkipReason reason = SkipReason::kBadJson;  // of Fate::kSkipped
  bool verified = false, tied = false;
  bool is_written() const { return fate == Fate::kTrain || fate == Fate::kHoldout; }
};

struct EncodedBatch {
  std::vector<uint32_t> ids;
  std::vector<LossRun> runs;  // of sft and contrastive records
  std::vector<EncodedDocument> documents;
  uint64_t tokenizer_calls = 0;
  std::optional<Error> error;  // what stops the run after `documents`
};

/// What the workers do, each with its own readers.
class BatchEncoder {
 public:
  /// \param chat_encoder of sft and contrastive records, else null
  BatchEncoder(const PretokenizeJobOptions& options, const Tokenizer& tokenizer,
               const ChatEncoder* chat_encoder)
      : options_(options), tokenizer_(tokenizer), chat_encoder_(chat_encoder) {
    const DocumentTextOptions text_options = {.keys = options.keys,
                                              .instead = options.keys_instead,
                                              .require_utf8 = tokenizer.identity().kind != "bytes",
                                              .replace_invalid_utf8 = options.replace_invalid_utf8};
    for (int worker = 0; worker < options.threads; ++worker) {
      texts_.push_back(std::make_unique<DocumentText>(text_options));
      chats_.push_back(std::make_unique<ChatRecordReader>(options.chat));
    }
    if (options.records == RecordKind::kContrastive) {
      examples_ = std::vector<ContrastiveExampleReader>(static_cast<size_t>(options.threads));
      contrastive_encoder_.emplace(chat_encoder, options.contrastive_limits);
    }
  }

  /// Has what `check` asks for encoded by `reference`, too. Both outlive this.
  void CompareWith(const BatchEncoder* reference, const ReferenceCheck* check) {
    reference_ = reference;
    check_ = check;
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
      Problem problem;
      try {
        problem = EncodeRecord(worker, batch, i, &document, &chat, &out);
      } catch (const Error& error) {  // the tokenizer cannot encode this text
        if (error.code() != ErrorCode::kBadInput) throw;
        out.error = Error(error.code(), batch.source, error.problem(), PlaceOf(batch, i), error.hint());
        break;
      }
      if (problem && !options_.skip_bad_documents) {
        out.error =
            ErrorOf(*problem, batch, i, {.on_error = true, .invalid_utf8 = true, .max_document = true});
        break;
      }
      if (problem) {
        document.fate = Fate::kSkipped;
        document.reason = problem->reason;
      } else if (document.is_written() && check_ != nullptr && check_->Due(batch.first_record + i)) {
        ReferenceCheck::Comparison comparison =
            Verify(worker, batch, i, std::span(out.ids).subspan(ids_begin));
        out.error = std::move(comparison.difference);
        if (out.error) break;
        document.verified = true;
        document.tied = comparison.tied;
      }
      const bool too_long = options_.max_tokens > 0 && out.ids.size() - ids_begin > options_.max_tokens;
      if (too_long) document.fate = Fate::kOverMaxTokens;
      if (!document.is_written()) {
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

  Problem EncodeRecord(int worker, const RecordBatch& batch, size_t index, EncodedDocument* document,
                       EncodedChat* chat, EncodedBatch* out) const {
    if (contrastive_encoder_) return EncodeExample(worker, batch, index, document, out);
    return chat_encoder_ == nullptr ? EncodeText(worker, batch, index, document, out)
                                    : EncodeChat(worker, batch, index, document, chat, out);
  }

  ReferenceCheck::Comparison Verify(int worker, const RecordBatch& batch, size_t index,
                                    std::span<const uint32_t> ids) const {
    EncodedBatch theirs;
    EncodedDocument document;
    EncodedChat chat;
    reference_->EncodeRecord(worker, batch, index, &document, &chat, &theirs);
    return check_->Compare(ids, theirs.ids, batch.source, PlaceOf(batch, index));
  }

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

  /// Reads a JSON line into a record by the worker's reader of such records.
  template <typename Reader, typename Record>
  Problem ReadLine(Reader& reader, const RecordBatch& batch, size_t index, EncodedDocument* document,
                   Record* record) const {
    if (batch.records[index].too_long) {
      return DocumentProblem{SkipReason::kTooLong, "longer than --max-document", {}, {}};
    }
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
    ChatRecordReader& reader = *chats_[static_cast<size_t>(worker)];
    if (auto problem = ReadLine(reader, batch, index, document, &record)) return problem;
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

  Problem EncodeExample(int worker, const RecordBatch& batch, size_t index, EncodedDocument* document,
                        EncodedBatch* out) const {
    ContrastiveExample example;
    EncodedRecord record;
    ContrastiveExampleReader& reader = examples_[static_cast<size_t>(worker)];
    if (auto problem = ReadLine(reader, batch, index, document, &example)) return problem;
    if (document->fate == Fate::kEmpty) return std::nullopt;
    ContrastiveEncoder::Fit fit = ContrastiveEncoder::Fit::kInstructionHasTooManyCharacters;
    if (!TooManyCharacters(example.CountCharacters())) {
      if (auto problem = contrastive_encoder_->Encode(example, &record, &fit)) return problem;
      out->tokenizer_calls += record.tokenizer_calls;
    }
    switch (fit) {
      case ContrastiveEncoder::Fit::kInstructionHasTooManyCharacters:
        document->fate = Fate::kOverMaxCharacters;
        return std::nullopt;
      case ContrastiveEncoder::Fit::kInstructionHasTooManyTokens:
        document->fate = Fate::kOverMaxTokens;
        return std::nullopt;
      case ContrastiveEncoder::Fit::kFits:
        break;
    }
    out->ids.insert(out->ids.end(), record.ids.begin(), record.ids.end());
    out->runs.insert(out->runs.end(), record.runs.begin(), record.runs.end());
    for (const LossRun& run : record.runs) document->source_bytes += run.source_bytes;
    document->texts_cut = record.texts_cut;
    document->fate = IsHeldOut(example.HoldoutKey(), options_.holdout) ? Fate::kHoldout : Fate::kTrain;
    return std::nullopt;
  }

  const PretokenizeJobOptions& options_;
  const Tokenizer& tokenizer_;
  const ChatEncoder* chat_encoder_;
  const BatchEncoder* reference_ = nullptr;
  const ReferenceCheck* check_ = nullptr;
  std::vector<std::unique_ptr<DocumentText>> texts_;
  std::vector<std::unique_ptr<ChatRecordReader>> chats_;
  mutable std::vector<ContrastiveExampleReader> examples_;
  std::optional<ContrastiveEncoder> contrastive_encoder_;
};

/// The options that shape the ids, whatever file or pipe the documents came through.
std::string ProvenanceOf(const PretokenizeJobOptions& options, const std::string& side) {
  std::set<std::string> formats;
  for (const InputFormat format : options.formats) formats.insert(NameOf(format));
  if (formats.empty()) {
    for (const DocumentInput& input : options.inputs) formats.insert(NameOf(input.format));
  }
  nlohmann::json shaping = {{"bos", options.add_bos},
                            {"eos", options.add_eos},
                            {"format", formats},
                            {"invalid_utf8", options.replace_invalid_utf8 ? "replace" : "error"},
                            {"max_document_bytes", options.max_document_bytes},
                            {"on_error", options.skip_bad_documents ? "skip" : "fail"}};
  if (options.records == RecordKind::kContrastive) {
    shaping["records"] = RecordKindName(options.records);
    shaping["template"] = options.chat_template.text;
    const ContrastiveLimits& limits = options.contrastive_limits;
    if (limits.query_tokens > 0) shaping["query_max_tokens"] = limits.query_tokens;
    if (limits.passage_tokens > 0) shaping["passage_max_tokens"] = limits.passage_tokens;
  } else if (options.records == RecordKind::kSft) {
    shaping["records"] = RecordKindName(options.records);
    shaping.update(RecordOfTemplate(options.chat_template));
    shaping["loss_turns"] = options.last_turn_only ? "last" : "all";
    if (!options.chat.prompt_key.empty()) {
      shaping["prompt_key"] = options.chat.prompt_key;
      shaping["response_key"] = options.chat.response_key;
    }
  } else if (formats.contains(NameOf(InputFormat::kJsonl)) ||
             formats.contains(NameOf(InputFormat::kParquet))) {
    shaping["key"] = options.keys;
    // Told where they are not the usual ones, which are none in place of a key that the user names.
    const bool is_usual_key = options.keys == std::vector<std::string>{kTextKey};
    const std::vector<std::string> usual = is_usual_key ? OtherTextKeys() : std::vector<std::string>();
    if (formats.contains(NameOf(InputFormat::kJsonl)) && options.keys_instead != usual)
      shaping["key_instead"] = options.keys_instead;
  }
  if (options.max_characters > 0) shaping["max_chars"] = options.max_characters;
  if (options.max_tokens > 0) shaping["max_record_tokens"] = options.max_tokens;
  if (options.limit > 0) shaping["limit"] = options.limit;
  if (options.holdout > 0) shaping["holdout"] = {{"fraction", options.holdout}, {"side", side}};
  // The inputs' hashes are known only at their end: --summary has them.
  return MakeProvenance("pretokenize", shaping, {});
}

/// What this run did itself.
double TokensPerSecond(const PretokenizeReport& report) {
  const uint64_t tokens = report.written.tokens + report.held_out.tokens - report.tokens_taken_over;
  return static_cast<double>(tokens) / std::max(report.time_s, 1e-9);
}

nlohmann::ordered_json EncodeLibrary(const LibraryIdentity& library) {
  const auto known = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  return {{"name", library.name},
          {"version", known(library.version)},
          {"path", known(library.path)},
          {"sha256", known(library.sha256)}};
}

/// ", version 0.1.97, /usr/lib/libsentencepiece.so.0.0.0"
std::string DescribeLibrary(const LibraryIdentity& library) {
  return ", version " + (library.version.empty() ? "unknown" : library.version) +
         (library.path.empty() ? "" : ", " + library.path);
}

void RequireId(uint32_t id, const std::string& flag, const PretokenizeJobOptions& options) {
  if (id != kNoId) return;
  throw Error(ErrorCode::kUsage, flag, "the tokenizer " + options.tokenizer + " has no such id", "",
              "run without " + flag);
}

/// Says it where documents lack the BOS that the folder's tokenizer puts before texts by itself elsewhere.
void TellOfMissingBos(const PretokenizeJobOptions& options, const Tokenizer& tokenizer) {
  std::error_code ignored;
  if (options.add_bos || options.records != RecordKind::kLm) return;
  if (!std::filesystem::is_directory(options.tokenizer, ignored)) return;
  std::vector<std::string> begin;
  try {
    begin = ReadTextMarksOfTransformers4(options.tokenizer).begin;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    return;  // what it puts is not known
  }
  for (const SpecialToken& special : tokenizer.special_tokens()) {
    if (special.id != tokenizer.identity().bos_id) continue;
    if (std::find(begin.begin(), begin.end(), special.text) == begin.end()) continue;
    return HoldInfo("no --bos is given: documents do not begin with " + special.text +
                    ", as texts do where transformers 4 reads the tokenizer of " + options.tokenizer);
  }
}

std::unique_ptr<ByteSink> OpenOutput(const PretokenizeJobOptions& options, const std::string& path) {
  return OpenSink(path, options.to == OutputFormat::kTokens, options.allow_terminal);
}

/// Takes encoded batches in input order, writes their documents and counts.
class DocumentCollector {
 public:
  DocumentCollector(const PretokenizeJobOptions& options, TokenStreamHeader header,
                    std::unique_ptr<ByteSink> output, PretokenizeReport* report)
      : limit_(options.limit), records_(options.records), report_(*report) {
    train_ = MakeDocumentOutput(std::move(output), options.to, header);
    if (options.holdout > 0) {
      header.provenance_json = ProvenanceOf(options, "holdout");
      holdout_ = MakeDocumentOutput(OpenOutput(options, options.holdout_output), options.to, header);
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
      report_.documents_verified += document.verified ? 1 : 0;
      report_.documents_tied += document.tied ? 1 : 0;
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
      report_.texts_cut += document.texts_cut;
      for (const LossRun& run : runs) report_.texts += run.begins_text ? 1 : 0;
      if (++documents_ == limit_) return false;
    }
    if (batch.error) throw *batch.error;
    ReleaseHeldInfo();  // documents that are read so far are sound
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
    if (records_ == RecordKind::kLm) {
      output->Write(ids, source_bytes);
    } else {
      output->WriteRuns(ids, runs);
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
          DocumentCollector* collector, Progress* progress, uint64_t stored_bytes_before) {
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
    progress->Update(stored_bytes_before + reader->stored_bytes_read());
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

ChatEncoderOptions EncoderOptionsOf(const PretokenizeJobOptions& options) {
  return {.add_bos = options.add_bos, .last_turn_only = options.last_turn_only};
}

}  // namespace

struct Pretokenizer::Impl {
  PretokenizeJobOptions options;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatEncoder> chat_encoder, reference_chat_encoder;
  std::optional<ReferenceCheck> check;
  std::optional<BatchEncoder> encoder, reference_encoder;
};

Pretokenizer::Pretokenizer(const PretokenizeJobOptions& job) : impl_(std::make_unique<Impl>()) {
  impl_->options = job;
  const PretokenizeJobOptions& options = impl_->options;
  TRAINWRIGHT_CHECK(options.threads >= 1);
  TRAINWRIGHT_CHECK(options.holdout >= 0 && options.holdout < 1);
  impl_->tokenizer = LoadTokenizer(options.tokenizer);
  const Tokenizer& tokenizer = *impl_->tokenizer;
  if (options.add_known_eos && options.records == RecordKind::kLm)
    impl_->options.add_eos |= tokenizer.identity().eos_id != kNoId;
  LogDebug("tokenizer " + options.tokenizer + ": " + tokenizer.method());
  TellOfMissingBos(options, tokenizer);
  const ChatEncoderOptions chat_options = EncoderOptionsOf(options);
  std::optional<ChatEncoder>& chat_encoder = impl_->chat_encoder;
  if (options.records != RecordKind::kLm) {
    const std::string flag = std::string("--records ") + RecordKindName(options.records);
    if (options.records == RecordKind::kContrastive && !options.chat_template.has_instruction()) {
      throw Error(ErrorCode::kUsage, "template " + options.chat_template.name,
                  "has no line instruction, which says how a text of a contrastive record is written", "",
                  "see CHAT TEMPLATES in pretokenize(1); --template grit has one");
    }
    for (const DocumentInput& input : options.inputs) {
      if (input.format == InputFormat::kJsonl) continue;
      throw Error(
          ErrorCode::kUsage, flag, "reads JSON lines, not " + std::string(NameOf(input.format)), "",
          input.format == InputFormat::kParquet ? "write " + input.path + " as JSON lines first" : "");
    }
    chat_encoder.emplace(options.chat_template, &tokenizer, chat_options);
    for (const std::string& mark : chat_encoder->unknown_marks()) {
      if (options.chat_template.marks_are_text) break;
      LogWarning("template " + options.chat_template.name + ": " + mark +
                 " is no special token of the tokenizer and becomes ordinary tokens");
    }
  }
  if (options.add_bos) RequireId(tokenizer.identity().bos_id, "--bos", options);
  if (options.add_eos) RequireId(tokenizer.identity().eos_id, "--eos", options);

  impl_->encoder.emplace(options, tokenizer, chat_encoder ? &*chat_encoder : nullptr);
  if (options.verify_every > 0) {
    ReferenceCheck& check = impl_->check.emplace(tokenizer, options.verify_every);
    std::optional<ChatEncoder>& reference_chat_encoder = impl_->reference_chat_encoder;
    if (chat_encoder) reference_chat_encoder.emplace(options.chat_template, &check.reference(), chat_options);
    impl_->reference_encoder.emplace(options, check.reference(),
                                     reference_chat_encoder ? &*reference_chat_encoder : nullptr);
    impl_->encoder->CompareWith(&*impl_->reference_encoder, &check);
  }
}

Pretokenizer::~Pretokenizer() = default;

void Pretokenizer::SetTemplateTime(std::chrono::sys_seconds now) {
  ChatTemplate& chat_template = impl_->options.chat_template;
  chat_template.now = now;
  const ChatEncoderOptions chat_options = EncoderOptionsOf(impl_->options);
  // In the places of the former ones, to which the batch encoders point.
  if (impl_->chat_encoder) {
    impl_->chat_encoder.emplace(chat_template, impl_->tokenizer.get(), chat_options);
  }
  if (impl_->reference_chat_encoder) {
    impl_->reference_chat_encoder.emplace(chat_template, &impl_->check->reference(), chat_options);
  }
}

TokenStreamHeader Pretokenizer::header() const {
  return {.tokenizer = impl_->tokenizer->identity(),
          .record_kind = impl_->options.records,
          .provenance_json = ProvenanceOf(impl_->options, "train")};
}

PretokenizeReport Pretokenizer::EmptyReport() const {
  PretokenizeReport report;
  report.vocab_size = impl_->tokenizer->identity().vocab_size;
  report.tokenizer_sha256 = impl_->tokenizer->identity().sha256;
  report.records = impl_->options.records;
  if (impl_->check) {
    report.verified_with = impl_->check->reference().method();
    report.verified_library = impl_->check->reference().library();
  }
  if (const auto& chat_encoder = impl_->chat_encoder) {
    report.template_literals = chat_encoder->literals();
    report.literal_tokenizations = chat_encoder->literal_tokenizations();
  }
  return report;
}

PretokenizeReport Pretokenizer::Run(DocumentReader* reader, std::unique_ptr<ByteSink> output,
                                    Progress* progress, uint64_t stored_bytes_before) {
  const auto start = std::chrono::steady_clock::now();
  PretokenizeReport report = EmptyReport();
  DocumentCollector collector(impl_->options, header(), std::move(output), &report);
  if (Pump(impl_->options, *impl_->encoder, reader, &collector, progress, stored_bytes_before)) {
    report.input_hash = reader->input_hash();
  }
  ThrowIfStopped();
  reader->ThrowIfWritten();
  collector.Commit();
  report.input_bytes = reader->input_bytes();
  report.time_s = SecondsSince(start);
  return report;
}

PretokenizeReport RunPretokenize(const PretokenizeJobOptions& options, ProgressMode progress_mode) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> read = options.also_read;
  for (const DocumentInput& input : options.inputs) read.push_back(input.path);
  read.push_back(TokenizerFileOf(options.tokenizer));
  // A name without these is a built-in template's.
  if (const std::string& name = options.chat_template.name; name.find_first_of("./") != std::string::npos)
    read.push_back(name);
  RefuseToReplaceInputs(options.output, read);
  RefuseToReplaceInputs(options.holdout_output, read);
  Pretokenizer pretokenizer(options);
  DocumentReader reader(options.inputs, options.max_document_bytes, options.keys);
  Progress progress(progress_mode, "pretokenize", reader.stored_bytes_total(), "bytes");
  PretokenizeReport report = pretokenizer.Run(&reader, OpenOutput(options, options.output), &progress);
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
      {"tokens_per_s", TokensPerSecond(report)},
      {"vocab_size", report.vocab_size},
      {"tokenizer_sha256", HexEncode(report.tokenizer_sha256)}};
  if (!report.verified_with.empty()) {
    json["documents_verified"] = report.documents_verified;
    if (report.documents_tied > 0) json["documents_tied"] = report.documents_tied;
    json["verified_with"] = report.verified_with;
    if (report.verified_library) json["verified_library"] = EncodeLibrary(*report.verified_library);
  }
  if (report.records != RecordKind::kLm) {
    json["records"] = RecordKindName(report.records);
    json[report.records == RecordKind::kSft ? "loss_tokens" : "pooled_tokens"] = report.loss_tokens;
    if (report.records == RecordKind::kContrastive) {
      json["texts"] = report.texts;
      json["texts_cut"] = report.texts_cut;
    }
    json["template_literals"] = report.template_literals;
    json["literal_tokenizations"] = report.literal_tokenizations;
  }
  if (report.streams > 0) {
    json["streams"] = report.streams;
    json["streams_taken_over"] = report.streams_taken_over;
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
  line +=
      ", in " + FormatDuration(report.time_s) + " (" + FormatCount(TokensPerSecond(report)) + " tokens/s)";
  if (report.streams > 0) line += "; " + count(report.streams, "stream");
  if (report.streams_taken_over > 0) {
    line += ", " + FormatCount(static_cast<double>(report.streams_taken_over)) + " of them from a former run";
  }
  if (report.held_out.documents > 0) line += "; held out " + count(report.held_out.documents, "document");
  if (report.empty_documents > 0) line += "; left out " + count(report.empty_documents, "empty document");
  if (report.over_max_characters > 0)
    line += "; left out " + count(report.over_max_characters, "document") + " (over_max_chars)";
  if (report.over_max_tokens > 0)
    line += "; left out " + count(report.over_max_tokens, "document") + " (over_max_record_tokens)";
  for (size_t i = 0; i < kSkipReasonCount; ++i) {
    if (report.skipped[i] > 0) {
      line += "; skipped " + count(report.skipped[i], "document") + " (" + kSkipReasonNames[i] + ")";
    }
  }
  if (!report.verified_with.empty()) {
    line += "; verified " + count(report.documents_verified, "document") + " with " + report.verified_with;
    if (report.verified_library) line += DescribeLibrary(*report.verified_library);
    if (report.documents_tied > 0) {
      line += ", of which " + std::to_string(report.documents_tied) + " differ in ties alone";
    }
  }
  if (report.texts_cut > 0) line += "; cut " + count(report.texts_cut, "text") + " to the limit of tokens";
  if (report.replaced_bytes > 0) line += "; replaced " + count(report.replaced_bytes, "bad byte");
  return line;
}

}  // namespace trainwright

#include "lib/codec/compress_job.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/codec/extract.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_source.h"
#include "lib/io/file_state.h"
#include "lib/io/output_link.h"
#include "lib/io/random_reader.h"

namespace trainwright {
namespace {

constexpr std::string_view kPlainEnd = ".safetensors", kContainerEnd = ".twc.safetensors",
                           kStreamEnd = ".safetensors.twc";

/// A safetensors file, or a pipe that is read from its beginning to its end.
class FileTensors final : public TensorSource {
 public:
  FileTensors(std::string path, const std::optional<FileState>& state)
      : path_(std::move(path)),
        state_(state),
        file_(state ? OpenRandomReader(path_) : nullptr),
        reader_(file_ ? SourceOf(file_.get()) : OpenSource(path_)) {}

  BufferedReader* reader() { return &reader_; }
  std::vector<uint8_t> ReadHead() {
    const uint64_t size = SafetensorsHeadBytes(reader_.Peek(8), reader_.name());
    std::vector<uint8_t> head;
    if (AppendFrom(&reader_, size, &head) < size)
      throw CutShortAt(reader_.position(), reader_.name(), "safetensors header");
    position_ = size;
    return head;
  }
  void SetHead(const CompressedHead* head, BaseTensors* base) {
    head_ = head;
    base_ = base;
  }
  TensorBytes Take(size_t entry) override {
    const SafetensorsEntry& tensor = head_->source.entries[entry];
    const uint64_t size = tensor.end - tensor.begin, offset = position_;
    position_ += size;
    if (file_ == nullptr) {
      TensorBytes bytes = TakeFromPipe(size);
      // What a pipe's header claims need not be there.
      if (bytes.view.size() < size) throw CutShortAt(reader_.position(), reader_.name(), "safetensors file");
      return bytes;
    }
    if (size <= kMostHeldBytes) {
      std::vector<uint8_t> held(size);
      file_->ReadAt(offset, std::span<uint8_t>(held));
      return TensorBytes::Own(std::move(held));
    }
    TensorBytes bytes;
    bytes.view = TensorContent::InFile(file_.get(), offset, size);
    return bytes;
  }
  std::optional<TensorBytes> TakeBase(size_t entry) override {
    if (base_ == nullptr) return {};
    return base_->Read(head_->source.entries[entry]);
  }
  /// Checks that this was the whole file, and that it is still the same.
  void Finish() {
    ThrowIfStopped();
    if (state_) ThrowIfChangedSince(*state_, path_);
    const bool is_whole = file_ ? position_ == file_->size_bytes() : reader_.Peek(1).empty();
    if (!is_whole) throw BadInputAt(position_, reader_.name(), "bytes follow the last tensor");
  }

 private:
  /// The predictor, which goes in front of what it is fitted to, needs a tensor more than once.
  TensorBytes TakeFromPipe(uint64_t size) {
    if (size > kMostHeldBytes) return TensorBytes::Own(Spool(&reader_, size));
    std::vector<uint8_t> bytes;
    AppendFrom(&reader_, size, &bytes);
    return TensorBytes::Own(std::move(bytes));
  }

  std::string path_;
  std::optional<FileState> state_;
  std::unique_ptr<RandomReader> file_;  // of what has a lasting state
  BufferedReader reader_;
  uint64_t position_ = 0;  // of the next tensor
  const CompressedHead* head_ = nullptr;
  BaseTensors* base_ = nullptr;
};

std::unique_ptr<BaseTensors> BaseOf(const CompressJobOptions& options) {
  return options.base.empty() ? nullptr : OpenBase(options.base);
}

CompressedForm FormFor(const std::string& output, const CompressJobOptions& options) {
  return options.form.value_or(IsStandardOutput(output) ? CompressedForm::kStream
                                                        : CompressedForm::kSafetensors);
}

uint64_t CompressedBytes(const CompressedHead& head, const CompressedTail& tail, CompressedForm form) {
  uint64_t size = form == CompressedForm::kStream ? EncodeStreamHead(head).size() + StreamEndBytes(head)
                                                  : ContainerHeadBytes(head);
  for (const uint64_t coded_bytes : tail.coded_bytes) size += coded_bytes;
  return size;
}

CompressReport ReportOf(const DecodedCheckpoint& decoded) {
  return {.files = 1,
          .tensors = decoded.head.source.entries.size(),
          .source_bytes = decoded.head.SourceBytes(),
          .compressed_bytes = decoded.compressed_bytes,
          .content_checked = decoded.content_checked};
}

/// Rewriting passes coded tensors on as they are. `verify` may be false: the result is the same.
void RefuseCodingOptions(const std::string& name, const CompressJobOptions& options) {
  const std::string given = options.level == CodecLevel::kFast  ? "--fast"
                            : options.level == CodecLevel::kMax ? "--max"
                            : !options.base.empty()             ? "--base"
                                                                : "";
  if (given.empty()) return;
  throw Error(ErrorCode::kUsage, given, "has no effect on " + name + ", which is compressed already", "",
              "leave it out, or restore the original with -d and compress it again");
}

CompressReport Convert(BufferedReader* reader, const std::string& input, const std::string& output,
                       const CompressJobOptions& options) {
  const CompressedForm form = FormFor(output, options);
  const std::unique_ptr<ByteSink> sink =
      OpenOutput(output, input, form == CompressedForm::kSafetensors, options.force);
  const DecodedCheckpoint converted = ConvertCheckpoint(reader, form, sink.get(), options.progress);
  sink->Commit();
  CompressReport report = ReportOf(converted);
  report.compressed_bytes = CompressedBytes(converted.head, converted.tail, form);
  return report;
}

/// \param base null, or RequireBase has taken it, which may read the whole of it
CompressReport FindDamage(const CompressedCheckpoint& checkpoint, BaseTensors* base) {
  CompressReport report{.files = 1,
                        .tensors = checkpoint.tensors(),
                        .source_bytes = checkpoint.head().SourceBytes(),
                        .compressed_bytes = checkpoint.file().size_bytes(),
                        .content_checked = !checkpoint.head().base_hash || base != nullptr};
  if (checkpoint.problem()) report.damage.push_back({{}, {}, *checkpoint.problem()});
  for (size_t entry = 0; entry < checkpoint.tensors(); ++entry) {
    const std::vector<DamagedBlock> damage = checkpoint.FindDamage(entry, base);
    report.tensors_lost += damage.empty() ? 0 : 1;
    report.damage.insert(report.damage.end(), damage.begin(), damage.end());
  }
  return report;
}

/// Restores the tensors that are sound.
CompressReport RestoreSound(const std::string& input, const std::string& output,
                            const CompressJobOptions& options, BaseTensors* base) {
  const std::optional<FileState> state = input == "-" ? std::nullopt : SettledStateOf(input);
  const std::unique_ptr<RandomReader> file = OpenInput(input);
  std::optional<CompressedCheckpoint> checkpoint;
  try {
    checkpoint.emplace(file.get(), /*may_be_damaged=*/true);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    if (state) ThrowIfChangedSince(*state, input);  // what another writes to is not what is damaged
    return {.lost_files = {error}};
  }
  checkpoint->RequireBase(base);
  CompressReport report = FindDamage(*checkpoint, base);
  std::vector<TensorPart> sound;
  std::vector<std::string> lost;
  for (const SafetensorsEntry& entry : checkpoint->head().source.entries) {
    const bool damaged = std::any_of(report.damage.begin(), report.damage.end(),
                                     [&](const DamagedBlock& block) { return block.tensor == entry.name; });
    if (damaged) {
      lost.push_back(entry.name);
    } else {
      sound.push_back({entry.name, {}, {}});
    }
  }
  const std::unique_ptr<ByteSink> sink = OpenOutput(output, input, false, options.force);
  if (lost.empty()) {
    sink->Write(checkpoint->head().SourceHead());
    ExtractRaw(*checkpoint, sound, base, sink.get());
  } else {
    ExtractSafetensors(*checkpoint, sound, base, lost, sink.get());
  }
  if (state) ThrowIfChangedSince(*state, input);
  sink->Commit();
  return report;
}

}  // namespace

void CompressReport::Add(const CompressReport& other) {
  files += other.files;
  tensors += other.tensors;
  source_bytes += other.source_bytes;
  compressed_bytes += other.compressed_bytes;
  tensors_lost += other.tensors_lost;
  damage.insert(damage.end(), other.damage.begin(), other.damage.end());
  lost_files.insert(lost_files.end(), other.lost_files.begin(), other.lost_files.end());
  content_checked = content_checked && other.content_checked;
  kept.insert(kept.end(), other.kept.begin(), other.kept.end());
}

std::string CompressedName(const std::string& name, CompressedForm form) {
  if (!name.ends_with(kPlainEnd) || name.size() == kPlainEnd.size()) return "";
  const std::string stem = name.substr(0, name.size() - kPlainEnd.size());
  return stem + std::string(form == CompressedForm::kStream ? kStreamEnd : kContainerEnd);
}

std::string RestoredName(const std::string& name) {
  for (const std::string_view end : {kContainerEnd, kStreamEnd}) {
    if (name.ends_with(end) && name.size() > end.size())
      return name.substr(0, name.size() - end.size()) + std::string(kPlainEnd);
  }
  return "";
}

void RequireSafetensors(BufferedReader* reader) {
  const ByteSpan head = reader->Peek(9);
  if (IsStream(head)) return;
  const bool has_header =
      head.size() == 9 && head[8] == '{' && ByteParser(head).Read<uint64_t>() <= kMaxSafetensorsHeaderBytes;
  if (has_header) return;
  throw BadInputAt(0, reader->name(), "is not a safetensors file: it does not begin with a JSON header",
                   "ckpt-compress takes safetensors files and folders of them; zstd compresses other files");
}

bool IsCompressed(BufferedReader* reader) {
  const ByteSpan prefix = reader->Peek(8);
  if (IsStream(prefix)) return true;
  const uint64_t size = SafetensorsHeadBytes(prefix, reader->name());
  return IsContainer(ParseSafetensorsHead(reader->Peek(size), reader->name()));
}

std::unique_ptr<RandomReader> OpenInput(const std::string& input) {
  return IsReadOnce(input) ? SpoolAll(input) : OpenRandomReader(input);
}

std::unique_ptr<ByteSink> OpenOutput(const std::string& output, const std::string& input, bool overwritable,
                                     bool force) {
  std::error_code ignored;
  if (!IsStandardOutput(output) && !force && std::filesystem::exists(output, ignored) &&
      !std::filesystem::is_other(output, ignored)) {
    throw ExistsAlready(output);
  }
  std::unique_ptr<ByteSink> sink = OpenSink(output, /*binary=*/true, force, PermissionsOf(input));
  if (auto* file = dynamic_cast<AtomicFileSink*>(sink.get()); file != nullptr && !force) file->KeepExisting();
  if (overwritable && dynamic_cast<OverwritableSink*>(sink.get()) == nullptr)
    sink = std::make_unique<SpooledSink>(std::move(sink));
  return sink;
}

CompressReport CompressFile(const std::string& input, const std::string& output,
                            const CompressJobOptions& options) {
  const CompressedForm form = FormFor(output, options);
  const std::optional<FileState> base_state = options.base.empty() ? std::nullopt : StateOf(options.base);
  const std::unique_ptr<BaseTensors> base = BaseOf(options);
  const std::optional<FileState> state = input == "-" ? std::nullopt : StateOf(input);
  FileTensors tensors(input, state);
  RequireSafetensors(tensors.reader());
  if (IsCompressed(tensors.reader())) {
    if (options.compressed_input == CompressedInput::kRewrite) {
      RefuseCodingOptions(tensors.reader()->name(), options);
      return Convert(tensors.reader(), input, output, options);
    }
    throw Error(ErrorCode::kUsage, tensors.reader()->name(), "is compressed already", "",
                "-d restores it, --to stream or --to safetensors rewrites it");
  }
  CompressedHead head = HeadOf(tensors.ReadHead(), tensors.reader()->name());
  if (state && head.SourceBytes() > state->size_bytes)
    throw CutShortAt(state->size_bytes, input, "safetensors file");
  head.level = options.level;
  head.writer = options.writer;
  if (base) head.base_hash = base->Hash();
  tensors.SetHead(&head, base.get());
  const std::unique_ptr<ByteSink> sink =
      OpenOutput(output, input, form == CompressedForm::kSafetensors, options.force);
  const CompressedTail tail = EncodeCheckpoint(
      head, &tensors,
      {.form = form, .threads = options.threads, .verify = options.verify, .progress = options.progress},
      sink.get());
  tensors.Finish();
  // Without the file that was read, nothing can decode the difference.
  if (base_state) ThrowIfChangedSince(*base_state, options.base);
  sink->Commit();
  return {.files = 1,
          .tensors = head.source.entries.size(),
          .source_bytes = head.SourceBytes(),
          .compressed_bytes = CompressedBytes(head, tail, form)};
}

CompressReport RestoreFile(const std::string& input, const std::string& output,
                           const CompressJobOptions& options) {
  const std::unique_ptr<BaseTensors> base = BaseOf(options);
  if (options.keep_going) return RestoreSound(input, output, options, base.get());
  BufferedReader reader(OpenSource(input));
  const std::unique_ptr<ByteSink> sink = OpenOutput(output, input, false, options.force);
  const DecodedCheckpoint decoded = DecodeCheckpoint(
      &reader, sink.get(), {.threads = options.threads, .base = base.get(), .progress = options.progress});
  sink->Commit();
  return ReportOf(decoded);
}

CompressReport VerifyFile(const std::string& input, const CompressJobOptions& options) {
  const std::unique_ptr<BaseTensors> base = BaseOf(options);
  std::unique_ptr<RandomReader> file;
  if (options.keep_going) {
    file = OpenInput(input);
    const CompressedCheckpoint checkpoint(file.get(), /*may_be_damaged=*/true);
    if (base) checkpoint.RequireBase(base.get());
    CompressReport report = FindDamage(checkpoint, base.get());
    if (!report.damage.empty()) return report;
  }
  BufferedReader reader(file ? SourceOf(file.get()) : OpenSource(input));
  return ReportOf(DecodeCheckpoint(&reader, nullptr,
                                   {.threads = options.threads,
                                    .base = base.get(),
                                    .allow_missing_base = true,
                                    .progress = options.progress}));
}

}  // namespace trainwright

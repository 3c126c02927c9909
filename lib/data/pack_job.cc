#include "lib/data/pack_job.h"

#include <zstd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/data/shard_folder_writer.h"
#include "lib/formats/provenance.h"
#include "lib/io/byte_source.h"
#include "lib/io/ordered_workers.h"

namespace trainwright {
namespace {

constexpr uint32_t kFrameTokens = 32768;

// The pieces of several token streams, one stream after the other.
class TokenStreams {
 public:
  // Every header is read at once, so that a wrong tokenizer is found before the work. Only what cannot be
  // opened twice (pipes) stays open from then on.
  explicit TokenStreams(const std::vector<std::string>& paths) : paths_(paths), opened_(paths.size()) {
    TRAINWRIGHT_CHECK(!paths.empty());
    for (size_t i = 0; i < paths_.size(); ++i) {
      std::unique_ptr<TokenStreamReader> reader = Open(i);
      AddProvenance(reader->header().provenance_json);
      if (i == 0 || !std::filesystem::is_regular_file(paths_[i])) opened_[i] = std::move(reader);
    }
  }

  const TokenStreamHeader& header() const { return *header_; }
  // The distinct ways in which the streams were made. Their hashes would be known to a reader of files only,
  // and pipes must give the same bytes.
  const std::vector<ProvenanceInput>& provenance() const { return provenance_; }

  [[nodiscard]] bool Next(DocumentPiece* piece) {
    while (current_ < paths_.size()) {
      if (!opened_[current_]) opened_[current_] = Open(current_);
      if (opened_[current_]->Next(piece)) return true;
      opened_[current_++].reset();
    }
    return false;
  }

 private:
  std::unique_ptr<TokenStreamReader> Open(size_t index) {
    const std::string& path = paths_[index];
    auto reader = std::make_unique<TokenStreamReader>(DecompressIfNeeded(OpenSource(path)));
    const TokenStreamHeader& header = reader->header();
    if (!header_) {
      header_ = header;
    }
    if (header.tokenizer != header_->tokenizer) {
      throw Error(ErrorCode::kBadInput, path, "was made with another tokenizer than " + paths_[0],
                  "sha256 " + HexEncode(header.tokenizer.sha256).substr(0, 12) + " against " +
                      HexEncode(header_->tokenizer.sha256).substr(0, 12),
                  "run pretokenize with one --tokenizer on both");
    }
    if (header.record_kind != header_->record_kind) {
      throw Error(ErrorCode::kBadInput, path,
                  std::string("holds ") + RecordKindName(header.record_kind) + " records, and " + paths_[0] +
                      " holds " + RecordKindName(header_->record_kind) + " records",
                  "", "a set has one kind; run pretokenize with the same --records on both");
    }
    return reader;
  }

  void AddProvenance(const std::string& provenance_json) {
    for (const ProvenanceInput& known : provenance_) {
      if (known.provenance_json == provenance_json) return;
    }
    provenance_.push_back({.hash = "", .provenance_json = provenance_json});
  }

  const std::vector<std::string> paths_;
  std::vector<std::unique_ptr<TokenStreamReader>> opened_;
  std::optional<TokenStreamHeader> header_;
  std::vector<ProvenanceInput> provenance_;
  size_t current_ = 0;
};

// Where finished shards go.
class ShardOutput {
 public:
  virtual ~ShardOutput() = default;
  virtual ByteSink* OpenShard() = 0;
  virtual void CommitShard(const ShardWriter& finished) = 0;
  virtual void Seal(const ShardSetHeader& header) = 0;
};

class StreamOutput final : public ShardOutput {
 public:
  StreamOutput(const std::string& path, bool allow_terminal) {
    if (path != "-") {
      RemoveStaleTemporaries(FolderOf(path), std::filesystem::path(path).filename().string() + ".tmp-");
    }
    sink_ = OpenSink(path, /*binary=*/true, allow_terminal);
  }
  ByteSink* OpenShard() override { return sink_.get(); }
  void CommitShard(const ShardWriter&) override {}
  void Seal(const ShardSetHeader&) override { sink_->Commit(); }

 private:
  std::unique_ptr<ByteSink> sink_;
};

class FolderOutput final : public ShardOutput {
 public:
  explicit FolderOutput(const std::string& folder) : writer_(folder) {}
  ByteSink* OpenShard() override { return writer_.OpenShard(); }
  void CommitShard(const ShardWriter& finished) override { writer_.CommitShard(finished); }
  void Seal(const ShardSetHeader& header) override { writer_.Seal(header); }

 private:
  ShardFolderWriter writer_;
};

std::unique_ptr<ShardOutput> OpenOutput(const PackJobOptions& options) {
  const std::string& path = options.output;
  if (path != "-" && (path.ends_with('/') || std::filesystem::is_directory(path))) {
    return std::make_unique<FolderOutput>(path);
  }
  return std::make_unique<StreamOutput>(path, options.allow_terminal);
}

// Groups chunks into frames, compresses those in parallel and writes them in order, a shard after the other.
class ShardSetWriter {
 public:
  ShardSetWriter(const ShardSetHeader& header, const PackJobOptions& options, ShardOutput* output)
      : header_(header),
        shard_size_bytes_(options.shard_size_bytes),
        output_(output),
        workers_(options.threads, static_cast<size_t>(options.threads) + 2,
                 [this, level = options.level](int, Job job) {
                   return Done{EncodeFrame(header_, job.chunks, job.first_chunk, level), job.tokens_dropped};
                 }) {
    summary_.header = header;
    summary_.header.tokenizer.model.clear();
  }

  // `tokens_dropped`: by the packer so far. It travels with the frames, so that a shard's share of it does
  // not depend on how many frames are under way.
  void Add(Chunk chunk, uint64_t tokens_dropped) {
    chunks_.push_back(std::move(chunk));
    if (chunks_.size() == header_.chunks_per_frame) PushFrame(tokens_dropped);
  }

  ShardSetSummary Finish(uint64_t tokens_dropped) {
    if (!chunks_.empty()) PushFrame(tokens_dropped);
    while (!workers_.empty()) WriteFrame();
    if (!shard_) return summary_;
    dropped_in_shard_ += tokens_dropped - dropped_in_frames_;
    CloseShard(/*last=*/true);
    summary_.content_sha256 = content_.Digest();
    return summary_;
  }

 private:
  struct Job {
    std::vector<Chunk> chunks;
    uint64_t first_chunk;
    uint64_t tokens_dropped;
  };
  struct Done {
    EncodedFrame frame;
    uint64_t tokens_dropped;
  };

  void PushFrame(uint64_t tokens_dropped) {
    ThrowIfStopped();
    if (workers_.full()) WriteFrame();
    const uint64_t first_chunk = chunks_pushed_;
    chunks_pushed_ += chunks_.size();
    workers_.Push({std::exchange(chunks_, {}), first_chunk, tokens_dropped - dropped_in_frames_});
    dropped_in_frames_ = tokens_dropped;
  }

  // A shard is closed when it is known that another follows: its index says whether it is the last.
  void WriteFrame() {
    const Done done = workers_.Pop();
    if (shard_ && shard_->totals().chunks > 0 &&
        shard_->size_bytes() + done.frame.bytes.size() > shard_size_bytes_) {
      CloseShard(/*last=*/false);
    }
    if (!shard_) {
      shard_.emplace(output_->OpenShard(), header_, static_cast<uint32_t>(summary_.shards), chunks_written_);
    }
    shard_->AddFrame(done.frame);
    chunks_written_ += done.frame.totals.chunks;
    summary_.frames_bytes += done.frame.bytes.size();
    dropped_in_shard_ += done.tokens_dropped;
  }

  void CloseShard(bool last) {
    shard_->Finish(last, std::exchange(dropped_in_shard_, 0));
    output_->CommitShard(*shard_);
    summary_.totals += shard_->totals();
    summary_.size_bytes += shard_->size_bytes();
    ++summary_.shards;
    content_.Update(shard_->content_sha256());
    shard_.reset();
  }

  const ShardSetHeader header_;
  const uint64_t shard_size_bytes_;
  ShardOutput* const output_;
  std::optional<ShardWriter> shard_;
  ShardSetSummary summary_;
  Sha256 content_;
  std::vector<Chunk> chunks_;
  uint64_t chunks_pushed_ = 0, chunks_written_ = 0, dropped_in_frames_ = 0, dropped_in_shard_ = 0;
  OrderedWorkers<Job, Done> workers_;
};

// Short chunks share a frame, which compresses better. Chunks of mode kNone are as short as their documents:
// 64 of them share one, as long as the longest possible frame stays small.
uint32_t ChunksPerFrame(const PackerOptions& packer) {
  const uint32_t full = std::max(1u, kFrameTokens / packer.chunk_tokens);
  if (packer.mode != PackMode::kNone) return full;
  return std::max(full, std::min(64u, (64 * kFrameTokens) / packer.chunk_tokens));
}

/// What the packer does with these records.
PackerOptions PackerFor(RecordKind kind, const PackJobOptions& options) {
  PackerOptions packer = options.packer;
  if (kind != RecordKind::kSft) {
    if (!options.overflow_chosen) packer.overflow = OverflowPolicy::kSplit;
    packer.keep_loss_tokens = 0;
    return packer;
  }
  if (!options.overflow_chosen) packer.overflow = OverflowPolicy::kError;
  if (packer.mode == PackMode::kConcat && packer.overflow != OverflowPolicy::kSplit) {
    throw Error(ErrorCode::kUsage, "--mode concat", "cuts conversations (sft records) wherever a chunk ends",
                "", "--mode bestfit keeps them whole; --overflow split says that they may be cut");
  }
  return packer;
}

ShardSetHeader MakeHeader(const TokenStreams& streams, const PackJobOptions& options) {
  ShardSetHeader header;
  header.tokenizer = streams.header().tokenizer;
  header.record_kind = streams.header().record_kind;
  header.mode = options.packer.mode;
  header.overflow = options.packer.overflow;
  header.chunk_tokens = options.packer.chunk_tokens;
  header.chunks_per_frame = ChunksPerFrame(options.packer);
  nlohmann::json shaping = {
      {"chunk", options.packer.chunk_tokens},      {"level", options.level},
      {"mode", PackModeName(options.packer.mode)}, {"overflow", OverflowPolicyName(options.packer.overflow)},
      {"shard_size", options.shard_size_bytes},    {"zstd", ZSTD_versionString()},
  };
  if (options.packer.mode == PackMode::kBestFit) shaping["window"] = options.packer.window_tokens;
  if (header.record_kind == RecordKind::kSft && options.packer.overflow == OverflowPolicy::kTruncate) {
    shaping["keep_answer"] = options.packer.keep_loss_tokens;
  }
  header.provenance_json = MakeProvenance("pack", shaping, streams.provenance());
  return header;
}

}  // namespace

PackReport RunPack(const PackJobOptions& asked, ProgressMode progress_mode) {
  const std::unique_ptr<ShardOutput> output = OpenOutput(asked);
  TokenStreams streams(asked.inputs);
  PackJobOptions options = asked;
  options.packer = PackerFor(streams.header().record_kind, asked);
  const ShardSetHeader header = MakeHeader(streams, options);
  ShardSetWriter writer(header, options, output.get());
  std::optional<Packer> packer;
  packer.emplace(options.packer,
                 [&](Chunk chunk) { writer.Add(std::move(chunk), packer->counts().tokens_dropped); });
  Progress progress(progress_mode, "pack", 0, "tokens", /*plain_lines=*/true);
  DocumentPiece piece;
  while (streams.Next(&piece)) {
    packer->Add(piece);
    progress.Update(packer->counts().tokens);
  }
  packer->Finish();
  PackReport report;
  report.input = packer->counts();
  report.set = writer.Finish(report.input.tokens_dropped);
  if (report.set.totals.chunks == 0) {
    throw Error(ErrorCode::kBadInput, options.inputs[0] == "-" ? "standard input" : options.inputs[0],
                report.input.documents == 0
                    ? "holds no documents"
                    : "its " + std::to_string(report.input.documents) + " document(s) leave no token to pack",
                "", "look at the producer's input and flags; pack --overflow drop also drops");
  }
  output->Seal(header);
  return report;
}

}  // namespace trainwright

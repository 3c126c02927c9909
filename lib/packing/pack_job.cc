#include "lib/packing/pack_job.h"

#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/formats/provenance.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/token_stream_set.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/formats/window_stride.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/packing/shard_output.h"
#include "lib/packing/shard_set_writer.h"
#include "lib/packing/sound_inputs.h"
#include "lib/tok/tokenizer_folder.h"

namespace trainwright {
namespace {

constexpr uint32_t kFrameTokens = 32768;
constexpr double kManyCorrupt = 0.3;  // of the inputs: more than accidents of single files

// The pieces of several token streams, one stream after the other.
class TokenStreams final : public TokenDocuments {
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

  const TokenStreamHeader& header() const override { return *header_; }
  // The distinct ways in which the streams were made. Their hashes would be known to a reader of files only,
  // and pipes must give the same bytes.
  const std::vector<ProvenanceInput>& provenance() const override { return provenance_; }

  [[nodiscard]] bool Next(DocumentPiece* piece) override {
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

// Short chunks share a frame, which compresses better. Chunks of mode kNone are as short as their documents:
// 64 of them share one, as long as the longest possible frame stays small.
uint32_t ChunksPerFrame(const PackerOptions& packer) {
  const uint32_t full = std::max(1u, kFrameTokens / packer.chunk_tokens);
  if (packer.mode != PackMode::kNone) return full;
  return std::max(full, std::min(64u, (64 * kFrameTokens) / packer.chunk_tokens));
}

/// Windows that overlap need a document that is cut, at the windows' ends alone.
void CheckStride(const PackerOptions& packer) {
  if (packer.stride_tokens == 0) return;
  if (packer.mode == PackMode::kConcat) {
    throw Error(ErrorCode::kUsage, "--stride",
                "has no meaning with --mode concat, which cuts where a chunk ends", "",
                "--mode bestfit or none cut long documents into windows");
  }
  if (packer.overflow != OverflowPolicy::kSplit) {
    throw Error(ErrorCode::kUsage, "--stride",
                "cuts long documents into windows, and --overflow " + OverflowPolicyName(packer.overflow) +
                    " cuts none",
                "", "--overflow split says that documents may be cut");
  }
  if (packer.stride_tokens > packer.chunk_tokens) {
    throw Error(ErrorCode::kUsage, "--stride",
                std::to_string(packer.stride_tokens) + " is more than --chunk " +
                    std::to_string(packer.chunk_tokens) + ": tokens between the windows would be lost");
  }
}

/// What the packer does with these records, before CheckStride.
PackerOptions PackerOfRecords(RecordKind kind, const PackJobOptions& options) {
  PackerOptions packer = options.packer;
  packer.records = kind;
  if (kind == RecordKind::kContrastive) {
    if (!options.overflow_chosen) packer.overflow = OverflowPolicy::kError;
    const bool concat = packer.mode == PackMode::kConcat;
    if (concat || packer.overflow == OverflowPolicy::kSplit) {
      throw Error(ErrorCode::kUsage, concat ? "--mode concat" : "--overflow split",
                  "cuts records, and a contrastive record stays whole", "",
                  concat ? "--mode bestfit keeps them whole" : "--overflow error, truncate or drop");
    }
    packer.keep_loss_tokens = 0;
    return packer;
  }
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

PackerOptions PackerFor(RecordKind kind, const PackJobOptions& options) {
  const PackerOptions packer = PackerOfRecords(kind, options);
  CheckStride(packer);
  return packer;
}

ShardSetHeader MakeHeader(const TokenDocuments& streams, const PackJobOptions& options) {
  if (options.remap && streams.header().tokenizer.vocab_size > IdCodes::kMaxVocabulary) {
    throw Error(ErrorCode::kUsage, "--remap",
                "ranks vocabularies of at most " + std::to_string(IdCodes::kMaxVocabulary) +
                    " ids, and this one has " + std::to_string(streams.header().tokenizer.vocab_size),
                "", "pack without --remap");
  }
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
  if (options.remap) shaping["remap"] = true;
  if (options.packer.mode == PackMode::kBestFit) shaping["window"] = options.packer.window_tokens;
  if (options.packer.stride_tokens > 0) shaping["stride"] = options.packer.stride_tokens;
  if (header.record_kind == RecordKind::kSft && options.packer.overflow == OverflowPolicy::kTruncate) {
    shaping["keep_answer"] = options.packer.keep_loss_tokens;
  }
  header.provenance_json = MakeProvenance("pack", shaping, streams.provenance());
  return header;
}

/// The files to read, which `report` counts.
std::vector<std::string> ChooseInputs(const PackJobOptions& options, PackReport* report) {
  if (!options.skip_corrupt) {
    const bool streams = FormatOf(options.inputs[0], options.import) == ForeignFormat::kTokens;
    std::vector<std::string> paths = streams ? WithStreamsOfFolders(options.inputs) : options.inputs;
    report->files = paths.size();
    return paths;
  }
  SoundInputs sound = FindSoundInputs(options.inputs, options.import);
  report->files = sound.paths.size();
  report->files_skipped = sound.corrupt.size();
  for (const std::string& message : sound.corrupt) LogWarning(message + "; the file is left out");
  const uint64_t all = report->files + report->files_skipped;
  if (static_cast<double>(report->files_skipped) > kManyCorrupt * static_cast<double>(all)) {
    LogWarning(std::to_string(report->files_skipped) + " of " + FormatNumberOf(all, "input") +
               " are corrupt: look at what writes them, and at the disk");
  }
  return std::move(sound.paths);
}

std::unique_ptr<TokenDocuments> OpenInput(const std::vector<std::string>& paths,
                                          const ImportOptions& import) {
  const ForeignFormat format = FormatOf(paths[0], import);
  if (format == ForeignFormat::kTokens) {
    RefuseImportOptions(import, paths[0]);
    return std::make_unique<TokenStreams>(paths);
  }
  return std::make_unique<ForeignDocuments>(paths, format, import);
}

// Before anything is touched: a folder is not made for a set that is not there.
void CheckAppend(const PackJobOptions& options) {
  if (!options.append) return;
  if (!IsFolderPath(options.output)) {
    throw Error(ErrorCode::kUsage, "--append",
                "extends a folder of shards, and " + options.output + " is none", "",
                "name the folder with -o DIR/");
  }
  if (!std::filesystem::exists(options.output + "/" + kManifestName)) {
    throw Error(ErrorCode::kUsage, options.output, "holds no finished set to append to", "",
                "leave out --append to make one");
  }
}

// The header of the set is that of what is appended, but for how that was made.
void CheckSameSettings(const ShardSetHeader& set, const ShardSetHeader& added, const std::string& folder) {
  const auto compare = [&](const std::string& what, const std::string& of_set, const std::string& of_added,
                           const std::string& hint) {
    if (of_set == of_added) return;
    throw Error(ErrorCode::kBadInput, folder,
                "has " + what + " " + of_set + ", and what is to be appended has " + of_added, "", hint);
  };
  const auto tokenizer = [](const ShardSetHeader& header) {
    return header.tokenizer.kind + ", sha256 " + HexEncode(header.tokenizer.sha256);
  };
  compare("the tokenizer", tokenizer(set), tokenizer(added), "run pretokenize with the tokenizer of the set");
  compare("a vocabulary of", std::to_string(set.tokenizer.vocab_size),
          std::to_string(added.tokenizer.vocab_size), "");
  // Of an unknown one, files with and without marks between their documents know other special ids.
  if (set.tokenizer.kind != kUnknownTokenizerKind && set.tokenizer != added.tokenizer) {
    throw Error(ErrorCode::kBadInput, folder, "has another tokenizer than what is to be appended");
  }
  compare("records", RecordKindName(set.record_kind), RecordKindName(added.record_kind),
          "run pretokenize with --records " + std::string(RecordKindName(set.record_kind)));
  compare("--chunk", std::to_string(set.chunk_tokens), std::to_string(added.chunk_tokens),
          "append with --chunk " + std::to_string(set.chunk_tokens));
  compare("--mode", PackModeName(set.mode), PackModeName(added.mode),
          "append with --mode " + PackModeName(set.mode));
  compare("--overflow", OverflowPolicyName(set.overflow), OverflowPolicyName(added.overflow),
          "append with --overflow " + OverflowPolicyName(set.overflow));
  const uint32_t stride = StrideOf(set);
  compare("--stride", std::to_string(stride), std::to_string(StrideOf(added)),
          stride == set.chunk_tokens ? "append without --stride"
                                     : "append with --stride " + std::to_string(stride));
}

}  // namespace

PackReport RunPack(const PackJobOptions& asked, ProgressMode progress_mode) {
  CheckAppend(asked);
  RefuseToReplaceInputs(asked.output, FilesOfInputs(asked.inputs, asked.import));
  RefuseToReplaceInputs(asked.output, {TokenizerFileOf(asked.import.tokenizer)});
  for (const std::string& path : asked.inputs) {
    if (path != "-" && access(path.c_str(), R_OK) != 0) throw SystemError(path, "open", errno);
  }
  // Before the input, which may be long in coming: the folder is taken from now on.
  const std::unique_ptr<ShardOutput> output = OpenShardOutput(asked.output, asked.allow_terminal);
  PackReport report;
  const std::unique_ptr<TokenDocuments> input = OpenInput(ChooseInputs(asked, &report), asked.import);
  TokenDocuments& streams = *input;
  PackJobOptions options = asked;
  options.packer = PackerFor(streams.header().record_kind, asked);
  ShardSetHeader header = MakeHeader(streams, options);
  std::unique_ptr<ShardSet> former;
  if (options.append) {
    former = ShardSet::Open(options.output);
    CheckSameSettings(former->header(), header, options.output);
    if (options.remap && !former->header().id_codes) {
      throw Error(ErrorCode::kBadInput, options.output, "was packed without --remap", "",
                  "append without --remap: a set is coded as a whole");
    }
    options.remap = false;
    output->ContinueSealedSet(header.provenance_json);
    header = former->header();
  }
  ShardSetWriter writer(header, {options.level, options.threads, options.shard_size_bytes, options.remap},
                        output.get());
  if (former) {
    report.chunks_before = former->chunks();
    writer.ContinueBehind(former->shards());
    former.reset();
  }
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
  report.input = packer->counts();
  report.set = writer.Finish(report.input.tokens_dropped);
  if (report.set.totals.chunks == report.chunks_before) {
    throw Error(ErrorCode::kBadInput, options.inputs[0] == "-" ? "standard input" : options.inputs[0],
                report.input.documents == 0
                    ? "holds no documents"
                    : "its " + FormatNumberOf(report.input.documents, "document") + " left no token to pack",
                "", "look at the producer's input and flags; pack --overflow drop also drops");
  }
  output->Seal(writer.header());
  return report;
}

}  // namespace trainwright

#include "lib/packing/shard_inspection.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/formats/document_parts.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/window_stride.h"
#include "lib/io/byte_source.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {
namespace {

constexpr size_t kOutputBufferBytes = 1 << 16;

// Folders and files are read through their index; whatever else there is (pipes) only has a beginning.
bool HasRandomAccess(const std::string& path) {
  return path != "-" && (!std::filesystem::exists(path) || std::filesystem::is_directory(path) ||
                         std::filesystem::is_regular_file(path));
}

/// Of the chunks one after the other: a window that does not begin its document begins with what the one
/// before ends with.
class RepeatedTokens {
 public:
  explicit RepeatedTokens(const ShardSetHeader& header)
      : per_window_(header.chunk_tokens - StrideOf(header)) {}
  bool are_there() const { return per_window_ > 0; }
  void Add(const Chunk& chunk) {
    if (!are_there()) return;
    for (const DocumentPart& part : PartsOf(chunk)) {
      if (!part.starts_document()) tokens_ += per_window_;
    }
  }
  /// nullopt where no windows overlap.
  std::optional<uint64_t> tokens() const {
    return are_there() ? std::optional<uint64_t>(tokens_) : std::nullopt;
  }

 private:
  const uint32_t per_window_;
  uint64_t tokens_ = 0;
};

/// \returns nullopt, and reads no chunk, where no windows overlap
std::optional<uint64_t> CountRepeatedTokens(const ShardSet& set) {
  RepeatedTokens repeated(set.header());
  for (uint64_t number = 0; repeated.are_there() && number < set.chunks();) {
    ThrowIfStopped();
    uint64_t first_chunk = 0;
    for (const Chunk& chunk : set.ReadFrameOf(number, &first_chunk)) {
      repeated.Add(chunk);
      ++number;
    }
  }
  return repeated.tokens();
}

ShardSetSummary Summarize(const ShardSet& set) {
  ShardSetSummary summary;
  summary.tokens_repeated = CountRepeatedTokens(set);
  summary.header = set.header();
  summary.header.tokenizer.model.clear();
  summary.content_sha256 = set.content_sha256();
  for (const ShardInfo& shard : set.shards()) summary.AddShard(shard);
  return summary;
}

using ChunkFunction = std::function<void(uint64_t, const Chunk&)>;

// Reads a whole stream of shards, checked as it goes by.
ShardSetSummary ReadStream(ShardStreamReader* reader, const ChunkFunction& use) {
  RepeatedTokens repeated(reader->header());
  Chunk chunk;
  for (uint64_t number = 0; reader->Next(&chunk); ++number) {
    repeated.Add(chunk);
    use(number, chunk);
  }
  ShardSetSummary summary;
  summary.tokens_repeated = repeated.tokens();
  summary.header = reader->header();
  summary.header.tokenizer.model.clear();
  Sha256 content;
  for (const ShardInfo& shard : reader->shards()) {
    summary.AddShard(shard);
    content.Update(shard.content_sha256);
  }
  summary.content_sha256 = content.Digest();
  return summary;
}

// Calls `begin` with the set's header, then `use` with every chunk.
void ForEachChunk(const std::string& path, const std::function<void(const ShardSetHeader&)>& begin,
                  const ChunkFunction& use) {
  if (!HasRandomAccess(path)) {
    ShardStreamReader reader(OpenSource(path));
    begin(reader.header());
    ReadStream(&reader, use);
    return;
  }
  const std::unique_ptr<ShardSet> set = ShardSet::Open(path);
  begin(set->header());
  for (uint64_t number = 0; number < set->chunks();) {
    ThrowIfStopped();
    uint64_t first_chunk = 0;
    for (const Chunk& chunk : set->ReadFrameOf(number, &first_chunk)) use(number++, chunk);
  }
}

// Gathers small pieces of text into large writes.
class BufferedText {
 public:
  explicit BufferedText(ByteSink* out) : out_(out) {}
  std::string* text() { return &text_; }
  void FlushIfLarge() {
    if (text_.size() >= kOutputBufferBytes) Flush();
  }
  void Flush() {
    out_->Write(AsBytes(text_));
    text_.clear();
  }

 private:
  ByteSink* out_;
  std::string text_;
};

const char* BoolText(bool value) {
  return value ? "true" : "false";
}

void AppendSegmentJson(RecordKind kind, const Segment& segment, std::string* text) {
  *text += "{\"tokens\":" + std::to_string(segment.tokens) +
           ",\"source_bytes\":" + std::to_string(segment.source_bytes);
  *text += ",\"starts_mid_document\":";
  *text += BoolText((segment.flags & kSegmentStartsMidDocument) != 0);
  *text += ",\"ends_mid_document\":";
  *text += BoolText((segment.flags & kSegmentEndsMidDocument) != 0);
  if (segment.next_token != kNoId) *text += ",\"next_token\":" + std::to_string(segment.next_token);
  *text += ",\"padding\":";
  *text += BoolText((segment.flags & kSegmentPadding) != 0);
  if (kind == RecordKind::kSft) {
    *text += ",\"loss\":";
    *text += BoolText((segment.flags & (kSegmentNoLoss | kSegmentPadding)) == 0);
    *text += ",\"continues\":";
    *text += BoolText((segment.flags & kSegmentContinuesPrevious) != 0);
  } else if (kind == RecordKind::kContrastive && (segment.flags & kSegmentPadding) == 0) {
    *text += std::string(",\"role\":\"") + TextRoleName(RoleOf(segment)) + "\",\"instruction\":";
    *text += BoolText((segment.flags & kSegmentNoLoss) != 0);
    *text += ",\"continues\":";
    *text += BoolText((segment.flags & kSegmentContinuesPrevious) != 0);
  }
  *text += "}";
}

}  // namespace

ShardSetSummary InspectShards(const std::string& path) {
  if (HasRandomAccess(path)) return Summarize(*ShardSet::Open(path));
  return VerifyShards(path);
}

ShardSetSummary VerifyShards(const std::string& path) {
  if (!HasRandomAccess(path)) {
    ShardStreamReader reader(OpenSource(path));
    return ReadStream(&reader, [](uint64_t, const Chunk&) {});
  }
  const std::unique_ptr<ShardSet> set = ShardSet::Open(path);
  set->VerifyAll();
  return Summarize(*set);
}

std::vector<std::string> ShardsOutsideTheSet(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {};
  const std::string manifest = path + "/" + kManifestName;
  const std::vector<uint8_t> text = ReadWholeFile(manifest);
  std::set<std::string> named;
  for (const ManifestEntry& entry : DecodeManifest(std::string(AsText(text)), manifest)) {
    named.insert(entry.file_name);
  }
  std::vector<std::string> strays;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("shard-") && name.ends_with(".tws") && !named.contains(name)) strays.push_back(name);
  }
  std::sort(strays.begin(), strays.end());
  return strays;
}

void CatShardsAsJson(const std::string& path, ByteSink* out) {
  BufferedText buffer(out);
  RecordKind kind = RecordKind::kLm;
  ForEachChunk(
      path, [&](const ShardSetHeader& header) { kind = header.record_kind; },
      [&](uint64_t number, const Chunk& chunk) {
        std::string* text = buffer.text();
        *text += "{\"chunk\":" + std::to_string(number) + ",\"segments\":[";
        for (size_t i = 0; i < chunk.segments.size(); ++i) {
          if (i > 0) *text += ',';
          AppendSegmentJson(kind, chunk.segments[i], text);
        }
        *text += "],\"ids\":[";
        for (size_t i = 0; i < chunk.tokens.size(); ++i) {
          if (i > 0) *text += ',';
          *text += std::to_string(chunk.tokens[i]);
        }
        *text += "]}\n";
        buffer.FlushIfLarge();
      });
  buffer.Flush();
}

void ExportAsNanoGpt(const std::string& path, ByteSink* out) {
  std::vector<uint8_t> ids;
  ForEachChunk(
      path,
      [&](const ShardSetHeader& header) {
        const uint32_t vocab_size = header.tokenizer.vocab_size;
        if (vocab_size <= 65536) return;
        throw Error(ErrorCode::kBadInput, path,
                    "has a vocabulary of " + std::to_string(vocab_size) +
                        " ids, and nanoGPT's files hold 16 bits an id");
      },
      [&](uint64_t, const Chunk& chunk) {
        size_t tokens = chunk.tokens.size();
        if ((chunk.segments.back().flags & kSegmentPadding) != 0) tokens -= chunk.segments.back().tokens;
        for (size_t i = 0; i < tokens; ++i) AppendInteger(&ids, static_cast<uint16_t>(chunk.tokens[i]));
        if (ids.size() < kOutputBufferBytes) return;
        out->Write(ids);
        ids.clear();
      });
  out->Write(ids);
}

void CatShardsAsText(const std::string& path, ByteSink* out) {
  BufferedText buffer(out);
  std::unique_ptr<Tokenizer> tokenizer;
  ForEachChunk(
      path, [&](const ShardSetHeader& header) { tokenizer = TokenizerFromIdentity(header.tokenizer); },
      [&](uint64_t, const Chunk& chunk) {
        for (const DocumentPart& part : PartsOf(chunk)) {
          *buffer.text() += tokenizer->Decode(part.tokens) + '\n';
        }
        buffer.FlushIfLarge();
      });
  buffer.Flush();
}

}  // namespace trainwright

#include "lib/packing/shard_repair.h"

#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_set>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/formats/frame_content.h"
#include "lib/formats/provenance.h"
#include "lib/formats/shard_layout.h"
#include "lib/formats/shard_set.h"
#include "lib/formats/tokenizer_identity.h"
#include "lib/formats/zstd_frame.h"
#include "lib/io/atomic_folder.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

// Junk that imitates headers, indices and frames must not cost more than this many times its size.
constexpr uint64_t kMaxWasteRatio = 64;
constexpr uint64_t kMaxWasteBytes = uint64_t{1} << 30;

uint32_t MagicAt(ByteSpan bytes, uint64_t offset) {
  return bytes.size() - offset < 4 ? 0 : ByteParser(bytes.subspan(offset)).Read<uint32_t>();
}

// The first place from `offset` on where one of the magic numbers stands, or the end.
uint64_t FindMagic(ByteSpan bytes, uint64_t offset, std::initializer_list<uint32_t> magics) {
  for (; bytes.size() - offset >= 4; ++offset) {
    uint32_t found;
    std::memcpy(&found, bytes.data() + offset, 4);
    for (const uint32_t magic : magics) {
      if (found == magic) return offset;
    }
  }
  return bytes.size();
}

// Limits the work on what turns out to be wrong.
class Waste {
 public:
  explicit Waste(uint64_t file_bytes) : left_(std::max(kMaxWasteBytes, file_bytes * kMaxWasteRatio)) {}
  [[nodiscard]] bool Spend(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  uint64_t left_;
};

struct FoundHeader {
  ShardHeader header;
  uint64_t size_bytes;
};
struct FoundIndex {
  ShardIndex index;
  uint64_t size_bytes;
};

// What can be told of a file without its frames.
struct Landmarks {
  std::map<uint64_t, FoundHeader> headers;  // by offset
  std::map<uint64_t, FoundIndex> indices;
  std::map<uint64_t, FrameEntry> frames;  // that indices tell of; offsets within the file
};

Landmarks FindLandmarks(ByteSpan bytes, const std::string& name) {
  Landmarks found;
  Waste waste(bytes.size());
  for (uint64_t at = 0; (at = FindMagic(bytes, at, {kHeaderFrameMagic, kIndexFrameMagic})) < bytes.size();
       ++at) {
    const ByteSpan rest = bytes.subspan(at);
    if (rest.size() < kSkippableHeaderBytes) break;
    const uint64_t size = kSkippableHeaderBytes + ByteParser(rest.subspan(4)).Read<uint32_t>();
    if (size > rest.size() || !waste.Spend(size)) continue;
    try {
      if (MagicAt(bytes, at) == kHeaderFrameMagic) {
        if (ShardHeaderBytes(rest.first(std::min<size_t>(rest.size(), kShardHeaderPrefixBytes)), name, at) !=
            size)
          continue;
        found.headers.emplace(at, FoundHeader{DecodeShardHeader(rest.first(size), name, at), size});
        continue;
      }
      ShardIndex index = DecodeIndex(rest.first(size), name, at);
      // What lies before the index has its size even where a byte of it is wrong.
      const uint64_t frames_end = index.frames.empty()
                                      ? index.header_bytes
                                      : index.frames.back().offset + index.frames.back().size_bytes;
      if (frames_end <= at) {
        const uint64_t start = at - frames_end;
        for (const FrameEntry& frame : index.frames) found.frames.emplace(start + frame.offset, frame);
      }
      found.indices.emplace(at, FoundIndex{std::move(index), size});
    } catch (const Error&) {
      continue;
    }
  }
  return found;
}

// Places of damage, as many as people read.
class DamageLog {
 public:
  explicit DamageLog(RepairReport* report) : report_(report) {}
  void Add(const std::string& line) {
    ++report_->damages;
    if (report_->damage_lines.size() < kMaxDamageLines) report_->damage_lines.push_back(line);
  }

 private:
  RepairReport* report_;
};

// The numbers of chunks that were saved, and those between them that were not.
class ChunkLedger {
 public:
  explicit ChunkLedger(DamageLog* damage) : damage_(damage) {}
  uint64_t next() const { return next_; }
  void Save(uint64_t first, uint64_t count) {
    Miss(first);
    next_ = first + count;
    saved_ += count;
  }
  // Whatever is before chunk `end` and was not saved is lost.
  void Miss(uint64_t end) {
    if (end <= next_) return;
    damage_->Add(next_ + 1 == end
                     ? "chunk " + std::to_string(next_) + " is lost"
                     : "chunks " + std::to_string(next_) + " to " + std::to_string(end - 1) + " are lost");
    lost_ += end - next_;
    next_ = end;
  }
  uint64_t lost() const { return lost_; }
  uint64_t saved() const { return saved_; }

 private:
  DamageLog* damage_;
  uint64_t next_ = 0, lost_ = 0, saved_ = 0;
};

class Salvage {
 public:
  Salvage(const RepairOptions& options, RepairReport* report)
      : options_(options), report_(report), damage_(report), ledger_(&damage_) {
    ReadFolder();
    for (const std::string& path : paths_) {
      if (!std::filesystem::exists(path)) {
        damage_.Add(path + ": is missing");
        continue;
      }
      if (std::filesystem::file_size(path) == 0) {
        damage_.Add(path + ": is empty");
        continue;
      }
      MappedFile file(path);
      AddHeadersOf(FindLandmarks(file.bytes(), path));
    }
    if (!header_) {
      throw Error(ErrorCode::kBadInput, options_.input, "nothing can be saved: no header of a shard is whole",
                  "", "without a header nothing says what the frames mean");
    }
    report->tokenizer_lost =
        header_->tokenizer.model.empty() && header_->tokenizer.sha256 != Sha256Digest{} &&
        header_->tokenizer.kind != "bytes" && header_->tokenizer.kind != kUnknownTokenizerKind;
  }

  ShardSetHeader NewHeader() const {
    ShardSetHeader header = *header_;
    header.provenance_json = MakeProvenance("pack", {{"repair", true}},
                                            {{.hash = "", .provenance_json = header_->provenance_json}});
    return header;
  }

  void Run(ShardSetWriter* writer) {
    for (const std::string& path : paths_) {
      if (!std::filesystem::exists(path) || std::filesystem::file_size(path) == 0) continue;
      MappedFile file(path);
      Walk(file.bytes(), path, writer);
    }
    if (manifest_totals_) {
      report_->end_known = true;
      ledger_.Miss(manifest_totals_->chunks);
    } else if (end_) {
      report_->end_known = true;
      ledger_.Miss(*end_);
    }
    report_->chunks_lost = ledger_.lost();
    CountDocuments();
    if (ledger_.saved() == 0) {
      throw Error(ErrorCode::kBadInput, options_.input, "nothing can be saved: no frame is whole",
                  report_->damage_lines.empty() ? "" : report_->damage_lines[0]);
    }
  }

  uint64_t tokens_dropped() const { return tokens_dropped_; }

 private:
  void ReadFolder() {
    if (!std::filesystem::is_directory(options_.input)) {
      paths_ = {options_.input};
      return;
    }
    const std::string folder = WithoutLastSlash(options_.input);
    const std::string manifest = folder + "/" + kManifestName;
    if (std::filesystem::exists(manifest)) {
      try {
        const std::vector<uint8_t> text = ReadWholeFile(manifest);
        ShardTotals totals;
        for (const ManifestEntry& entry : DecodeManifest(std::string(AsText(text)), manifest)) {
          paths_.push_back(folder + "/" + entry.file_name);
          totals += entry.totals;
        }
        manifest_totals_ = totals;
        return;
      } catch (const Error& error) {
        damage_.Add(error.what());
        paths_.clear();
      }
    } else {
      damage_.Add(folder + ": has no " + kManifestName);
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("shard-") && name.ends_with(".tws")) paths_.push_back(entry.path());
    }
    // shard-99999 comes before shard-100000.
    std::sort(paths_.begin(), paths_.end(), [](const std::string& a, const std::string& b) {
      return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
    if (paths_.empty()) {
      throw Error(ErrorCode::kBadInput, folder, "nothing can be saved: it holds no shards");
    }
  }

  void AddHeadersOf(const Landmarks& landmarks) {
    for (const auto& [offset, found] : landmarks.headers) {
      if (!header_) {
        header_ = found.header.set;
      } else if (header_->tokenizer.model.empty() && SameSet(*header_, found.header.set)) {
        header_->tokenizer.model = found.header.set.tokenizer.model;
      }
    }
  }

  void Walk(ByteSpan bytes, const std::string& name, ShardSetWriter* writer) {
    const Landmarks landmarks = FindLandmarks(bytes, name);
    Waste waste(bytes.size());
    std::optional<uint64_t> unread;  // where the bytes begin that make no sense
    std::string reason;
    const auto good_again = [&](uint64_t at) {
      if (!unread) return;
      damage_.Add(name + ": bytes " + std::to_string(*unread) + " to " + std::to_string(at - 1) +
                  " cannot be read: " + reason);
      unread.reset();
    };
    for (uint64_t at = 0; at < bytes.size();) {
      ThrowIfStopped();
      if (const auto header = landmarks.headers.find(at); header != landmarks.headers.end()) {
        good_again(at);
        if (!SameSet(*header_, header->second.header.set)) {
          damage_.Add(name + ": byte " + std::to_string(at) + ": a shard of another set begins here");
          return;
        }
        at += header->second.size_bytes;
        continue;
      }
      if (const auto index = landmarks.indices.find(at); index != landmarks.indices.end()) {
        good_again(at);
        AddIndex(index->second.index);
        at += index->second.size_bytes;
        const uint64_t table_bytes = SeekTableBytes(index->second.index.frames.size());
        const std::vector<uint8_t> table = EncodeSeekTable(index->second.index);
        if (bytes.size() - at >= table_bytes &&
            std::equal(table.begin(), table.end(), bytes.begin() + static_cast<ptrdiff_t>(at))) {
          at += table_bytes;
        }
        continue;
      }
      std::string why = "neither a header, a frame nor an index is here";
      if (MagicAt(bytes, at) == kZstdFrameMagic) {
        if (const uint64_t size = SaveFrame(bytes, at, name, landmarks, writer, &waste, &why)) {
          good_again(at);
          at += size;
          continue;
        }
      }
      if (!unread) {
        unread = at;
        reason = why;
      }
      at = NextPlace(bytes, at + 1, landmarks);
    }
    good_again(bytes.size());
  }

  static uint64_t NextPlace(ByteSpan bytes, uint64_t at, const Landmarks& landmarks) {
    uint64_t next = FindMagic(bytes, at, {kZstdFrameMagic});
    const auto earlier = [&](const auto& places) {
      const auto place = places.lower_bound(at);
      if (place != places.end()) next = std::min<uint64_t>(next, place->first);
    };
    earlier(landmarks.headers);
    earlier(landmarks.indices);
    return next;
  }

  // \returns the size of the frame at `at`, or 0 and why it is not saved
  uint64_t SaveFrame(ByteSpan bytes, uint64_t at, const std::string& name, const Landmarks& landmarks,
                     ShardSetWriter* writer, Waste* waste, std::string* why) {
    const ByteSpan rest = bytes.subspan(at);
    const size_t size = ZSTD_findFrameCompressedSize(rest.data(), rest.size());
    if (ZSTD_isError(size)) {
      *why = "a frame is cut or corrupt";
      return 0;
    }
    const ByteSpan frame = rest.first(size);
    const auto entry = landmarks.frames.find(at);
    if (entry != landmarks.frames.end() && entry->second.hash != Xxh3(frame)) {
      *why = "a frame is corrupt: its hash does not match";
      return 0;
    }
    const uint64_t content_bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
    std::vector<Chunk> chunks;
    uint64_t first_chunk = 0;
    try {
      const std::vector<uint8_t> content = DecompressZstdFrame(frame, kMaxFrameContentBytes, name, at);
      ByteParser parser(content);
      parser.ReadBytes(8);
      first_chunk = parser.Read<uint64_t>();
      chunks = DecodeFrameContent(*header_, content, first_chunk, name, at);
    } catch (const Error& error) {
      *why = error.problem();
      if (content_bytes <= kMaxFrameContentBytes && !waste->Spend(content_bytes)) {
        throw Error(ErrorCode::kBadInput, name, "is too damaged to look through");
      }
      return 0;
    }
    if (first_chunk < ledger_.next() || first_chunk > UINT64_MAX / 2) {
      damage_.Add(name + ": byte " + std::to_string(at) + ": chunk " + std::to_string(first_chunk) +
                  " was there before, or is out of order: this frame is left out");
      other_documents_ = other_documents_ || seen_frames_.count(Xxh3(frame)) == 0;
      return size;
    }
    seen_frames_.insert(Xxh3(frame));
    ledger_.Save(first_chunk, chunks.size());
    for (Chunk& chunk : chunks) writer->Add(std::move(chunk), 0);
    return size;
  }

  void AddIndex(const ShardIndex& index) {
    if (!indexed_shards_.insert(index.shard_number).second) return;
    indexed_documents_ += index.totals.documents;
    tokens_dropped_ += index.totals.tokens_dropped;
    const uint64_t end = index.first_chunk + index.totals.chunks;
    ledger_.Miss(end);
    if (index.last) {
      end_ = end;
      last_shard_ = index.shard_number;
    }
  }

  void CountDocuments() {
    if (other_documents_) return;  // of another set, which nothing here counts
    if (manifest_totals_) {
      documents_expected_ = manifest_totals_->documents;
    } else if (end_ && indexed_shards_.size() == uint64_t{last_shard_} + 1) {
      documents_expected_ = indexed_documents_;
    }
  }

 public:
  // Of the whole input, where something counts them.
  const std::optional<uint64_t>& documents_expected() const { return documents_expected_; }
  // Whether a frame was left out that is no copy of one that was saved.
  bool other_documents() const { return other_documents_; }

 private:
  const RepairOptions& options_;
  RepairReport* report_;
  DamageLog damage_;
  ChunkLedger ledger_;
  std::vector<std::string> paths_;
  std::optional<ShardTotals> manifest_totals_;
  std::optional<ShardSetHeader> header_;
  std::set<uint32_t> indexed_shards_;
  uint64_t indexed_documents_ = 0, tokens_dropped_ = 0;
  std::optional<uint64_t> end_;  // the number of chunks, from the index of the last shard
  uint32_t last_shard_ = 0;
  std::optional<uint64_t> documents_expected_;
  std::unordered_set<uint64_t> seen_frames_;  // hashes
  bool other_documents_ = false;
};

// The output must not replace the input, nor go into the folder that holds it as a set.
void CheckOutput(const RepairOptions& options) {
  RefuseToReplaceInputs(options.output, {options.input});
  std::error_code error;
  const bool beside = IsFolderPath(options.output) &&
                      std::filesystem::equivalent(FolderOf(options.input), options.output, error);
  if (!beside) return;
  throw Error(ErrorCode::kUsage, options.output, "holds what is to be repaired", "",
              "the repaired set goes elsewhere: choose another -o");
}

}  // namespace

namespace {

/// \param open is called once it is known that something can be saved
RepairReport Repair(const RepairOptions& options, const std::function<ShardOutput*()>& open) {
  RepairReport report;
  Salvage salvage(options, &report);
  const ShardSetHeader header = salvage.NewHeader();
  ShardOutput* const output = open();
  ShardSetWriterOptions writer_options = options.writer;
  writer_options.remap = false;  // the header has the codes, if any
  ShardSetWriter writer(header, writer_options, output);
  salvage.Run(&writer);
  report.set = writer.Finish(salvage.tokens_dropped());
  if (salvage.documents_expected()) {
    const uint64_t expected = *salvage.documents_expected();
    report.documents_lost = expected - std::min(expected, report.set.totals.documents);
  } else if (report.end_known && report.chunks_lost == 0 && !salvage.other_documents()) {
    report.documents_lost = 0;
  }
  output->Seal(writer.header());
  return report;
}

}  // namespace

RepairReport RepairShardsInto(const RepairOptions& options, ShardOutput* output) {
  return Repair(options, [&] { return output; });
}

RepairReport RepairShards(const RepairOptions& options) {
  if (!std::filesystem::exists(options.input)) throw SystemError(options.input, "open", ENOENT);
  if (!std::filesystem::is_regular_file(options.input) && !std::filesystem::is_directory(options.input)) {
    throw Error(ErrorCode::kUsage, options.input, "is neither a file nor a folder of shards");
  }
  CheckOutput(options);
  std::unique_ptr<ShardOutput> output;
  return Repair(options, [&] {
    output = OpenShardOutput(options.output, options.allow_terminal);
    return output.get();
  });
}

}  // namespace trainwright

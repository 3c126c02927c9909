#include "lib/loading/spooled_shard_set.h"

#include <atomic>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/formats/shard.h"
#include "lib/io/stall_watch.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {
namespace {

constexpr char kRoomHint[] = "choose a folder with room by --cache-dir, or write the shards to a file first";

struct SpoolProgress {
  std::atomic<uint64_t> chunks = 0;  // that came whole so far
};

/// Passes a source through and keeps a copy of every byte.
class CopyingSource final : public ByteSource {
 public:
  CopyingSource(std::unique_ptr<ByteSource> source, UnnamedFile* copy, const SpoolProgress* progress,
                double stall_warning_s)
      : source_(std::move(source)), copy_(copy), watch_(stall_warning_s, [this, progress] {
          return source_->name() + ", byte " + std::to_string(bytes_.load()) + " (chunk " +
                 std::to_string(progress->chunks.load()) + "): is its producer still running?";
        }) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t count = source_->Read(out, size);
    copy_->Append({out, count});
    bytes_ += count;
    watch_.Progress();
    return count;
  }
  const std::string& name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  UnnamedFile* copy_;
  std::atomic<uint64_t> bytes_ = 0;
  StallWatch watch_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<ShardSet> SpoolShardSet(std::unique_ptr<ByteSource> source, const std::string& folder,
                                        double stall_warning_s) {
  UnnamedFile file(folder, kRoomHint);
  SpoolProgress progress;
  ShardStreamReader reader(
      std::make_unique<CopyingSource>(std::move(source), &file, &progress, stall_warning_s));
  Chunk chunk;
  while (reader.Next(&chunk)) ++progress.chunks;
  LogDebug("kept " + FormatBytes(file.size_bytes()) + " of shards in an unnamed file in " + folder);
  return ShardSet::Open(file.path());
}

}  // namespace trainwright

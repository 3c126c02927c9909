#include "lib/data/spooled_shard_set.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/units.h"
#include "lib/formats/shard.h"
#include "lib/io/unnamed_file.h"

namespace trainwright {
namespace {

constexpr char kRoomHint[] = "choose a folder with room by --cache-dir, or write the shards to a file first";

/// Passes a source through and keeps a copy of every byte.
class CopyingSource final : public ByteSource {
 public:
  CopyingSource(std::unique_ptr<ByteSource> source, UnnamedFile* copy)
      : source_(std::move(source)), copy_(copy) {}
  size_t Read(uint8_t* out, size_t size) override {
    const size_t count = source_->Read(out, size);
    copy_->Append({out, count});
    return count;
  }
  const std::string& name() const override { return source_->name(); }

 private:
  std::unique_ptr<ByteSource> source_;
  UnnamedFile* copy_;
};

}  // namespace

std::unique_ptr<ShardSet> SpoolShardSet(std::unique_ptr<ByteSource> source, const std::string& folder) {
  UnnamedFile file(folder, kRoomHint);
  ShardStreamReader reader(std::make_unique<CopyingSource>(std::move(source), &file));
  Chunk chunk;
  while (reader.Next(&chunk)) {
  }
  LogDebug("kept " + FormatBytes(file.size_bytes()) + " of shards in an unnamed file in " + folder);
  return ShardSet::Open(file.path());
}

}  // namespace trainwright

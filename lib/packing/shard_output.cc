#include "lib/packing/shard_output.h"

#include <filesystem>

#include "lib/base/error.h"
#include "lib/io/byte_sink.h"
#include "lib/packing/shard_folder_writer.h"

namespace trainwright {
namespace {

class StreamOutput final : public ShardOutput {
 public:
  StreamOutput(const std::string& path, bool allow_terminal)
      : sink_(OpenSink(path, /*binary=*/true, allow_terminal)) {}
  ByteSink* OpenShard() override { return sink_.get(); }
  void CommitShard(const ShardWriter&) override {}
  void Seal(const ShardSetHeader&) override { sink_->Commit(); }

 private:
  std::unique_ptr<ByteSink> sink_;
};

class FolderOutput final : public ShardOutput {
 public:
  explicit FolderOutput(const std::string& folder) : writer_(folder) {}
  void ContinueSealedSet(const std::string& provenance_json) override {
    writer_.ContinueSealedSet(provenance_json);
  }
  ByteSink* OpenShard() override { return writer_.OpenShard(); }
  void CommitShard(const ShardWriter& finished) override { writer_.CommitShard(finished); }
  void Seal(const ShardSetHeader& header) override { writer_.Seal(header); }

 private:
  ShardFolderWriter writer_;
};

}  // namespace

void ShardOutput::ContinueSealedSet(const std::string&) {
  throw Error(ErrorCode::kInternal, "shards", "only a folder's set goes on");
}

std::unique_ptr<ShardOutput> OpenShardOutput(const std::string& path, bool allow_terminal) {
  if (IsFolderPath(path)) return std::make_unique<FolderOutput>(path);
  return std::make_unique<StreamOutput>(path, allow_terminal);
}

}  // namespace trainwright

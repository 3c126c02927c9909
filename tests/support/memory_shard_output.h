/// Where shards go that a test reads at once.
#pragma once

#include "lib/packing/shard_output.h"

namespace trainwright::test {

class MemoryShardOutput final : public ShardOutput {
 public:
  ByteSink* OpenShard() override { return &sink_; }
  void CommitShard(const ShardWriter&) override {}
  void Seal(const ShardSetHeader&) override { sealed_ = true; }
  bool sealed() const { return sealed_; }
  ByteSpan bytes() const { return sink_.bytes(); }

 private:
  MemorySink sink_;
  bool sealed_ = false;
};

}  // namespace trainwright::test

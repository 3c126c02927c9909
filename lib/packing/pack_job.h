/// The whole of `pack`: token streams -> packer -> frames compressed in parallel -> shards in a folder, a
/// file or on standard output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/packing/foreign_documents.h"
#include "lib/packing/packer.h"
#include "lib/packing/shard_set_summary.h"
#include "lib/report/progress.h"

namespace trainwright {

struct PackJobOptions {
  /// Token streams, plain or compressed, or folders of them, in this order; "-" is standard input. All of one
  /// tokenizer.
  std::vector<std::string> inputs = {"-"};
  ImportOptions import;  ///< how to read inputs that are no token streams
  /// A folder (ends in '/', or exists), a file, or "-" for standard output. The bytes of a file or of
  /// standard output are those of the folder's shards, one after the other.
  std::string output = "-";
  bool allow_terminal = false;
  PackerOptions packer;
  /// Of `packer.overflow`. When nobody chose, the kind of records does: kSplit for lm, kError for sft and
  /// contrastive, since half a conversation teaches something else than the whole.
  bool overflow_chosen = true;
  /// Leaves out the inputs that cannot be read to their ends (FindSoundInputs), each with a warning.
  bool skip_corrupt = false;
  int level = 3;  ///< of zstd, 1..19
  /// Stores ids as codes by frequency (IdCodes), as ShardSetWriterOptions says.
  bool remap = false;
  /// Puts the shards after the sealed set of the folder `output`, which has the same tokenizer and settings.
  /// Its codes are those of the set.
  bool append = false;
  int threads = 1;  ///< >= 1; the bytes do not depend on it
  uint64_t shard_size_bytes = uint64_t{256}
                              << 20;  ///< a shard's frames stay below it unless a single one exceeds it
};

struct PackReport {
  ShardSetSummary set;
  PackerCounts input;
  uint64_t chunks_before = 0;  ///< of `set`, those that were there before
  uint64_t files = 0;          ///< read, or streams from elsewhere; a folder counts as its files
  uint64_t files_skipped = 0;  ///< by `skip_corrupt`
};

/// Packs. Conversations (sft) are only ever cut under a chosen kSplit. Readers see the result whole or not at
/// all: a folder's former set, or a former file, stays as it is when anything fails; standard output then
/// lacks its trailer. Memory: the packer's window, about threads + 2 frames in each of the stages, and
/// 64 MiB with `remap`.
/// \throws Error{kBadInput} on a damaged or cut stream, streams of different tokenizers, input without a
/// token, a
///         document that OverflowPolicy::kError refuses, `append` to a set of other settings; Error{kUsage}
///         when the folder is in use; Error{kIo}; Error{kInterrupted, kTerminated} once a stop signal arrived
PackReport RunPack(const PackJobOptions& options, ProgressMode progress);

}  // namespace trainwright

/// Looking into finished shards: what `pack --info`, `--verify` and `--cat` do.
///
/// Every path may be a sealed folder, a file, or "-" for standard input (a pipe is read whole, in one pass).
#pragma once

#include <string>
#include <vector>

#include "lib/io/byte_sink.h"
#include "lib/packing/shard_set_summary.h"

namespace trainwright {

/// What the indices say about a folder or file; of a pipe, what was read. Of windows that overlap the chunks
/// are read, too, for no index counts what they repeat.
/// \throws Error{kBadInput} when it is no whole set of shards, Error{kIo}
ShardSetSummary InspectShards(const std::string& path);

/// Checks every byte.
/// \throws Error{kBadInput} naming shard, frame and offset of the first that is wrong, Error{kIo}
ShardSetSummary VerifyShards(const std::string& path);

/// Names of the shard files of a sealed folder that its manifest does not name, sorted: no reader looks at
/// them. Empty for anything but a folder.
std::vector<std::string> ShardsOutsideTheSet(const std::string& path);

/// Writes the chunks as JSON Lines, one object a chunk in stored order:
///   {"chunk":0,"segments":[{"tokens":5,"source_bytes":21,"starts_mid_document":false,
///    "ends_mid_document":true,"next_token":17,"padding":false}],"ids":[...]}
/// `next_token` is there only when the segment ends mid-document. Of sft records segments have `loss`
/// (whether training predicts their tokens) and `continues` (the same document as the segment before)
/// besides.
void CatShardsAsJson(const std::string& path, ByteSink* out);

/// Writes the ids of all chunks without padding, 16 bits each, as nanoGPT reads them.
/// \throws Error{kBadInput} when the vocabulary has more than 65,536 ids
void ExportAsNanoGpt(const std::string& path, ByteSink* out);

/// Writes the text of every document, or part of one, in stored order, a newline after each.
/// \throws Error{kBadInput} when the set does not carry its tokenizer
void CatShardsAsText(const std::string& path, ByteSink* out);

}  // namespace trainwright

/// What a system found for each query, and the run files of TREC that hold it.
///
/// A line of a run file is "query Q0 document rank score tag". As in trec_eval scores are single precision
/// and they alone, with the documents' names among equals, make the ranking; the rank column is not read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/io/byte_sink.h"

namespace trainwright {

struct RankedDocument {
  std::string id;
  float score = 0;
  bool operator==(const RankedDocument&) const = default;
};

/// The best document first; of those with equal scores the one whose name is the later by its bytes.
using Ranking = std::vector<RankedDocument>;
/// Rankings by query.
using RetrievalRun = std::map<std::string, Ranking>;

/// Puts documents in the order of a Ranking.
void SortRanking(Ranking* ranking);

/// gzip and zstd content is decompressed.
/// \param path "-" is standard input
/// \param sha256 of the bytes as they are stored, in hexadecimal; null: not wanted
/// \throws Error{kBadInput} naming file and line: other columns, a score that is no finite number; naming the
///     query that has a document twice; without any line. Error{kIo}
RetrievalRun ReadRun(const std::string& path, std::string* sha256 = nullptr);

/// \throws Error{kBadInput} on an id that a run file cannot hold: with white space or a zero byte, or none at
///     all
void CheckRunId(const std::string& id);

/// Writes a run file: queries by rising names, scores so that they read back as the same numbers. Does not
/// commit.
/// \param tag names the system; without white space
/// \throws Error{kBadInput} as CheckRunId; Error{kIo}
void WriteRun(const RetrievalRun& run, const std::string& tag, ByteSink* sink);

}  // namespace trainwright

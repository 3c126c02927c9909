/// What the records of a run of several ranks say about each of them: its machine, and the most memory it
/// took.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainwright {

/// A value. Each is empty while it is not known.
struct RankRecords {
  std::vector<std::string> hosts;         ///< names of their machines, by rank
  std::vector<int64_t> max_memory_bytes;  ///< peaks of their processes, by rank
  std::vector<int64_t> max_device_bytes;  ///< peaks on their GPUs, by rank; empty on CPUs, too
  /// That they compute on: GPUs, or machines, one that ranks share counted once; in no record. 0: not known.
  int64_t devices = 0;

  /// "rank 3"; where ranks run on several machines, "rank 3 on node2".
  std::string NameOf(int64_t rank) const;
  /// "peak memory of a rank 412.00 MiB to 520.00 MiB (rank 3 on node2)", the largest named; empty where it is
  /// not known.
  std::string DescribeMemory() const;
};

/// Adds what is known to a record, or to a summary.
void EncodeRanks(const RankRecords& ranks, nlohmann::ordered_json* fields);
/// \param record of a process that ended; what it lacks, or has of another type, is not known
RankRecords DecodeRanks(const nlohmann::ordered_json& record);

}  // namespace trainwright

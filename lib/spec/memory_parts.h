/// Where the memory of a training run is, by what holds it: what a run will take and what it holds now are
/// reported by the same parts.
///
/// Each part is counted by what holds it, and the peak beside them by the system (on a GPU, by torch's
/// allocator), so that the difference of the two is what nobody accounts for: what was held for a moment
/// only, within a step or a save. The parts may sum to somewhat more than the peak where the model is small:
/// a part counts whole once there is a buffer for it, though pages of it that were never written are not
/// resident, and what the process had before the model counts on where it was freed since.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "lib/spec/memory_lever.h"

namespace trainwright {

/// Bytes.
struct MemoryParts {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t compute_copy = 0;     ///< trained weights in reduced precision
  int64_t frozen = 0;           ///< weights that are not trained
  int64_t activations = 0;      ///< what the passes keep, and their temporaries
  int64_t logits = 0;           ///< a slice of logits and its neighbours
  int64_t representations = 0;  ///< vectors of a step's texts, their gradients, a tile of scores
  int64_t exchange = 0;         ///< sums of leaves that wait, and gradients under way between ranks
  int64_t attention = 0;        ///< scratch of a GPU's attention kernel
  int64_t graphs = 0;           ///< that a GPU repeats passes by, with their temporaries; dry runs know it
  int64_t snapshot = 0;         ///< the copy that checkpoints are written from in the background
  int64_t offloaded = 0;        ///< on a GPU: activations and gradients on its host
  int64_t loader = 0;           ///< samples in use and ready
  /// On a CPU packed operands of GEMMs, and what the allocator keeps of what was freed; on a GPU scratch of
  /// GEMMs.
  int64_t products = 0;
  int64_t process = 0;  ///< code, libraries and the data set's tables, before a model was made
  /// What lies where the model computes; the rest is always the host's.
  int64_t of_model() const {
    return parameters + gradients + optimizer + compute_copy + frozen + activations + logits +
           representations + exchange + attention + graphs + products;
  }
  int64_t of_host() const { return snapshot + offloaded + loader + process; }
  int64_t total() const { return of_model() + of_host(); }
  bool operator==(const MemoryParts&) const = default;
};

/// What the allocator keeps, as a part: of the bytes that its heap holds free no more than the other parts
/// leave of the peak. It counts as free what it has given back to the system (malloc_trim), too, which is not
/// resident.
/// \param others with no `products`
int64_t ResidentFreeHeap(const MemoryParts& others, int64_t free_heap_bytes, int64_t peak_bytes);

/// Names of parts together, as the records of a run have them.
enum class MemoryGroup {
  kParams,  ///< weights: masters, copies in reduced precision, frozen ones
  kGrads,   ///< with what exchanging them takes
  kOptimizer,
  kActivations,  ///< with a slice of logits, a step's vectors, attention's scratch and graphs
  kLoader,
  kSnapshot,
  kRuntime,  ///< code, mapped files, what the process had before a model, and what a GPU offloads
  kHeap      ///< on a CPU what the allocator keeps, packed operands of GEMMs first; on a GPU scratch of GEMMs
};

/// What is said of a part.
struct MemoryPart {
  const char* name;   ///< in the report of a dry run
  const char* label;  ///< the same for people
  MemoryGroup group;
  int64_t MemoryParts::*size_bytes;
  std::vector<MemoryLever> levers;  ///< that make it smaller
  bool of_host = false;             ///< wherever the model computes
};
/// All parts, in the order of MemoryParts.
std::span<const MemoryPart> AllMemoryParts();

/// The part that takes most among those that levers change; of equal ones the first.
const MemoryPart& LargestPart(const MemoryParts& memory);

/// Sizes by the parts' names.
nlohmann::ordered_json EncodeMemoryParts(const MemoryParts& memory);
/// Sizes by the names of groups, their total and the measured peak, for metrics.jsonl.
nlohmann::ordered_json EncodeMemory(const MemoryParts& memory, int64_t peak_bytes);
/// The same for people, largest first, in a line.
std::string FormatMemory(const MemoryParts& memory, int64_t peak_bytes);

}  // namespace trainwright

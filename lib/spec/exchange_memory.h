/// The memory of what ranks exchange that own the blocks of flat buffers round-robin (ShardLayout): lib/dist
/// takes it, lib/scaling estimates it. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/spec/range_plan.h"

namespace trainwright {

/// Who gets the sums of all ranks' gradients.
enum class SumsOf {
  kAll,    ///< each rank all of them
  kOwners  ///< each rank those of its blocks
};

/// Parts that are under way at once: of gradients (TreeAllReduce), and of new values (ValueExchange).
inline constexpr int64_t kGradientPartsUnderWay = 4, kValuePartsUnderWay = 2;

/// Elements of the buffers that each part under way has.
struct ExchangeBuffers {
  int64_t packed = 0, received = 0;
};

/// Of gradients: those of all owners one after the other; of what comes, all ranks' for this one, of which
/// the owner that has most needs most.
ExchangeBuffers GradientBuffers(const std::vector<PartSize>& parts, int64_t ranks, SumsOf sums_of);
/// Of new values: this rank's, and from each rank as many.
ExchangeBuffers ValueBuffers(const std::vector<PartSize>& parts, int64_t ranks);

/// What TreeAllReduce takes.
/// \param parts fp32, that travel one after the other; may be none
int64_t GradientExchangeBytes(const std::vector<PartSize>& parts, int64_t ranks, SumsOf sums_of);
/// What ValueExchange takes for values of one type.
int64_t ValueExchangeBytes(const std::vector<PartSize>& parts, int64_t ranks, int64_t element_bytes);

}  // namespace trainwright

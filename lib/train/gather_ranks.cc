#include "lib/train/gather_ranks.h"

#include <cstdint>

#include "lib/base/host.h"
#include "lib/device/device_memory.h"
#include "lib/dist/gather.h"
#include "lib/io/process_memory.h"

namespace trainwright {

std::vector<std::string> GatherHosts(World* world) {
  if (world->size() == 1) return {};
  return GatherBytes(world, ReadHostFacts().name);
}

RankRecords GatherRanks(World* world, c10::Device device) {
  RankRecords ranks = {.hosts = GatherHosts(world)};
  if (world->size() == 1) return ranks;
  for (const std::vector<int64_t>& peaks :
       GatherWords(world, {PeakResidentBytes(), PeakDeviceBytes(device)})) {
    ranks.max_memory_bytes.push_back(peaks[0]);
    if (!device.is_cpu()) ranks.max_device_bytes.push_back(peaks[1]);
  }
  return ranks;
}

}  // namespace trainwright

#include "lib/train/gather_ranks.h"

#include <cstdint>
#include <vector>

#include "lib/base/host.h"
#include "lib/device/device.h"
#include "lib/device/device_memory.h"
#include "lib/dist/gather.h"
#include "lib/dist/rank_threads.h"
#include "lib/io/process_memory.h"

namespace trainwright {

RankRecords GatherPlaces(World* world, c10::Device device) {
  if (world->size() == 1) return {};
  RankRecords ranks = {.hosts = GatherBytes(world, ReadHostFacts().name)};
  ranks.devices = ThingsOfRanks(world, device.is_cpu() ? MachineIdentity() : GpuIdentity(device));
  return ranks;
}

RankRecords GatherRanks(World* world, c10::Device device) {
  RankRecords ranks = GatherPlaces(world, device);
  if (world->size() == 1) return ranks;
  for (const std::vector<int64_t>& peaks :
       GatherWords(world, {PeakResidentBytes(), PeakDeviceBytes(device)})) {
    ranks.max_memory_bytes.push_back(peaks[0]);
    if (!device.is_cpu()) ranks.max_device_bytes.push_back(peaks[1]);
  }
  return ranks;
}

}  // namespace trainwright

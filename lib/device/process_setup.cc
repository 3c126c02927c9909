#include "lib/device/process_setup.h"

#include "lib/base/log.h"
#include "lib/device/determinism.h"
#include "lib/device/device.h"
#include "lib/device/device_memory.h"
#include "lib/device/memory_cap.h"
#include "lib/device/memory_error.h"

namespace trainwright {

void SetUpBackend(const ProcessRequest& request) {
  PrepareGpuChoices(request.gpu);  // the allocator of GPU memory reads them while it is loaded, and not again
  LoadBackendFor(request.device);
}

ProcessSetup SetUpProcess(const ProcessRequest& request) {
  SetUpBackend(request);
  ProcessSetup setup;
  setup.threads =
      WithMemoryErrors([] { return MemoryUser{.doing = "starting threads", .hint = "lower --threads"}; },
                       [&] { return SetComputeThreads(request.threads); });
  setup.device = ChooseDevice(request.device);
  if (setup.device.is_cpu()) {
    for (const std::string& sentence : ChoicesWithoutGpu(request.gpu)) LogCommonWarning(sentence);
  } else {
    ApplyGpuChoices(request.gpu);
  }
  if (request.mem_fraction) {
    setup.memory_cap_bytes = WithMemoryErrors(
        [] { return MemoryUser{.doing = "limiting memory"}; },
        [&] {
          return setup.device.is_cuda() ? CapDeviceMemory(setup.device, *request.mem_fraction)
                                        : CapHostMemory(*request.mem_fraction);
        });
  }
  if (request.keep_room_for_libraries) KeepRoomForLibraries();
  return setup;
}

}  // namespace trainwright

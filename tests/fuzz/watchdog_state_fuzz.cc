// What a checkpoint keeps of the loss watchdog: what is accepted is kept as it is, and can be gone on with.
#include <nlohmann/json.hpp>

#include "lib/run/watchdog.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  const auto state = nlohmann::json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  if (state.is_discarded()) return 0;
  fuzz::MayRefuse([&] {
    LossWatchdog watchdog(1.5);
    watchdog.set_state(state, "input");
    LossWatchdog again(1.5);
    again.set_state(watchdog.state(), "again");
    TRAINWRIGHT_CHECK(again.state() == watchdog.state());
    for (int64_t step = 1; step <= 3; ++step) watchdog.Observe(step, 9.0);
  });
  return 0;
}

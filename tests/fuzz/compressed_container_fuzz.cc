// Containers of compressed checkpoints: as they come, and with the hash of the header made right again.
#include "tests/fuzz/compressed_input.h"
#include "tests/fuzz/repair.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  fuzz::ReadCompressed({data, size});
  fuzz::ReadCompressed(fuzz::RepairCompressedContainer({data, size}));
  return 0;
}

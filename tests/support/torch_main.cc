// The main of tests that compute with torch: like those of the engines, it asks for reproducible results
// first, and loads the CUDA backend before a test makes torch look for a GPU.
#include "lib/device/determinism.h"
#include "lib/device/device.h"
#include "tests/support/run_cases.h"

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  trainwright::LoadBackendFor("auto");
  return trainwright::test::RunCases(argc, argv);
}

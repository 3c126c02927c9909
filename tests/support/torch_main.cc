// The main of tests that compute with torch: like those of the engines, it asks for reproducible results
// first.
#include "lib/device/determinism.h"
#include "tests/support/run_cases.h"

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  return trainwright::test::RunCases(argc, argv);
}

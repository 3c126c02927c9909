// The main of tests without torch.
#include "tests/support/run_cases.h"

int main(int argc, char** argv) {
  return trainwright::test::RunCases(argc, argv);
}

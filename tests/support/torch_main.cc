// The main of tests that compute with torch: like those of the engines, it asks for reproducible results first.
#include <gtest/gtest.h>

#include "lib/device/determinism.h"

int main(int argc, char** argv) {
  trainwright::PrepareDeterminism();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

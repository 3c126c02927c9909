#include "lib/scaling/link.h"

#include <gtest/gtest.h>

#include "lib/base/error.h"

namespace trainwright {
namespace {

TEST(ParseBandwidthTest, TakesBytesAndBitsASecond) {
  EXPECT_EQ(ParseBandwidth("50GB", "--bandwidth"), 50e9);
  EXPECT_EQ(ParseBandwidth("1MiB", "--bandwidth"), 1048576);
  EXPECT_EQ(ParseBandwidth("400Gbit", "--bandwidth"), 50e9);
  EXPECT_EQ(ParseBandwidth("100mbit", "--bandwidth"), 12.5e6);
}

TEST(ParseBandwidthTest, RefusesWhatIsNoRateAboveZero) {
  for (const char* text :
       {"", "0", "0Gbit", "-1GB", "-1Gbit", "fast", "Gbit", "nan", "infGbit", "1 parsec"}) {
    EXPECT_THROW(ParseBandwidth(text, "--bandwidth"), Error) << text;
  }
}

TEST(ParseLatencyTest, TakesTimesWithTheirUnits) {
  EXPECT_DOUBLE_EQ(ParseLatency("20us", "--latency"), 2e-5);
  EXPECT_DOUBLE_EQ(ParseLatency("0.5ms", "--latency"), 5e-4);
  EXPECT_EQ(ParseLatency("2s", "--latency"), 2);
  EXPECT_EQ(ParseLatency("0us", "--latency"), 0);
}

TEST(ParseLatencyTest, RefusesNumbersWithoutUnitAndNegativeTimes) {
  for (const char* text : {"", "20", "-1us", "us", "nan us", "infs", "1h"}) {
    EXPECT_THROW(ParseLatency(text, "--latency"), Error) << text;
  }
}

}  // namespace
}  // namespace trainwright

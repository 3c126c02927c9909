#include "lib/spec/device_choices.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(DeviceChoicesTest, ReadBackAsTheyWereWritten) {
  const DeviceChoices all = {.head_slice_logits = int64_t{50304} * 65536,
                             .attention = "cudnn",
                             .attention_times = {{"cudnn", 0.00125}, {"flash", 0.0015}}};
  for (const DeviceChoices& choices : {DeviceChoices{}, DeviceChoices{.head_slice_logits = 1 << 25}, all}) {
    const std::string text = EncodeDeviceChoices(choices).dump();
    EXPECT_EQ(DecodeDeviceChoices(nlohmann::ordered_json::parse(text)), choices) << text;
  }
  EXPECT_EQ(EncodeDeviceChoices({}).dump(), "{}");
}

TEST(DeviceChoicesTest, TellWhatWasMeasured) {
  EXPECT_EQ(FormatAttentionTimes({.attention_times = {{"cudnn", 0.00125}, {"flash", 0.0015}}}),
            "cudnn 1.250 ms, flash 1.500 ms");
}

TEST(DeviceChoicesTest, RefuseAnotherType) {
  EXPECT_THROW(DecodeDeviceChoices({{"head_slice_logits", "many"}}), nlohmann::json::exception);
}

}  // namespace
}  // namespace trainwright

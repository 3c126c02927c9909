#include "lib/spec/device_choices.h"

#include <gtest/gtest.h>

namespace trainwright {
namespace {

TEST(DeviceChoicesTest, ReadBackAsTheyWereWritten) {
  const DeviceChoices all = {
      .head_slice_logits = int64_t{50304} * 65536,
      .attention = "cudnn",
      .attention_times = {{"cudnn", 0.00125}, {"flash", 0.0015}},
      .products = {{"linear_with_bias fp32 8x16x24", 0}, {"linear_gradients bf16 8x8x8", 3}}};
  for (const DeviceChoices& choices :
       {DeviceChoices{}, DeviceChoices{.head_slice_logits = 1 << 25}, DeviceChoices{.products = all.products},
        DeviceChoices{.cpu_gemms = CpuGemms{CpuGemms::Fp32::kBlocks, CpuGemms::Bf16::kWidened}}, all}) {
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
  EXPECT_THROW(DecodeDeviceChoices({{"cpu_kernels", 1}}), nlohmann::json::exception);
  EXPECT_THROW(DecodeDeviceChoices({{"cpu_kernels", "fp32=quick"}}), nlohmann::json::exception);
  EXPECT_THROW(DecodeDeviceChoices(nlohmann::ordered_json::parse(R"({"gemm_kernels": [1]})")),
               nlohmann::json::exception);
  for (const char* number : {"-1", "\"1\"", "1.5", "null"}) {
    const auto json =
        nlohmann::ordered_json::parse(std::string(R"({"gemm_kernels": {"a": )") + number + "}}");
    EXPECT_THROW(DecodeDeviceChoices(json), nlohmann::json::exception) << number;
  }
}

}  // namespace
}  // namespace trainwright

#include "lib/model/generation_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lib/spec/model_config.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

ModelConfig ConfigWithIds() {
  ModelConfig config;
  config.max_positions = 64;
  config.bos_id = 1;
  config.eos_id = 2;
  config.more_eos_ids = {5};
  return config;
}

TEST(GenerationConfigTest, AllOfTheModelBeforeStaysButItsIds) {
  const auto before = nlohmann::ordered_json::parse(
      R"({"top_k": 20, "eos_token_id": 7, "temperature": 0.7, "pad_token_id": 3, "own": [1.0, null]})");
  EXPECT_EQ(nlohmann::ordered_json::parse(EncodeGenerationConfig(ConfigWithIds(), before)).dump(),
            R"({"top_k":20,"eos_token_id":[2,5],"temperature":0.7,"pad_token_id":3,"own":[1.0,null],)"
            R"("bos_token_id":1})");
}

TEST(GenerationConfigTest, WithoutAModelBeforeItIsGreedyAndAsLongAsTheContext) {
  EXPECT_EQ(nlohmann::ordered_json::parse(EncodeGenerationConfig(ConfigWithIds(), nullptr)).dump(),
            R"({"_from_model_config":true,"bos_token_id":1,"do_sample":false,"eos_token_id":[2,5],)"
            R"("max_length":64})");
}

TEST(GenerationConfigTest, WhatIsReadIsWrittenAgainWithTheSameBytes) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(ReadGenerationConfig(folder.path()).is_null());
  const std::string text = EncodeGenerationConfig(ConfigWithIds(), {{"temperature", 0.7}, {"top_k", 20}});
  test::WriteFile(folder.path("generation_config.json"), text);
  EXPECT_EQ(EncodeGenerationConfig(ConfigWithIds(), ReadGenerationConfig(folder.path())), text);
}

}  // namespace
}  // namespace trainwright

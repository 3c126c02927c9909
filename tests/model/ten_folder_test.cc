// What stands beside the weights of a model that transformers does not have.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "lib/model/hf_folder.h"
#include "lib/nn/linear/lora.h"
#include "tests/model/families.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/bytes_identity.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

class TenFolderTest : public testing::Test {
 protected:
  static std::unique_ptr<LanguageModel> Load(const std::string& folder) {
    return LoadHfModel(test::Families(), folder, Precision::kFp32, test::kCpu);
  }
  TenFolderTest() : model_(Load(test::Fixture("model/fixtures/ten_windows"))) {
    WriteHfFolder(folder_.path(), *model_, test::BytesIdentity());
  }

  const std::unique_ptr<LanguageModel> model_;
  const test::TemporaryFolder folder_;
};

TEST_F(TenFolderTest, HoldsTheCodeThatTransformersRuns) {
  for (const std::string name : {"configuration_ten.py", "modeling_ten.py"}) {
    EXPECT_EQ(test::ReadFile(folder_.path(name)),
              test::ReadFile(test::Fixture("../lib/model/python/" + name)))
        << name;
  }
}

TEST_F(TenFolderTest, ConfigNamesClassesOfTheCode) {
  const auto config = nlohmann::json::parse(test::ReadFile(folder_.path("config.json")));
  const auto& named = config.at("auto_map");
  for (const char* needed : {"AutoConfig", "AutoModel", "AutoModelForCausalLM"}) {
    const auto name = named.at(needed).get<std::string>();
    const size_t dot = name.find('.');
    ASSERT_NE(dot, std::string::npos) << name;
    const std::string code = test::ReadFile(folder_.path(name.substr(0, dot) + ".py"));
    EXPECT_NE(code.find("class " + name.substr(dot + 1) + "("), std::string::npos) << name;
  }
}

// peft gives adapters to no other modules.
TEST_F(TenFolderTest, WhatMayHaveAnAdapterIsALinearLayerOfTheCode) {
  const std::string code = test::ReadFile(folder_.path("modeling_ten.py")), ending = ".weight";
  for (const size_t index : LayerMatrices(model_->parameters())) {
    const std::string& tensor = model_->parameters().all()[index].name;
    ASSERT_TRUE(tensor.ends_with(ending)) << tensor;
    const std::string path = tensor.substr(0, tensor.size() - ending.size());
    const std::regex assignment("self\\." + path.substr(path.rfind('.') + 1) + " = ([\\w.]+)\\(");
    std::smatch made;
    ASSERT_TRUE(std::regex_search(code, made, assignment)) << path;
    const std::string by = made[1];
    const bool is_linear = by == "nn.Linear" || by == "linear" || by == "into_residual" ||
                           code.find("class " + by + "(nn.Linear):") != std::string::npos;
    EXPECT_TRUE(is_linear) << path << " is made by " << by;
  }
}

TEST_F(TenFolderTest, WithoutTheCodeItIsTheSameModel) {
  for (const char* name : {"configuration_ten.py", "modeling_ten.py"}) {
    ASSERT_TRUE(std::filesystem::remove(folder_.path(name)));
  }
  const auto again = Load(folder_.path());
  EXPECT_EQ(again->config(), model_->config());
  const ModelInput input = test::RandomInput(model_->config(), {9, 1, 14});
  EXPECT_TRUE(at::equal(again->Logits(input), model_->Logits(input)));
}

TEST_F(TenFolderTest, DecaysThatAreNotFiniteAreRefusedByName) {
  for (const std::string ending : {".log_decay", ".frequency"}) {
    const auto damaged = Load(folder_.path());
    std::string name;
    for (const Parameter& parameter : damaged->parameters().all()) {
      if (parameter.name.ends_with(ending)) name = parameter.name;
    }
    ASSERT_NE(name, "");
    damaged->parameters().Find(name)->value[0].fill_(std::numeric_limits<float>::infinity());
    const test::TemporaryFolder folder;
    WriteHfFolder(folder.path(), *damaged, test::BytesIdentity());
    const std::string message = test::MessageOf([&] { Load(folder.path()); });
    EXPECT_NE(message.find("not finite (tensor " + name + ")"), std::string::npos) << message;
    EXPECT_NE(message.find(folder.path("model.safetensors")), std::string::npos) << message;
  }
}

TEST_F(TenFolderTest, OfAModelThatTransformersHasThereIsNone) {
  const test::TemporaryFolder folder;
  const auto llama = MakeModel(test::Families(), test::SmallLlama(), Precision::kFp32, test::kCpu, 3);
  WriteHfFolder(folder.path(), *llama, test::BytesIdentity());
  for (const std::string& name : test::NamesIn(folder.path())) EXPECT_FALSE(name.ends_with(".py")) << name;
}

}  // namespace
}  // namespace trainwright

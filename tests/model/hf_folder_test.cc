#include "lib/model/hf_folder.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lib/formats/safetensors.h"
#include "lib/io/byte_source.h"
#include "lib/io/process_memory.h"
#include "lib/model/weights_io.h"
#include "lib/spec/config_json.h"
#include "lib/spec/fine_tuning.h"
#include "lib/spec/lora_options.h"
#include "lib/tok/tokenizer.h"
#include "lib/tok/tokenizer_folder.h"
#include "tests/model/families.h"
#include "tests/support/bytes_identity.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

using test::kCpu;

std::unique_ptr<LanguageModel> SmallModel(bool tied) {
  ModelConfig config = test::Families().descriptions().PresetConfig("llama-1m", 258);
  config.preset.clear();
  config.num_layers = 1;
  config.tie_embeddings = tied;
  config.bos_id = 256;
  config.eos_id = 257;
  return MakeModel(test::Families(), config, Precision::kFp32, kCpu, 3);
}

std::unique_ptr<LanguageModel> SmallGpt2(bool bias) {
  ModelConfig config = test::Families().descriptions().PresetConfig("nanogpt-10m", 258);
  config.preset.clear();
  config.num_layers = 1;
  config.biases = bias ? Biases::All() : Biases();
  return MakeModel(test::Families(), config, Precision::kFp32, kCpu, 3);
}

/// Copies a fixture's model files into a folder, to be damaged there.
void CopyFixture(const std::string& name, const test::TemporaryFolder& folder) {
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy(test::Fixture("model/fixtures/" + name + "/" + file), folder.path(file));
  }
}

/// Rewrites a weights file after `change` edited its tensors.
void Rewrite(const std::string& path, const std::function<void(std::vector<SafetensorsTensor>*)>& change) {
  const std::vector<uint8_t> bytes = ReadWholeFile(path);
  const SafetensorsHeader header = ParseSafetensors(bytes, path);
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    tensors.push_back({entry.name, entry.dtype, entry.shape,
                       ByteSpan(bytes).subspan(header.data_offset + entry.begin, entry.end - entry.begin)});
  }
  change(&tensors);
  AtomicFileSink sink(path);
  WriteSafetensors(&sink, tensors, {});
  sink.Commit();
}

TEST(HfFolderTest, WithoutAKnownTokenizerTheFolderHoldsNone) {
  TokenizerIdentity tokenizer = test::BytesIdentity();
  tokenizer.kind = "unknown";
  const test::TemporaryFolder folder;
  WriteHfFolder(folder.path(), *SmallModel(false), tokenizer);
  EXPECT_EQ(TokenizerOfFolder(folder.path()), "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/tokenizer_config.json"));
}

TEST(HfFolderTest, ATokenizerThatPutsNoSpaceBeforeTextsComesBackAndSaysSo) {
  const test::TemporaryFolder start, folder;
  std::filesystem::copy(test::Fixture("../examples/data/mistral-v1.model"), start.path("tokenizer.model"));
  test::WriteFile(start.path("tokenizer_config.json"),
                  R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false})");
  const TokenizerIdentity tokenizer = LoadTokenizer(start.path())->identity();
  WriteHfFolder(folder.path(), *SmallModel(false), tokenizer);
  const auto config = nlohmann::json::parse(test::ReadFile(folder.path("tokenizer_config.json")));
  EXPECT_EQ(config.at("add_prefix_space"), false);
  EXPECT_EQ(LoadTokenizer(folder.path())->identity(), tokenizer);
}

TEST(HfFolderTest, AModelComesBackAsItWasWritten) {
  for (const auto& model : {SmallModel(false), SmallModel(true), SmallGpt2(false), SmallGpt2(true)}) {
    const test::TemporaryFolder folder;
    WriteHfFolder(folder.path(), *model, test::BytesIdentity());
    const auto loaded = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    ModelConfig config = loaded->config();
    EXPECT_EQ(config, model->config());
    EXPECT_TRUE(at::equal(loaded->parameters().values(), model->parameters().values()));
    EXPECT_EQ(TokenizerOfFolder(folder.path()), "bytes");
  }
}

TEST(HfFolderTest, SameModelGivesTheSameBytes) {
  const test::TemporaryFolder first, second;
  const auto model = SmallModel(true);
  WriteHfFolder(first.path(), *model, test::BytesIdentity());
  WriteHfFolder(second.path(), *model, test::BytesIdentity());
  for (const auto& entry : std::filesystem::directory_iterator(first.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(test::ReadFile(first.path(name)), test::ReadFile(second.path(name))) << name;
  }
}

TEST(HfFolderTest, ShortTypesAreReadExactly) {
  const test::TemporaryFolder folder;
  CopyFixture("untied", folder);
  const std::vector<uint8_t> halves = {0x00, 0x3C, 0x00, 0xC0};  // fp16 1, -2
  const std::vector<uint8_t> brains = {0x80, 0x3F, 0x00, 0xC0};  // bf16 1, -2
  for (const auto& [type, pair] : {std::pair{"F16", halves}, std::pair{"BF16", brains}}) {
    std::vector<uint8_t> data;
    for (int i = 0; i < 12; ++i) data.insert(data.end(), pair.begin(), pair.end());
    Rewrite(folder.path("model.safetensors"), [&, type = type](std::vector<SafetensorsTensor>* tensors) {
      for (SafetensorsTensor& tensor : *tensors) {
        if (tensor.name != "model.norm.weight") continue;
        tensor.dtype = type;
        tensor.data = data;
      }
    });
    const auto model = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    const at::Tensor norm = model->parameters().Find("model.norm.weight")->value;
    EXPECT_EQ(norm[0].item<float>(), 1.0f) << type;
    EXPECT_EQ(norm[23].item<float>(), -2.0f) << type;
  }
}

TEST(HfFolderTest, AWrittenGpt2HasTransformersTensors) {
  // The fixture is transformers' own file: the same names, shapes and bytes, the Conv1D matrices as [in,
  // out].
  const test::TemporaryFolder folder;
  const std::string fixture = test::Fixture("model/fixtures/gpt2_tanh");
  WriteHfFolder(folder.path(), *LoadHfModel(test::Families(), fixture, Precision::kFp32, kCpu),
                test::BytesIdentity());
  const auto tensors = [](const std::string& path) {
    const std::vector<uint8_t> bytes = ReadWholeFile(path);
    const SafetensorsHeader header = ParseSafetensors(bytes, path);
    std::map<std::string, std::pair<std::vector<int64_t>, std::vector<uint8_t>>> content;
    for (const SafetensorsEntry& entry : header.entries) {
      const auto* data = bytes.data() + header.data_offset;
      content[entry.name] = {entry.shape, {data + entry.begin, data + entry.end}};
    }
    return content;
  };
  EXPECT_EQ(tensors(folder.path("model.safetensors")), tensors(fixture + "/model.safetensors"));
}

TEST(HfFolderTest, ABiasFreeGpt2IsWrittenWithZeroBiasesAndRefusesOthers) {
  const test::TemporaryFolder folder;
  WriteHfFolder(folder.path(), *SmallGpt2(false), test::BytesIdentity());
  const std::string path = folder.path("model.safetensors"), name = "transformer.h.0.mlp.c_fc.bias";
  const std::vector<uint8_t> bytes = ReadWholeFile(path);
  ASSERT_NE(ParseSafetensors(bytes, path).Find(name), nullptr);
  std::vector<uint8_t> ones(4 * 1536, 1);
  Rewrite(path, [&](std::vector<SafetensorsTensor>* tensors) {
    for (SafetensorsTensor& tensor : *tensors) {
      if (tensor.name == name) tensor.data = ones;
    }
  });
  EXPECT_THAT(test::MessageOf([&] { LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu); }),
              testing::HasSubstr(name));
}

TEST(HfFolderTest, AGpt2BodyAsPublishedIsRead) {
  // Names without their prefix, and the causal masks stored as weights.
  const test::TemporaryFolder folder;
  CopyFixture("gpt2_tanh", folder);
  const auto whole = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  const std::vector<uint8_t> mask(4 * 128 * 128);
  Rewrite(folder.path("model.safetensors"), [&](std::vector<SafetensorsTensor>* tensors) {
    for (SafetensorsTensor& tensor : *tensors) tensor.name = tensor.name.substr(strlen("transformer."));
    tensors->push_back({"h.0.attn.bias", "F32", {1, 1, 128, 128}, mask});
  });
  const auto body = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_TRUE(at::equal(body->parameters().values(), whole->parameters().values()));
}

TEST(HfFolderTest, ShardedWeightsAreReadByTheirIndex) {
  const test::TemporaryFolder folder;
  CopyFixture("untied", folder);
  const auto whole = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  const std::string a = folder.path("model-00001-of-00002.safetensors"),
                    b = folder.path("model-00002-of-00002.safetensors");
  std::filesystem::copy(folder.path("model.safetensors"), a);
  std::filesystem::rename(folder.path("model.safetensors"), b);
  nlohmann::json index;
  Rewrite(a, [&](auto* tensors) {
    tensors->erase(tensors->begin(), tensors->begin() + 5);
    for (const auto& tensor : *tensors) index["weight_map"][tensor.name] = "model-00001-of-00002.safetensors";
  });
  Rewrite(b, [&](auto* tensors) {
    tensors->resize(5);
    for (const auto& tensor : *tensors) index["weight_map"][tensor.name] = "model-00002-of-00002.safetensors";
  });
  test::WriteFile(folder.path("model.safetensors.index.json"), index.dump());
  const auto parts = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_TRUE(at::equal(parts->parameters().values(), whole->parameters().values()));
}

TEST(HfFolderTest, MissingUnexpectedAndMisshapenTensorsAreRefusedByName) {
  const auto message_after = [](const std::function<void(std::vector<SafetensorsTensor>*)>& change) {
    const test::TemporaryFolder folder;
    CopyFixture("untied", folder);
    Rewrite(folder.path("model.safetensors"), change);
    return test::MessageOf([&] { LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu); });
  };
  using Tensors = std::vector<SafetensorsTensor>;
  const auto erase_norm = [](Tensors* tensors) {
    std::erase_if(*tensors,
                  [](const SafetensorsTensor& tensor) { return tensor.name == "model.norm.weight"; });
  };
  const auto rename_norm = [](Tensors* tensors) {
    for (SafetensorsTensor& tensor : *tensors) {
      if (tensor.name == "model.norm.weight") tensor.name = "model.norm.bias";
    }
  };
  const auto reshape_norm = [](Tensors* tensors) {
    for (SafetensorsTensor& tensor : *tensors) {
      if (tensor.name == "model.norm.weight") tensor.shape = {2, 12};
    }
  };
  EXPECT_THAT(message_after(erase_norm), testing::HasSubstr("model.norm.weight"));
  EXPECT_THAT(message_after(rename_norm), testing::HasSubstr("model.norm.bias"));
  EXPECT_THAT(message_after(reshape_norm), testing::HasSubstr("[2, 12]"));
}

/// A folder of two shards and their index, to be damaged.
class ShardedFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    CopyFixture("untied", folder_);
    std::filesystem::copy(folder_.path("model.safetensors"), folder_.path(kFirst));
    std::filesystem::rename(folder_.path("model.safetensors"), folder_.path(kSecond));
    const auto list = [&](const std::vector<SafetensorsTensor>& tensors, const char* file) {
      for (const SafetensorsTensor& tensor : tensors) index_["weight_map"][tensor.name] = file;
    };
    Rewrite(folder_.path(kFirst), [&](auto* tensors) {
      tensors->erase(tensors->begin(), tensors->begin() + 5);
      list(*tensors, kFirst);
    });
    Rewrite(folder_.path(kSecond), [&](auto* tensors) {
      tensors->resize(5);
      list(*tensors, kSecond);
      last_of_second_ = tensors->back().name;
    });
    WriteIndex();
  }
  void WriteIndex() { test::WriteFile(folder_.path("model.safetensors.index.json"), index_.dump()); }
  /// The message of a load that must be refused as bad input with a hint.
  std::string Refusal() {
    try {
      LoadHfModel(test::Families(), folder_.path(), Precision::kFp32, kCpu);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadInput) << error.what();
      EXPECT_NE(error.hint(), "") << error.what();
      return error.what();
    }
    return "";
  }

  static constexpr char kFirst[] = "model-00001-of-00002.safetensors",
                        kSecond[] = "model-00002-of-00002.safetensors";
  test::TemporaryFolder folder_;
  nlohmann::json index_;
  std::string last_of_second_;
};

TEST_F(ShardedFolderTest, AShardThatIsMissingIsNamed) {
  std::filesystem::remove(folder_.path(kSecond));
  EXPECT_THAT(Refusal(), testing::HasSubstr(kSecond));
}

TEST_F(ShardedFolderTest, AShardThatIsCutIsNamed) {
  const auto size = std::filesystem::file_size(folder_.path(kSecond));
  for (const auto kept : {uintmax_t{0}, uintmax_t{7}, uintmax_t{100}, size - 1}) {
    std::filesystem::resize_file(folder_.path(kSecond), kept);
    EXPECT_THAT(Refusal(), testing::HasSubstr(kSecond)) << kept;
  }
}

TEST_F(ShardedFolderTest, AShardThatIsCutIsNamedBeforeAnyIsLoaded) {
  EXPECT_EQ(test::MessageOf([&] { RequireWholeWeightFiles(folder_.path()); }), "");
  const auto size = std::filesystem::file_size(folder_.path(kSecond));
  for (const auto kept : {uintmax_t{0}, uintmax_t{7}, uintmax_t{100}, size - 1}) {
    std::filesystem::resize_file(folder_.path(kSecond), kept);
    EXPECT_THAT(test::MessageOf([&] { RequireWholeWeightFiles(folder_.path()); }),
                testing::HasSubstr(kSecond))
        << kept;
  }
}

TEST_F(ShardedFolderTest, AnIndexThatLeavesTheFolderIsRefused) {
  for (const char* name : {"../model.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    index_["weight_map"]["model.norm.weight"] = name;
    WriteIndex();
    EXPECT_THAT(Refusal(), testing::HasSubstr("model.norm.weight")) << name;
  }
}

TEST_F(ShardedFolderTest, ATensorThatIsNotWhereTheIndexSaysIsNamed) {
  index_["weight_map"][last_of_second_] = kFirst;
  WriteIndex();
  EXPECT_THAT(Refusal(), testing::AllOf(testing::HasSubstr(kFirst), testing::HasSubstr(last_of_second_)));
}

TEST_F(ShardedFolderTest, ATensorInTwoFilesIsRefused) {
  std::filesystem::copy(test::Fixture("model/fixtures/untied/model.safetensors"), folder_.path(kFirst),
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Refusal(), testing::HasSubstr("too"));
}

TEST(HfFolderTest, LoadingTakesNotMuchMoreThanTheModelAndItsLargestShard) {
  // Files with holes: they take no room on the disk, but memory when they are read.
  const test::TemporaryFolder folder;
  ModelConfig config = test::Families().descriptions().PresetConfig("llama-1m", 12288);
  config.preset.clear();
  config.hidden_size = 512;
  config.num_layers = 1;
  config.intermediate_size = 4096;
  config.tie_embeddings = false;
  test::WriteFile(folder.path("config.json"), EncodeConfigJson(config));
  const auto model = MakeModel(test::Families(), config, Precision::kFp32, kCpu, std::nullopt);
  std::map<std::string, std::vector<const Parameter*>> shards;
  for (const Parameter& parameter : model->parameters().all()) {
    const bool of_layer = parameter.name.find("layers") != std::string::npos;
    shards[of_layer ? "layer.safetensors" : parameter.name + ".safetensors"].push_back(&parameter);
  }
  nlohmann::json index;
  int64_t largest = 0;
  for (const auto& [name, parameters] : shards) {
    nlohmann::json header;
    int64_t end = 0;
    for (const Parameter* parameter : parameters) {
      const int64_t begin = end;
      end += 4 * parameter->size;
      header[parameter->name] = {
          {"dtype", "F32"}, {"shape", parameter->shape}, {"data_offsets", {begin, end}}};
      index["weight_map"][parameter->name] = name;
    }
    const std::vector<uint8_t> head = JoinSafetensorsHead(header.dump());
    test::WriteFile(folder.path(name), std::string(head.begin(), head.end()));
    std::filesystem::resize_file(folder.path(name), head.size() + static_cast<size_t>(end));
    largest = std::max(largest, end);
  }
  test::WriteFile(folder.path("model.safetensors.index.json"), index.dump());
  test::WriteFile("/proc/self/clear_refs", "5");  // the peak starts anew
  LoadWeights(folder.path(), &model->parameters());
  ASSERT_GT(largest, 20 << 20);
  EXPECT_LT(static_cast<double>(PeakResidentBytes() - ResidentBytes()), 1.2 * static_cast<double>(largest));
}

TEST(HfFolderTest, AModelWithAHeadOfItsOwnMustHaveOneInItsFiles) {
  const test::TemporaryFolder folder;
  CopyFixture("untied", folder);
  Rewrite(folder.path("model.safetensors"), [](std::vector<SafetensorsTensor>* tensors) {
    std::erase_if(*tensors, [](const SafetensorsTensor& tensor) { return tensor.name == "lm_head.weight"; });
  });
  EXPECT_THAT(test::MessageOf([&] { LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu); }),
              testing::HasSubstr("lm_head.weight"));
}

/// The message of a load of a fixture from which `erase` was taken.
std::string MessageWithout(const char* fixture, const std::vector<std::string>& erase) {
  const test::TemporaryFolder folder;
  CopyFixture(fixture, folder);
  Rewrite(folder.path("model.safetensors"), [&](std::vector<SafetensorsTensor>* tensors) {
    std::erase_if(*tensors, [&](const SafetensorsTensor& tensor) {
      return std::find(erase.begin(), erase.end(), tensor.name) != erase.end();
    });
  });
  return test::MessageOf([&] { LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu); });
}

TEST(HfFolderTest, ABodyWithoutAHeadIsToldFromDamagedWeights) {
  const auto tells_body = testing::HasSubstr("is a body without a head");
  EXPECT_THAT(MessageWithout("untied", {"lm_head.weight"}), tells_body);
  EXPECT_THAT(MessageWithout("neox", {"embed_out.weight"}), tells_body);
  const std::string damaged = MessageWithout("untied", {"lm_head.weight", "model.norm.weight"});
  EXPECT_THAT(damaged, testing::HasSubstr("model.norm.weight"));
  EXPECT_THAT(damaged, testing::Not(tells_body));
}

TEST(HfFolderTest, ABodyWithoutAHeadIsReadAndWrittenWhereNothingReadsLogits) {
  const EmbeddingTuning vectors = {.needs_head = false};
  for (const auto& [fixture, prefix, head] : {std::tuple{"untied", "model.", "lm_head.weight"},
                                              {"mistral", "model.", "lm_head.weight"},
                                              {"neox", "gpt_neox.", "embed_out.weight"},
                                              {"ten_lru", "ten.", "lm_head.weight"}}) {
    const test::TemporaryFolder folder, written;
    CopyFixture(fixture, folder);
    const auto whole = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    Rewrite(folder.path("model.safetensors"),
            [&, prefix = prefix, head = head](std::vector<SafetensorsTensor>* tensors) {
              std::erase_if(*tensors, [&](const SafetensorsTensor& tensor) { return tensor.name == head; });
              for (SafetensorsTensor& tensor : *tensors) tensor.name = tensor.name.substr(strlen(prefix));
            });
    const auto body = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu, {}, vectors);
    WriteHfFolder(written.path(), *body, test::BytesIdentity());
    const auto again = LoadHfModel(test::Families(), written.path(), Precision::kFp32, kCpu, {}, vectors);
    for (const Parameter& parameter : whole->parameters().all()) {
      EXPECT_EQ(body->parameters().Find(parameter.name)->absent, parameter.name == head);
      if (parameter.name == head) continue;
      for (const LanguageModel* read : {body.get(), again.get()}) {
        EXPECT_TRUE(at::equal(read->parameters().Find(parameter.name)->value, parameter.value))
            << fixture << " " << parameter.name;
      }
    }
    const std::string path = written.path("model.safetensors");
    EXPECT_EQ(ParseSafetensors(ReadWholeFile(path), path).Find(head), nullptr) << fixture;
  }
}

TEST(HfFolderTest, AHeadThatNothingReadsIsReadAndWrittenWhereItIsThere) {
  const test::TemporaryFolder folder;
  const std::string fixture = test::Fixture("model/fixtures/untied");
  const auto model = LoadHfModel(test::Families(), fixture, Precision::kFp32, kCpu, {},
                                 EmbeddingTuning{.needs_head = false});
  WriteHfFolder(folder.path(), *model, test::BytesIdentity());
  const auto before = LoadHfModel(test::Families(), fixture, Precision::kFp32, kCpu);
  const auto after = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
  EXPECT_TRUE(at::equal(before->parameters().values(), after->parameters().values()));
}

TEST(HfFolderTest, ATiedModelRefusesAnotherHead) {
  for (const auto& [fixture, head] :
       {std::pair{"tied", "lm_head.weight"}, {"neox_sequential", "embed_out.weight"}}) {
    const test::TemporaryFolder folder;
    CopyFixture(fixture, folder);
    std::vector<uint8_t> changed;
    Rewrite(folder.path("model.safetensors"), [&, head = head](std::vector<SafetensorsTensor>* tensors) {
      SafetensorsTensor copy = tensors->front();
      for (const SafetensorsTensor& tensor : *tensors) {
        if (tensor.name.find("embed") != std::string::npos) copy = tensor;
      }
      changed.assign(copy.data.begin(), copy.data.end());
      changed.back() ^= 1;
      copy.data = changed;
      copy.name = head;
      tensors->push_back(copy);
    });
    EXPECT_THAT(
        test::MessageOf([&] { LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu); }),
        testing::AllOf(testing::HasSubstr(head), testing::HasSubstr("tie_word_embeddings")));
  }
}

TEST(HfFolderTest, ATiedTensorIsReadFromItsSecondNameWhereItHasNoOther) {
  for (const auto& [fixture, head] :
       {std::pair{"tied", "lm_head.weight"}, {"neox_sequential", "embed_out.weight"}}) {
    const test::TemporaryFolder folder;
    CopyFixture(fixture, folder);
    const auto whole = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    Rewrite(folder.path("model.safetensors"), [head = head](std::vector<SafetensorsTensor>* tensors) {
      for (SafetensorsTensor& tensor : *tensors) {
        if (tensor.name.find("embed") != std::string::npos) tensor.name = head;
      }
    });
    const auto model = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    EXPECT_TRUE(at::equal(model->parameters().values(), whole->parameters().values())) << fixture;
  }
}

TEST(HfFolderTest, ABodySavedAloneIsReadWhenTheHeadIsTied) {
  for (const auto& [fixture, prefix] : {std::pair{"tied", "model."}, {"neox_sequential", "gpt_neox."}}) {
    const test::TemporaryFolder folder;
    CopyFixture(fixture, folder);
    const auto whole = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    Rewrite(folder.path("model.safetensors"), [&, prefix = prefix](std::vector<SafetensorsTensor>* tensors) {
      for (SafetensorsTensor& tensor : *tensors) tensor.name = tensor.name.substr(strlen(prefix));
    });
    const auto body = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    EXPECT_TRUE(at::equal(body->parameters().values(), whole->parameters().values())) << fixture;
  }
}

TEST(HfFolderTest, WeightsOfAWrappedModelAreThoseOfThePlainOne) {
  const auto in_layers = [](std::string name) {
    const size_t at = name.find("layers.0.");
    return at == std::string::npos ? name : name.insert(at + strlen("layers.0."), "_orig_mod.");
  };
  const std::function<std::string(std::string)> wrappers[] = {
      [](const std::string& name) { return "_orig_mod." + name; },
      [](const std::string& name) { return "module." + name; },
      [](const std::string& name) { return "module._orig_mod." + name; }, in_layers};
  for (const auto& wrapped : wrappers) {
    const test::TemporaryFolder folder;
    CopyFixture("tied", folder);
    const auto plain = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    Rewrite(folder.path("model.safetensors"), [&](std::vector<SafetensorsTensor>* tensors) {
      for (SafetensorsTensor& tensor : *tensors) tensor.name = wrapped(tensor.name);
    });
    const auto read = LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu);
    EXPECT_TRUE(at::equal(read->parameters().values(), plain->parameters().values())) << wrapped("x");
  }
}

/// A tied model whose file has the head, too.
void CopyTiedFixtureWithItsHead(const test::TemporaryFolder& folder) {
  CopyFixture("tied", folder);
  Rewrite(folder.path("model.safetensors"), [](std::vector<SafetensorsTensor>* tensors) {
    SafetensorsTensor copy = tensors->front();
    for (const SafetensorsTensor& tensor : *tensors) {
      if (tensor.name == "model.embed_tokens.weight") copy = tensor;
    }
    copy.name = "lm_head.weight";
    tensors->push_back(copy);
  });
}

TEST(HfFolderTest, ATiedModelIgnoresAStoredCopyOfTheHead) {
  const test::TemporaryFolder folder;
  CopyTiedFixtureWithItsHead(folder);
  EXPECT_EQ(test::MessageOf([&] { LoadHfModel(test::Families(), folder.path(), Precision::kFp32, kCpu); }),
            "");
}

// A frozen table is rounded where it lies in fp32, and its copy in the file is not.
TEST(HfFolderTest, ATiedModelIgnoresAStoredCopyOfATableThatIsFrozenAndRounded) {
  const test::TemporaryFolder folder;
  CopyTiedFixtureWithItsHead(folder);
  const ModelConfig config = ReadHfConfig(test::Families().descriptions(), folder.path());
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    const FineTuning tuning{LoraOptions{.rank = 2, .alpha = 4}};
    const auto model =
        MakeModel(test::Families(), config, precision, kCpu, std::nullopt, AttentionBackend::kAuto, tuning);
    EXPECT_EQ(test::MessageOf([&] { LoadWeights(folder.path(), &model->parameters()); }), "")
        << PrecisionName(precision);
  }
}

}  // namespace
}  // namespace trainwright

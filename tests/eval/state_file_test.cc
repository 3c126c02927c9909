// The file with the state of a sequence.
#include "lib/eval/state_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/formats/safetensors.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

const ContextIdentity kMadeBy = {"0123", "fp32"};

at::Tensor Numbers(double first, int64_t count) {
  return at::arange(count, at::kFloat).add(first);
}

/// Two layers, of which one has a multi-scale block of two windows.
RecurrentState SomeState() {
  RecurrentState state;
  state.layers.resize(2);
  for (size_t l = 0; l < 2; ++l) {
    const double base = 100.0 * static_cast<double>(l);
    state.layers[l].scan_z = Numbers(base, 6);
    state.layers[l].conv_3z = Numbers(base + 0.5, 18).view({3, 6});
  }
  for (int64_t i = 0; i < 2; ++i) {
    WindowState window;
    window.scan_z = Numbers(-7.0, 2);
    window.sum_d = Numbers(0.25, 5);
    window.seen = i;
    state.layers[1].windows.push_back(window);
  }
  state.hidden_d = Numbers(3.0, 5);
  state.tokens = 123456789;
  state.init = "compat";
  return state;
}

std::vector<uint8_t> FileOf(const RecurrentState& state) {
  MemorySink sink;
  WriteState(&sink, kMadeBy, state);
  return sink.bytes();
}

/// The file of SomeState as an older version wrote it, after a change to its tensors and metadata: without
/// the digest each change is refused, or taken, for its own sake.
using Edit = std::function<void(std::vector<SafetensorsTensor>*, std::map<std::string, std::string>*)>;
std::vector<uint8_t> Edited(const Edit& edit) {
  const std::vector<uint8_t> file = FileOf(SomeState());
  const SafetensorsHeader header = ParseSafetensors(file, "good");
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& entry : header.entries) {
    const ByteSpan data = ByteSpan(file).subspan(header.data_offset + entry.begin, entry.end - entry.begin);
    tensors.push_back({entry.name, entry.dtype, entry.shape, data});
  }
  std::map<std::string, std::string> metadata = header.metadata;
  metadata.erase("sha256");
  edit(&tensors, &metadata);
  MemorySink sink;
  WriteSafetensors(&sink, tensors, metadata);
  return sink.bytes();
}

/// Empty: it is taken.
std::string RefusalOfState(const std::vector<uint8_t>& file) {
  const std::string message = test::MessageOf([&] { DecodeState(file, "talk.state", kMadeBy); });
  const auto code = test::CodeOf([&] { DecodeState(file, "talk.state", kMadeBy); });
  EXPECT_EQ(code.value_or(ErrorCode::kBadInput), ErrorCode::kBadInput);
  return message;
}

TEST(StateFileTest, WhatIsWrittenIsReadBitForBit) {
  const RecurrentState written = SomeState();
  const RecurrentState read = DecodeState(FileOf(written), "talk.state", kMadeBy);
  std::map<std::string, at::Tensor> tensors;
  ForEachTensor(written, [&](const std::string& name, const at::Tensor& tensor) { tensors[name] = tensor; });
  size_t compared = 0;
  ForEachTensor(read, [&](const std::string& name, const at::Tensor& tensor) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    EXPECT_TRUE(at::equal(tensor, tensors[name])) << name;
    ++compared;
  });
  EXPECT_EQ(compared, tensors.size());
  ASSERT_EQ(read.layers.size(), 2u);
  ASSERT_EQ(read.layers[1].windows.size(), 2u);
  EXPECT_EQ(read.layers[1].windows[0].seen, 0);
  EXPECT_EQ(read.layers[1].windows[1].seen, 1);
  EXPECT_EQ(read.tokens, 123456789);
  EXPECT_EQ(read.init, "compat");
}

TEST(StateFileTest, TensorsHaveTheNamesAndShapesOfTheFormat) {
  const std::vector<uint8_t> file = FileOf(SomeState());
  const SafetensorsHeader header = ParseSafetensors(file, "talk.state");
  const std::map<std::string, std::vector<int64_t>> expected = {{"layers.0.scan", {2, 3}},
                                                                {"layers.0.conv", {3, 6}},
                                                                {"layers.1.scan", {2, 3}},
                                                                {"layers.1.conv", {3, 6}},
                                                                {"layers.1.windows.0.scan", {2, 1}},
                                                                {"layers.1.windows.0.sum", {5}},
                                                                {"layers.1.windows.0.seen", {1}},
                                                                {"layers.1.windows.1.scan", {2, 1}},
                                                                {"layers.1.windows.1.sum", {5}},
                                                                {"layers.1.windows.1.seen", {1}},
                                                                {"hidden", {5}}};
  EXPECT_EQ(header.entries.size(), expected.size());
  for (const auto& [name, shape] : expected) {
    const SafetensorsEntry* entry = header.Find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->shape, shape) << name;
    EXPECT_EQ(entry->dtype, "F32") << name;
  }
  const std::string digest = HexEncode(Sha256Of(ByteSpan(file).subspan(header.data_offset)));
  const std::map<std::string, std::string> metadata = {{"format", "trainwright.state/1"},
                                                       {"model_sha256", "0123"},
                                                       {"sha256", digest},
                                                       {"precision", "fp32"},
                                                       {"init", "compat"},
                                                       {"tokens", "123456789"}};
  EXPECT_EQ(header.metadata, metadata);
}

TEST(StateFileTest, AnotherModelsOrPrecisionsIsRefusedByName) {
  const std::vector<uint8_t> file = FileOf(SomeState());
  EXPECT_NE(test::MessageOf([&] {
              DecodeState(file, "talk.state", {"4567", "fp32"});
            }).find("another model"),
            std::string::npos);
  EXPECT_NE(test::MessageOf([&] {
              DecodeState(file, "talk.state", {"0123", "bf16"});
            }).find("fp32"),
            std::string::npos);
}

TEST(StateFileTest, AnotherConfigurationsIsRefused) {
  MemorySink sink;
  WriteState(&sink, {"0123", "fp32", "89ab"}, SomeState());
  const std::vector<uint8_t> file = sink.bytes();
  const std::string message = test::MessageOf([&] {
    DecodeState(file, "talk.state", {"0123", "fp32", "cdef"});
  });
  EXPECT_NE(message.find("another config.json"), std::string::npos) << message;
  EXPECT_EQ(DecodeState(file, "talk.state", {"0123", "fp32", "89ab"}).tokens, SomeState().tokens);
}

TEST(StateFileTest, AFileThatSaysNoConfigurationIsRead) {
  EXPECT_EQ(DecodeState(FileOf(SomeState()), "talk.state", {"0123", "fp32", "89ab"}).tokens,
            SomeState().tokens);
}

TEST(StateFileTest, AFileThatIsCutOrAltogetherAnotherIsRefused) {
  const std::vector<uint8_t> file = FileOf(SomeState());
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, file.size() / 2, file.size() - 1}) {
    EXPECT_NE(RefusalOfState({file.begin(), file.begin() + static_cast<int64_t>(size)}), "") << size;
  }
  EXPECT_NE(RefusalOfState({'n', 'o', ' ', 's', 't', 'a', 't', 'e', '\n'}), "");
  EXPECT_NE(RefusalOfState(Edited([](auto*, auto* metadata) { metadata->clear(); })), "");
}

TEST(StateFileTest, ABitThatFlippedIsRefused) {
  const std::vector<uint8_t> file = FileOf(SomeState());
  const uint64_t data_offset = ParseSafetensors(file, "good").data_offset;
  for (uint64_t at = data_offset; at < file.size(); at += 7) {
    std::vector<uint8_t> flipped = file;
    flipped[at] = static_cast<uint8_t>(flipped[at] ^ 1U);
    EXPECT_NE(RefusalOfState(flipped).find("talk.state: is damaged"), std::string::npos) << at;
  }
}

TEST(StateFileTest, NumbersThatAreNotFiniteAreRefusedByTheFilesName) {
  for (const float number :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    RecurrentState state = SomeState();
    state.layers[1].scan_z = at::full({6}, number, at::kFloat);
    const std::string refusal = RefusalOfState(FileOf(state));
    EXPECT_NE(refusal.find("talk.state"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("layers.1.scan"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("not finite"), std::string::npos) << refusal;
  }
}

TEST(StateFileTest, AFileWithWhatNoStateHasIsRefused) {
  EXPECT_EQ(RefusalOfState(Edited([](auto*, auto*) {})), "");
  const std::vector<float> numbers = {1.5F, 2, 3};
  const ByteSpan three = {reinterpret_cast<const uint8_t*>(numbers.data()), 3 * sizeof(float)},
                 one = three.first(sizeof(float));
  const auto named = [](std::vector<SafetensorsTensor>* tensors, const std::string& name) {
    for (SafetensorsTensor& tensor : *tensors) {
      if (tensor.name == name) return &tensor;
    }
    return &tensors->front();
  };
  const std::vector<Edit> edits = {
      [&](auto* tensors, auto*) {
        tensors->push_back({"layers.5.scan", "F32", {3}, three});
      },
      [&](auto* tensors, auto*) { tensors->pop_back(); },
      [&](auto* tensors, auto*) { named(tensors, "layers.1.windows.1.seen")->data = one; },  // 1.5
      [&](auto* tensors, auto*) { named(tensors, "layers.0.scan")->name = "layers.9.scan"; },
      [&](auto* tensors, auto*) { named(tensors, "layers.1.scan")->shape = {6}; },
      [&](auto* tensors, auto*) { named(tensors, "hidden")->dtype = "I32"; },
      [&](auto* tensors, auto*) {
        named(tensors, "hidden")->shape = {5, 1, 1};
      },
      [](auto*, auto* metadata) { metadata->at("tokens") = "0"; },
      [](auto*, auto* metadata) { metadata->at("tokens") = "12x"; },
      [](auto*, auto* metadata) { metadata->at("tokens") = "9223372036854775807"; },
      [](auto*, auto* metadata) { metadata->at("format") = "trainwright.state/2"; }};
  for (size_t i = 0; i < edits.size(); ++i) EXPECT_NE(RefusalOfState(Edited(edits[i])), "") << i;
}

}  // namespace
}  // namespace trainwright

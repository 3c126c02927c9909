#include "lib/embedding/text_encoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/rng.h"
#include "tests/model/inputs.h"
#include "tests/model/small_models.h"
#include "tests/support/on_ranks.h"
#include "tests/support/support.h"

namespace trainwright {
namespace {

/// Texts of unlike lengths, two of them with the same; every second has an instruction.
struct Texts {
  Texts() {
    const std::vector<size_t> lengths = {7, 31, 1, 12, 12, 55, 3};
    const Rng rng(test::TestSeed(), "texts");
    uint64_t drawn = 0;
    for (const size_t length : lengths) {
      std::vector<uint32_t> text;
      for (size_t i = 0; i < length; ++i) text.push_back(static_cast<uint32_t>(rng.Bits(drawn++) % 300));
      tokens.push_back(std::move(text));
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      texts.push_back({tokens[i], static_cast<uint32_t>(i % 2 == 0 ? 0 : lengths[i] / 3)});
    }
  }

  std::vector<std::vector<uint32_t>> tokens;
  std::vector<EncodedText> texts;
};

std::unique_ptr<LanguageModel> Model() {
  return test::LivelyModel(test::SmallLlama(), test::kFp32Numerics);
}

EmbeddingSpec SpecOf(Pooling pooling, const std::string& attention) {
  EmbeddingSpec spec;
  spec.pooling = pooling;
  spec.attention = attention;
  spec.mask = FindEmbeddingMask(attention).value();
  return spec;
}

/// The vector of one text, from its hidden states alone, by the definition in double.
at::Tensor ExpectedVector(LanguageModel* model, const EmbeddingSpec& spec, const EncodedText& text) {
  std::vector<int64_t> ids(text.tokens.begin(), text.tokens.end());
  BodyInput input = test::OneDocument(at::tensor(ids, at::TensorOptions().dtype(at::kLong)));
  input.mask = spec.mask;
  const at::Tensor hidden = model->body().Forward(input, Keep::kNothing).to(at::kDouble);
  const auto length = static_cast<int64_t>(ids.size());
  const at::Tensor pooled = hidden.slice(0, text.instruction_tokens);
  at::Tensor vector;
  if (spec.pooling == Pooling::kMean) vector = pooled.mean(0);
  if (spec.pooling == Pooling::kWeightedMean) {
    const at::Tensor weights = at::arange(1, pooled.size(0) + 1, at::kDouble);
    vector = weights.matmul(pooled).div(weights.sum());
  }
  if (spec.pooling == Pooling::kCls) vector = hidden[0];
  if (spec.pooling == Pooling::kLastToken) vector = hidden[length - 1];
  return spec.normalize ? vector.div(vector.norm()) : vector;
}

at::Tensor Expected(LanguageModel* model, const EmbeddingSpec& spec, const std::vector<EncodedText>& texts) {
  std::vector<at::Tensor> vectors;
  for (const EncodedText& text : texts) vectors.push_back(ExpectedVector(model, spec, text));
  return at::stack(vectors);
}

class TextEncoderTest : public testing::TestWithParam<std::tuple<Pooling, std::string>> {};

INSTANTIATE_TEST_SUITE_P(Specs, TextEncoderTest,
                         testing::Combine(testing::Values(Pooling::kMean, Pooling::kWeightedMean,
                                                          Pooling::kCls, Pooling::kLastToken),
                                          testing::Values("bbcc", "cccc")),
                         [](const auto& info) {
                           return PoolingName(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

TEST_P(TextEncoderTest, VectorsAreThoseOfEachTextAloneInTheirOrder) {
  const auto model = Model();
  const Texts given;
  const EmbeddingSpec spec = SpecOf(std::get<0>(GetParam()), std::get<1>(GetParam()));
  TextEncoder encoder(model.get(), spec, {.tokens_per_pass = 50});
  const at::Tensor vectors = encoder.Encode(given.texts);
  EXPECT_LT(test::MaxDifference(vectors, Expected(model.get(), spec, given.texts)), 1e-5);
}

TEST(TextEncoderTest, WithoutNormalizationVectorsKeepTheirLengths) {
  const auto model = Model();
  const Texts given;
  EmbeddingSpec spec;
  spec.normalize = false;
  TextEncoder encoder(model.get(), spec);
  const at::Tensor expected = Expected(model.get(), spec, given.texts);
  EXPECT_LT(test::RelativeDifference(encoder.Encode(given.texts).to(at::kDouble), expected), 1e-5);
}

TEST(TextEncoderTest, BatchInvariantVectorsHaveTheSameBitsAmongAnyOthers) {
  const auto model = Model();
  const Texts given;
  TextEncoder encoder(model.get(), {}, {.batch_invariant = true});
  const at::Tensor together = encoder.Encode(given.texts);
  std::vector<EncodedText> reversed(given.texts.rbegin(), given.texts.rend());
  const at::Tensor backwards = encoder.Encode(reversed).flip({0});
  EXPECT_TRUE(at::equal(backwards, together));
  for (size_t i = 0; i < given.texts.size(); ++i) {
    const at::Tensor alone = encoder.Encode(std::span(&given.texts[i], 1));
    EXPECT_TRUE(at::equal(alone[0], together[static_cast<int64_t>(i)])) << i;
  }
}

TEST(TextEncoderTest, TruncatedVectorsAreTheFirstElementsWithUnitLength) {
  const auto model = Model();
  const Texts given;
  TextEncoder whole(model.get(), {}), truncated(model.get(), {}, {.truncate_dim = 5});
  const at::Tensor first = whole.Encode(given.texts).to(at::kDouble).slice(1, 0, 5);
  const at::Tensor expected = first.div(first.norm(2, {1}, /*keepdim=*/true));
  EXPECT_EQ(truncated.dimension(), 5);
  EXPECT_LT(test::MaxDifference(truncated.Encode(given.texts), expected), 1e-5);
}

TEST(TextEncoderTest, AllRanksGetTheVectorsThatOneGets) {
  const Texts given;
  const auto encode = [&](World* world) {
    const auto model = Model();
    TextEncoder encoder(model.get(), {}, {.batch_invariant = true, .world = world});
    return encoder.Encode(given.texts);
  };
  const at::Tensor alone = test::OnOneRank(encode);
  for (const int64_t ranks : {2, 3, 9}) {  // of 9 some have none
    for (const at::Tensor& vectors : test::OnRanks(ranks, encode))
      EXPECT_TRUE(at::equal(vectors, alone)) << ranks;
  }
}

TEST(TextEncoderTest, PassesHoldNoMoreTokensThanTheyMayAndPaddingIsCountedBesides) {
  const auto model = Model();
  const Texts given;
  TextEncoder encoder(model.get(), {}, {.tokens_per_pass = 50});
  encoder.Encode(given.texts);
  // Lengths 55 | 31 12 | 12 7 3 1.
  EXPECT_EQ(encoder.counts().texts, 7);
  EXPECT_EQ(encoder.counts().tokens, 121);
  EXPECT_EQ(encoder.counts().tokens_if_padded, 55 + 2 * 31 + 4 * 12);
}

TEST(TextEncoderTest, NoTextsGiveNoVectors) {
  const auto model = Model();
  TextEncoder encoder(model.get(), {});
  EXPECT_EQ(encoder.Encode({}).sizes().vec(), (std::vector<int64_t>{0, 48}));
}

TEST(TextEncoderTest, ATextWithoutATokenBehindItsInstructionIsRefused) {
  const auto model = Model();
  Texts given;
  given.texts[3].instruction_tokens = 12;
  TextEncoder encoder(model.get(), {});
  const std::string message = test::MessageOf([&] { encoder.Encode(given.texts); });
  EXPECT_NE(message.find("text 4"), std::string::npos) << message;
  EXPECT_NE(message.find("12"), std::string::npos) << message;
}

TEST(TextEncoderTest, WhatFailsOnOneRankEndsAll) {
  Texts given;
  given.tokens[5][9] = 300;  // outside the vocabulary, in the longest text: of rank 0
  const auto codes = test::OnRanks(2, [&](World* world) {
    const auto model = Model();
    TextEncoder encoder(model.get(), {}, {.batch_invariant = true, .world = world});
    return test::CodeOf([&] { encoder.Encode(given.texts); });
  });
  EXPECT_EQ(codes[0], ErrorCode::kBadInput);
  EXPECT_TRUE(codes[1].has_value());
}

TEST(TextEncoderTest, SizesThatVectorsDoNotHaveAreRefused) {
  const auto model = Model();
  EXPECT_EQ(test::CodeOf([&] { TextEncoder(model.get(), {}, {.truncate_dim = 49}); }), ErrorCode::kUsage);
  EmbeddingSpec spec;
  spec.projection = 16;
  EXPECT_EQ(test::CodeOf([&] { TextEncoder(model.get(), spec); }), ErrorCode::kUsage);
}

}  // namespace
}  // namespace trainwright

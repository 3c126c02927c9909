/// The ids that a SentencePiece model has for a text, by the installed library called directly on the whole
/// of it. Of a unigram model the library has the normalised text alone: older versions cut ties otherwise
/// than 0.2.3, so that reference_unigram.h cuts it.
#pragma once

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tok/reference_unigram.h"

namespace trainwright::test {

class LibraryOracle {
 public:
  explicit LibraryOracle(const std::string& serialized_model) {
    EXPECT_TRUE(processor_.LoadFromSerializedProto(serialized_model).ok());
    SentencePieceModel model;
    std::string problem;
    EXPECT_TRUE(ParseSentencePieceModel(serialized_model, &model, &problem)) << problem;
    if (model.is_unigram) unigram_.emplace(model);
  }

  std::vector<uint32_t> Encode(std::string_view text) const {
    if (unigram_) return unigram_->Encode(Normalized(text));
    std::vector<int> ids;
    EXPECT_TRUE(processor_.Encode(text, &ids).ok());
    return {ids.begin(), ids.end()};
  }

  std::string Decode(const std::vector<uint32_t>& ids) const {
    std::string text;
    EXPECT_TRUE(processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text).ok());
    return text;
  }

 private:
  /// The pieces side by side, with the bytes that byte pieces stand for.
  std::string Normalized(std::string_view text) const {
    std::vector<std::string> pieces;
    std::vector<int> ids;
    EXPECT_TRUE(processor_.Encode(text, &pieces).ok());
    EXPECT_TRUE(processor_.Encode(text, &ids).ok());
    EXPECT_EQ(pieces.size(), ids.size());
    std::string normalized;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (processor_.IsByte(ids[i])) {
        normalized.push_back(static_cast<char>(std::stoi(pieces[i].substr(3, 2), nullptr, 16)));
      } else {
        normalized += pieces[i];
      }
    }
    return normalized;
  }

  sentencepiece::SentencePieceProcessor processor_;
  std::optional<ReferenceUnigram> unigram_;
};

}  // namespace trainwright::test

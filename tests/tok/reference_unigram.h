/// SentencePiece's unigram models again, written as plainly as can be, as an oracle: every piece is tried at
/// every place, and all sums are floats that are formed from the beginning of the text on, as 0.2.3 does.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/utf8.h"

namespace trainwright::test {

class ReferenceUnigram {
 public:
  explicit ReferenceUnigram(const SentencePieceModel& model) : model_(model) {
    using PieceType = SentencePieceModel::PieceType;
    float least = FLT_MAX;
    for (uint32_t id = 0; id < model.pieces.size(); ++id) {
      const auto& [text, score, type] = model.pieces[id];
      if (type == PieceType::kNormal) least = std::min(least, score);
      if (type == PieceType::kUnknown) unknown_id_ = id;
      if (type == PieceType::kByte) bytes_[text] = id;
      const auto bonus = static_cast<float>(0.1 * (static_cast<double>(text.size()) - 1));
      if (type == PieceType::kNormal) pieces_[text] = {id, score};
      if (type == PieceType::kUserDefined) pieces_[text] = {id, bonus};
      longest_ = std::max(longest_, text.size());
    }
    unknown_score_ = least - 10.0F;
  }

  /// \param text with U+2581 for spaces, the mark included: as the library normalises
  std::vector<uint32_t> Encode(std::string_view text) const {
    struct Way {
      bool found = false;
      float score = 0;
      size_t begin = 0;
      int64_t id = kUnknown;
    };
    std::vector<Way> ways(text.size() + 1);
    for (size_t begin = 0; begin < text.size();) {
      const size_t character = DecodeUtf8(text.substr(begin)).size_bytes;
      if (ways[begin].score < -100000.0F || ways[begin].score > 100000.0F) {
        const float offset = ways[begin].score;
        for (size_t i = begin; i < ways.size(); ++i) {
          if (i == begin || ways[i].found) ways[i].score -= offset;
        }
        ways[begin].score = 0;
      }
      const auto take = [&](size_t end, float score, int64_t id) {
        const float sum = score + ways[begin].score;
        if (!ways[end].found || sum > ways[end].score) ways[end] = {true, sum, begin, id};
      };
      bool known = false;
      for (size_t end = begin + 1; end <= std::min(text.size(), begin + longest_); ++end) {
        const auto piece = pieces_.find(std::string(text.substr(begin, end - begin)));
        if (piece == pieces_.end()) continue;
        take(end, piece->second.second, piece->second.first);
        known = known || end == begin + character;
      }
      if (!known) take(begin + character, unknown_score_, kUnknown);
      begin += character;
    }
    std::vector<std::pair<std::string_view, int64_t>> cut;
    for (size_t end = text.size(); end > 0; end = ways[end].begin) {
      cut.emplace_back(text.substr(ways[end].begin, end - ways[end].begin), ways[end].id);
    }
    std::reverse(cut.begin(), cut.end());
    return IdsOf(cut);
  }

 private:
  static constexpr int64_t kUnknown = -1;

  std::vector<uint32_t> IdsOf(const std::vector<std::pair<std::string_view, int64_t>>& cut) const {
    std::vector<uint32_t> ids;
    bool after_unknown = false;
    for (const auto& [text, id] : cut) {
      const bool unknown = id == kUnknown;
      if (unknown && model_.byte_fallback) {
        for (const char byte : text) {
          char name[8];
          std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(static_cast<uint8_t>(byte)));
          ids.push_back(bytes_.at(name));
        }
      } else if (!unknown || !after_unknown) {
        ids.push_back(unknown ? unknown_id_ : static_cast<uint32_t>(id));
      }
      after_unknown = unknown;
    }
    return ids;
  }

  SentencePieceModel model_;
  std::map<std::string, std::pair<uint32_t, float>> pieces_;
  std::map<std::string, uint32_t> bytes_;
  size_t longest_ = 0;
  uint32_t unknown_id_ = 0;
  float unknown_score_ = 0;
};

}  // namespace trainwright::test

#include "lib/tok/folder_added_tokens.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/io/byte_source.h"
#include "lib/tok/folder_json.h"
#include "lib/tok/sentencepiece_model.h"

namespace trainwright {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxModelBytes = uint64_t{1} << 30;
constexpr size_t kMostDescribed = 4;

/// \returns whether it is an id
bool IdOf(const json& value, uint32_t* id) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= UINT32_MAX) return false;
  *id = value.get<uint32_t>();
  return true;
}

/// added_tokens.json has ids by texts, and tokenizer_config.json tokens by ids; as transformers 5 writes it,
/// tokenizer.json alone has them.
AddedTokens TokensNamedIn(const std::string& folder, const json& config) {
  AddedTokens tokens;
  uint32_t id = 0;
  const json by_text = ObjectOfFolder(folder, "added_tokens.json");
  for (const auto& [text, value] : by_text.items()) {
    if (IdOf(value, &id)) tokens[id] = text;
  }
  const std::filesystem::path file = std::filesystem::path(folder) / kTokenizerJsonFile;
  std::error_code ignored;
  if (config.value("backend", json()) == "tokenizers" && std::filesystem::is_regular_file(file, ignored)) {
    tokens.merge(AddedTokensOfJson(AsText(ReadWholeFile(file.string(), kMaxModelBytes))));
    return tokens;
  }
  const json by_id = config.value("added_tokens_decoder", json::object());
  if (!by_id.is_object()) return tokens;
  for (const auto& [key, token] : by_id.items()) {
    const char* const end = key.data() + key.size();
    const auto [stop, error] = std::from_chars(key.data(), end, id);
    if (error == std::errc() && stop == end && !TextOfToken(token).empty()) tokens[id] = TextOfToken(token);
  }
  return tokens;
}

/// Pieces have U+2581 for spaces.
std::string AsPiece(const std::string& text) {
  std::string piece;
  for (const char c : text) piece += c == ' ' ? std::string("\u2581") : std::string(1, c);
  return piece;
}

/// What the pieces of a model find.
class FoundPieces {
 public:
  explicit FoundPieces(const SentencePieceModel& model) : model_(model) {}

  /// Whether the piece is found in texts, or by the name of a special token. A normal one is made by merges
  /// alone: of a mark that was put in the place of a reserved piece there are none.
  bool Has(uint32_t id) {
    using PieceType = SentencePieceModel::PieceType;
    const SentencePieceModel::Piece& piece = model_.pieces[id];
    return piece.type == PieceType::kControl || piece.type == PieceType::kUserDefined ||
           piece.type == PieceType::kUnknown || (piece.type == PieceType::kNormal && IsMerged(piece.text));
  }

 private:
  /// Whether two pieces make it, as those of CodeLlama's <PRE>.
  bool IsMerged(std::string_view text) {
    if (texts_.empty()) {
      for (const SentencePieceModel::Piece& piece : model_.pieces) texts_.insert(piece.text);
    }
    for (size_t i = 1; i < text.size(); ++i) {
      if (texts_.contains(text.substr(0, i)) && texts_.contains(text.substr(i))) return true;
    }
    return false;
  }

  const SentencePieceModel& model_;
  std::unordered_set<std::string_view> texts_;
};

/// Whether it is the padding's, and nothing else's.
bool OnlyPads(const std::string& text, const json& config) {
  const auto token = [&](const char* name) { return TextOfToken(config.value(name, json())); };
  return text == token("pad_token") && text != token("eos_token") && text != token("bos_token");
}

}  // namespace

AddedTokens AddedTokensOfJson(std::string_view tokenizer_json) {
  AddedTokens tokens;
  uint32_t id = 0;
  const json added = ObjectOfTokenizerJson(tokenizer_json).value("added_tokens", json());
  for (const json& token : added) {
    if (token.is_object() && IdOf(token.value("id", json()), &id)) tokens[id] = TextOfToken(token);
  }
  return tokens;
}

AddedTokens TokensLackingInModel(const std::string& folder) {
  namespace fs = std::filesystem;
  const json config = ObjectOfFolder(folder, kTokenizerConfigFile);
  const std::string path = (fs::path(folder) / "tokenizer.model").string();
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  AddedTokens tokens = TokensNamedIn(folder, config);
  if (tokens.empty()) return {};
  SentencePieceModel model;
  std::string problem;
  const std::vector<uint8_t> content = ReadWholeFile(path, kMaxModelBytes);
  if (!ParseSentencePieceModel(AsText(content), &model, &problem)) return {};
  const json special = ObjectOfFolder(folder, kSpecialTokensMapFile);
  FoundPieces found(model);
  std::erase_if(tokens, [&](const auto& token) {
    const auto& [id, text] = token;
    const bool known =
        id < model.pieces.size() && AsPiece(model.pieces[id].text) == AsPiece(text) && found.Has(id);
    return known || OnlyPads(text, config) || OnlyPads(text, special);
  });
  return tokens;
}

std::string DescribeAddedTokens(const AddedTokens& tokens) {
  std::string list;
  size_t described = 0;
  for (const auto& [id, text] : tokens) {
    if (described++ == kMostDescribed) {
      return list + " and " + std::to_string(tokens.size() - kMostDescribed) + " more";
    }
    list += (list.empty() ? "" : ", ") + text + " (" + std::to_string(id) + ")";
  }
  return list;
}

}  // namespace trainwright

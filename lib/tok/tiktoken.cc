#include "lib/tok/tiktoken.h"

#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "lib/base/base64.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr uint32_t kMaxRank = 1 << 23;

}  // namespace

bool LooksLikeTiktoken(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || line.size() > 1000) return false;
  const std::string_view token = line.substr(0, space), rank = line.substr(space + 1);
  return token.substr(0, token.find('=')).find_first_not_of(kBase64Digits) == std::string_view::npos &&
         !rank.empty() && rank.find_first_not_of("0123456789\r") == std::string_view::npos;
}

TiktokenVocabulary KnownTiktokenVocabulary(std::string_view content, const std::string& name) {
  const std::string sha256 = HexEncode(Sha256Of(AsBytes(content)));
  const std::string end = "<|endoftext|>";
  if (sha256 == "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930") {
    return {"r50k_base", CutRule::kGpt2, {{end, 50256}}};
  }
  if (sha256 == "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069") {
    return {"p50k_base", CutRule::kGpt2, {{end, 50256}}};
  }
  if (sha256 == "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7") {
    return {"cl100k_base",
            CutRule::kCl100k,
            {{end, 100257},
             {"<|fim_prefix|>", 100258},
             {"<|fim_middle|>", 100259},
             {"<|fim_suffix|>", 100260},
             {"<|endofprompt|>", 100276}}};
  }
  if (sha256 == "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d") {
    return {"o200k_base", CutRule::kO200k, {{end, 199999}, {"<|endofprompt|>", 200018}}};
  }
  throw Error(
      ErrorCode::kBadInput, name,
      "is no tiktoken vocabulary that this version knows, and the file does not say how text is cut: its "
      "SHA-256 is " +
          sha256,
      "",
      "--tokenizer knows the tiktoken files of r50k_base (GPT-2), p50k_base, cl100k_base and o200k_base; a "
      "tokenizer.json says how text is cut");
}

TokenizerJson ParseTiktoken(std::string_view content, const TiktokenVocabulary& vocabulary,
                            const std::string& name) {
  TokenizerJson parsed;
  std::unordered_map<std::string, uint32_t> ranks;
  size_t line_number = 0;
  for (std::string_view rest = content; !rest.empty();) {
    ++line_number;
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto refuse = [&](const std::string& problem) {
      throw Error(ErrorCode::kBadInput, name, problem, "line " + std::to_string(line_number));
    };
    const size_t space = std::min(line.find(' '), line.size());
    const auto token = DecodeBase64(line.substr(0, space));
    const std::string_view digits = line.substr(std::min(space + 1, line.size()));
    uint32_t rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (!token || token->empty() || error != std::errc() || end != digits.data() + digits.size() ||
        rank > kMaxRank) {
      refuse("is not a token in base64, a space and its rank");
    }
    if (rank >= parsed.tokens.size()) parsed.tokens.resize(rank + 1);
    if (parsed.tokens[rank].in_model) refuse("has the rank " + std::to_string(rank) + " twice");
    if (!ranks.emplace(*token, rank).second) refuse("has a token twice");
    parsed.tokens[rank] = {.bytes = *token, .in_model = true, .spells_bytes = true};
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto found = ranks.find(std::string(1, static_cast<char>(byte)));
    if (found == ranks.end()) {
      throw Error(ErrorCode::kBadInput, name, "has no token for the byte " + std::to_string(byte));
    }
    parsed.byte_ids[byte] = found->second;
  }
  // Whatever two tokens together spell a third merge into it.
  for (uint32_t rank = 0; rank < parsed.tokens.size(); ++rank) {
    const std::string& token = parsed.tokens[rank].bytes;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(token.substr(0, cut));
      if (left == ranks.end()) continue;
      const auto right = ranks.find(token.substr(cut));
      if (right != ranks.end()) parsed.merges.push_back({left->second, right->second, rank, rank});
    }
  }
  if (parsed.merges.size() >= BytePairMerges::kMaxMerges) {
    throw Error(ErrorCode::kBadInput, name, "has too many tokens");
  }
  for (const auto& [text, id] : vocabulary.special_tokens) {
    if (id >= parsed.tokens.size()) parsed.tokens.resize(id + 1);
    if (parsed.tokens[id].in_model)
      throw Error(ErrorCode::kBadInput, name, "has a token of the id of " + text);
    parsed.tokens[id] = {.bytes = text, .special = true};
  }
  parsed.ignore_merges = true;
  parsed.cut_rule = vocabulary.cut_rule;
  if (!vocabulary.special_tokens.empty()) {
    parsed.bos_id = parsed.eos_id = vocabulary.special_tokens.front().second;
  }
  return parsed;
}

}  // namespace trainwright

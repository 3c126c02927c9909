#include "lib/tok/text_decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/tok/space_marks.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

void ReplaceAll(std::string_view pattern, std::string_view content, std::string* text) {
  if (text->find(pattern) == std::string::npos) return;
  std::string replaced;
  size_t at = 0;
  for (size_t found; (found = text->find(pattern, at)) != std::string::npos; at = found + pattern.size()) {
    replaced.append(*text, at, found - at).append(content);
  }
  *text = replaced.append(*text, at);
}

/// The byte of "<0x41>", which may be in small letters, or be written with a sign.
std::optional<char> ByteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  std::string_view digits = token.substr(3, 2);
  if (digits[0] == '+') digits.remove_prefix(1);
  uint8_t byte = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(byte);
}

void FallBackToBytes(std::vector<std::string>* tokens) {
  std::vector<std::string> decoded;
  std::string bytes;
  const auto flush = [&] {
    if (FindInvalidUtf8(bytes) == std::string_view::npos) {
      if (!bytes.empty()) decoded.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) decoded.emplace_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : *tokens) {
    if (const auto byte = ByteOfToken(token)) {
      bytes.push_back(*byte);
      continue;
    }
    flush();
    decoded.push_back(std::move(token));
  }
  flush();
  *tokens = std::move(decoded);
}

void Strip(const DecoderStep& step, std::string* text) {
  std::string_view rest = *text;
  for (size_t i = 0; i < step.start && rest.starts_with(step.content); ++i)
    rest.remove_prefix(step.content.size());
  for (size_t i = 0; i < step.stop && rest.ends_with(step.content); ++i)
    rest.remove_suffix(step.content.size());
  *text = std::string(rest);
}

void CleanUp(std::string* text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [pattern, content] : kRules) ReplaceAll(pattern, content, text);
}

}  // namespace

TextDecoder::TextDecoder(const TextPipeline& pipeline)
    : has_decoder_(pipeline.has_decoder),
      steps_(pipeline.decoder),
      falls_back_to_bytes_(std::any_of(steps_.begin(), steps_.end(), [](const DecoderStep& step) {
        return step.kind == DecoderStep::Kind::kByteFallback;
      })) {}

std::optional<char> TextDecoder::ByteOf(std::string_view token) const {
  return falls_back_to_bytes_ ? ByteOfToken(token) : std::nullopt;
}

void TextDecoder::Apply(const DecoderStep& step, std::vector<std::string>* tokens) {
  using Kind = DecoderStep::Kind;
  if (step.kind == Kind::kByteFallback) return FallBackToBytes(tokens);
  if (step.kind == Kind::kFuse) {
    std::string fused;
    for (const std::string& token : *tokens) fused += token;
    tokens->assign(1, std::move(fused));
    return;
  }
  for (std::string& token : *tokens) {
    const bool first = &token == tokens->data();
    if (step.kind == Kind::kReplace) {
      ReplaceAll(step.pattern, step.content, &token);
    } else if (step.kind == Kind::kStrip) {
      Strip(step, &token);
    } else if (step.kind == Kind::kMetaspace) {
      ReplaceAll(kSpaceMark, first && step.drops_first ? "" : " ", &token);
    } else {
      const bool continues = token.starts_with(step.content);
      if (!first && continues) token.erase(0, step.content.size());
      if (!first && !continues) token.insert(0, 1, ' ');
      if (step.cleanup) CleanUp(&token);
    }
  }
}

std::string TextDecoder::Decode(std::vector<std::string> tokens) const {
  for (const DecoderStep& step : steps_) Apply(step, &tokens);
  std::string text;
  for (const std::string& token : tokens) {
    if (!has_decoder_ && &token != tokens.data()) text.push_back(' ');
    text += token;
  }
  return text;
}

}  // namespace trainwright

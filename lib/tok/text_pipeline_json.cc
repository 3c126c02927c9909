#include "lib/tok/text_pipeline_json.h"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/base64.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

using Element = TokenizerJsonValues::Element;
namespace dom = simdjson::dom;

constexpr size_t kMaxTokens = (1 << 24) - 1;

/// A number as serde_json reads it, which rounds twice: digits as an integer, times or by a power of ten.
/// \source f64_from_parts of serde_json 1.0, without the feature float_roundtrip
double AsSerdeReads(double value) {
  char text[40];
  const auto written =
      std::to_chars(text, text + sizeof(text), std::abs(value), std::chars_format::scientific);
  uint64_t digits = 0;
  int exponent = 0;
  const char* at = text;
  bool behind_point = false;
  for (; at != written.ptr && *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    exponent -= behind_point ? 1 : 0;
  }
  int power = 0;
  const char* const from = at + 1 + (at + 1 < written.ptr && at[1] == '+' ? 1 : 0);
  std::from_chars(from, static_cast<const char*>(written.ptr), power);
  exponent += power;
  auto read = static_cast<double>(digits);
  constexpr int kLargestPower = 308;
  for (; exponent < -kLargestPower; exponent += kLargestPower) read /= 1e308;
  const double scale = std::stod("1e" + std::to_string(std::abs(exponent)));
  read = exponent >= 0 ? read * scale : read / scale;
  return std::signbit(value) ? -read : read;
}

/// The most that the steps together may make of a byte: more is no tokenizer, and takes all memory.
constexpr double kMostGrowth = 1000;

/// What a step makes of a byte at most.
double GrowthOf(const std::string& content, const std::string& pattern) {
  const auto bytes = static_cast<double>(std::max<size_t>(pattern.size(), 1));
  return std::max(1.0, static_cast<double>(content.size()) / bytes);
}

class Reader {
 public:
  Reader(Element root, const TokenizerJsonValues& values) : root_(root), values_(values) {}

  TextPipeline Read() {
    ReadNormalizer();
    ReadPreTokenizer();
    FoldSpaces();
    ReadDecoder();
    ReadModel();
    return std::move(pipeline_);
  }

 private:
  void ReadNormalizer() {
    const auto normalizer = values_.Member(root_, "normalizer");
    if (!normalizer) return;
    for (const Element step : values_.Steps(*normalizer, "normalizers", "normalizer")) {
      pipeline_.normalizer.push_back(ReadNormalizerStep(step));
    }
    double growth = 1;
    for (const NormalizerStep& step : pipeline_.normalizer) {
      using Kind = NormalizerStep::Kind;
      if (step.kind == Kind::kReplace || step.kind == Kind::kReplaceRuns)
        growth *= GrowthOf(step.content, step.pattern);
    }
    if (growth > kMostGrowth)
      values_.RefuseUnsupported("a normalizer that makes texts a thousand times as long");
  }

  /// The place after Replace of ' ' by U+2581, where no step after it needs it; else 0.
  size_t PlaceAfterFold() const {
    using Kind = NormalizerStep::Kind;
    const std::vector<NormalizerStep>& steps = pipeline_.normalizer;
    const auto sees_none = [](const NormalizerStep& step) {
      const bool of_the_start = step.kind == Kind::kReplaceStart && step.pattern == kSpaceMark;
      return (step.kind == Kind::kPrepend || of_the_start) && step.content.find(' ') == std::string::npos;
    };
    size_t place = steps.size();
    while (place > 0 && sees_none(steps[place - 1])) --place;
    if (place == 0) return 0;
    const NormalizerStep& last = steps[place - 1];
    return last.kind == Kind::kReplace && last.pattern == " " && last.content == kSpaceMark ? place : 0;
  }

  /// Leaves that step to where the text is cut, unless it is cut at white space, which U+2581 is not. What
  /// would replace a U+2581 at the beginning of a text replaces a ' ' there, too.
  void FoldSpaces() {
    const size_t place = PlaceAfterFold();
    if (place == 0 || pipeline_.cut_at_white_space) return;
    std::vector<NormalizerStep>& steps = pipeline_.normalizer;
    steps.erase(steps.begin() + static_cast<ptrdiff_t>(place) - 1);
    for (size_t after = place - 1; after < steps.size(); ++after) steps[after].or_space = true;
    pipeline_.folds_spaces = pipeline_.folds_by_normalizer = true;
  }

  NormalizerStep ReadNormalizerStep(Element step) const {
    using Kind = NormalizerStep::Kind;
    const std::string place = "normalizer", type = values_.TypeOf(step, place);
    NormalizerStep read;
    constexpr std::pair<std::string_view, NormalForm> kForms[] = {{"NFC", NormalForm::kNfc},
                                                                  {"NFD", NormalForm::kNfd},
                                                                  {"NFKC", NormalForm::kNfkc},
                                                                  {"NFKD", NormalForm::kNfkd}};
    for (const auto& [name, form] : kForms) {
      if (type != name) continue;
      read.form = form;
      return read;
    }
    if (type == "Lowercase") {
      read.kind = Kind::kLowercase;
    } else if (type == "StripAccents") {
      read.kind = Kind::kStripAccents;
    } else if (type == "Nmt") {
      read.kind = Kind::kNmt;
    } else if (type == "Strip") {
      read.kind = Kind::kStrip;
      read.left = values_.FlagOf(step, "strip_left", true, place);
      read.right = values_.FlagOf(step, "strip_right", true, place);
    } else if (type == "Prepend") {
      read.kind = Kind::kPrepend;
      read.content = values_.RequiredText(step, "prepend", place);
    } else if (type == "Replace") {
      ReadReplace(step, &read);
    } else if (type == "Precompiled") {
      read.kind = Kind::kPrecompiled;
      read.map = ReadMap(step);
    } else if (type == "BertNormalizer") {
      read.kind = Kind::kBert;
      read.clean_text = values_.FlagOf(step, "clean_text", true, place);
      read.space_chinese = values_.FlagOf(step, "handle_chinese_chars", true, place);
      read.lowercase = values_.FlagOf(step, "lowercase", true, place);
      read.strip_accents = values_.FlagOf(step, "strip_accents", read.lowercase, place);
    } else {
      values_.RefuseUnsupported("the normalizer " + type);
    }
    return read;
  }

  void ReadReplace(Element step, NormalizerStep* read) const {
    const std::string place = "normalizer.Replace";
    read->content = values_.RequiredText(step, "content", place);
    const Element pattern = values_.Required(step, "pattern", place);
    if (!pattern.is_object()) values_.RefuseShape(place + ".pattern");
    if (const auto text = values_.Member(pattern, "String")) {
      read->kind = NormalizerStep::Kind::kReplace;
      read->pattern = values_.TextOf(*text, place + ".pattern");
      if (read->pattern.empty()) values_.RefuseUnsupported("the normalizer Replace of no text");
      return;
    }
    const std::string_view expression = values_.RequiredText(pattern, "Regex", place + ".pattern");
    if (expression == "\\A" + std::string(kSpaceMark)) {
      read->kind = NormalizerStep::Kind::kReplaceStart;
      read->pattern = kSpaceMark;
      return;
    }
    if (expression == "\\A +| +\\z" && read->content.empty()) {
      read->kind = NormalizerStep::Kind::kTrimSpaces;
      return;
    }
    read->kind = NormalizerStep::Kind::kReplaceRuns;
    read->any_white_space = expression.starts_with("\\s");
    if (expression == " {2,}" || expression == "\\s{2,}") {
      read->shortest_run = 2;
    } else if (expression != " +" && expression != "\\s+") {
      values_.RefuseUnsupported("the normalizer Replace of the regular expression " +
                                std::string(expression));
    }
  }

  std::shared_ptr<const CharacterMap> ReadMap(Element step) const {
    const std::string place = "normalizer.Precompiled";
    const auto serialized = DecodeBase64(values_.RequiredText(step, "precompiled_charsmap", place));
    if (!serialized || serialized->empty()) values_.Refuse("has a character map that is no base64", place);
    auto map = std::make_shared<CharacterMap>();
    const std::string problem = CharacterMap::Read(*serialized, map.get());
    if (!problem.empty()) values_.Refuse("is damaged: " + problem, place);
    // Alone among characters of two bytes these begin emoji, which text_normalizer.h does not look for.
    for (const std::string_view sign : {"\xC2\xA9", "\xC2\xAE"}) {
      if (map->FindShortest(sign).size_bytes != 0) {
        values_.RefuseUnsupported("the normalizer Precompiled with a rule for " + std::string(sign));
      }
    }
    return map;
  }

  void ReadPreTokenizer() {
    const std::string place = "pre_tokenizer";
    const auto pre_tokenizer = values_.Member(root_, place);
    if (!pre_tokenizer) return;
    bool metaspace = false, bert = false;
    for (const Element step : values_.Steps(*pre_tokenizer, "pretokenizers", place)) {
      const std::string type = values_.TypeOf(step, place);
      if (metaspace || bert) values_.RefuseUnsupported("the pre-tokenizer " + type + " after another");
      if (type == "WhitespaceSplit" && !pipeline_.cut_at_white_space) {
        pipeline_.cut_at_white_space = true;
      } else if (type == "Metaspace") {
        ReadMetaspace(step);
        metaspace = true;
      } else if (type == "BertPreTokenizer") {
        pipeline_.cut_at_white_space = pipeline_.cut_punctuation = bert = true;
      } else if (type == "Split") {
        ReadSplit(step);
      } else {
        values_.RefuseUnsupported("the pre-tokenizer " + type);
      }
    }
    if (metaspace && pipeline_.cut_at_white_space && pipeline_.prepend == TextPipeline::Prepend::kFirst) {
      values_.RefuseUnsupported(
          "the pre-tokenizer Metaspace with prepend_scheme first after WhitespaceSplit");
    }
    if (MayLosePartOfFirst() && pipeline_.prepend == TextPipeline::Prepend::kFirst) {
      values_.RefuseUnsupported(
          "the pre-tokenizer Metaspace with prepend_scheme first after a normalizer that may take out part "
          "of what "
          "one character became");
    }
  }

  /// Of what the first character becomes, the library takes any rest for the beginning of the text;
  /// text_normalizer.h only all. Notes whether steps expand characters.
  bool MayLosePartOfFirst() {
    using Kind = NormalizerStep::Kind;
    bool& expanded = pipeline_.expands;
    for (const NormalizerStep& step : pipeline_.normalizer) {
      const bool removes =
          step.kind == Kind::kStripAccents || step.kind == Kind::kNmt || step.kind == Kind::kBert ||
          step.kind == Kind::kReplace || step.left || step.kind == Kind::kTrimSpaces ||
          (step.kind == Kind::kReplaceRuns && (step.any_white_space || step.content.empty()));
      if (removes && expanded) return true;
      expanded = expanded || step.kind == Kind::kForm || step.kind == Kind::kLowercase ||
                 step.kind == Kind::kPrecompiled || step.kind == Kind::kReplace ||
                 step.kind == Kind::kReplaceRuns || step.kind == Kind::kReplaceStart ||
                 step.kind == Kind::kPrepend || step.kind == Kind::kBert;
    }
    return false;
  }

  void ReadMetaspace(Element step) {
    const std::string place = "pre_tokenizer.Metaspace";
    if (values_.RequiredText(step, "replacement", place) != kSpaceMark) {
      values_.RefuseUnsupported("the pre-tokenizer Metaspace with another replacement than U+2581");
    }
    pipeline_.prepend = ReadPrependScheme(step, place);
    pipeline_.cut_before_marks = values_.FlagOf(step, "split", true, place);
    pipeline_.folds_spaces = true;
  }

  TextPipeline::Prepend ReadPrependScheme(Element step, const std::string& place) const {
    const auto scheme = values_.Member(step, "prepend_scheme");
    const std::string_view name = scheme ? values_.TextOf(*scheme, place + ".prepend_scheme") : "always";
    if (!values_.FlagOf(step, "add_prefix_space", true, place) && name != "never") {
      values_.Refuse("has an add_prefix_space that its prepend_scheme is not", place);
    }
    if (name == "always") return TextPipeline::Prepend::kAlways;
    if (name == "first") return TextPipeline::Prepend::kFirst;
    if (name != "never") values_.Refuse("has an unknown prepend_scheme", place);
    return TextPipeline::Prepend::kNever;
  }

  /// Split at ' ' finds none where the normalizer has replaced them all.
  void ReadSplit(Element step) const {
    const Element pattern = values_.Required(step, "pattern", "pre_tokenizer.Split");
    const auto text = pattern.is_object() ? values_.Member(pattern, "String") : std::nullopt;
    const bool finds_none = text && text->is_string() &&
                            values_.TextOf(*text, "pre_tokenizer.Split") == " " && PlaceAfterFold() != 0 &&
                            !values_.FlagOf(step, "invert", false, "Split");
    if (!finds_none) values_.RefuseUnsupported("the pre-tokenizer Split");
  }

  void ReadDecoder() {
    const auto decoder = values_.Member(root_, "decoder");
    if (!decoder) return;
    pipeline_.has_decoder = true;
    for (const Element step : values_.Steps(*decoder, "decoders", "decoder")) {
      pipeline_.decoder.push_back(ReadDecoderStep(step));
    }
    double growth = 1;
    for (const DecoderStep& step : pipeline_.decoder) {
      if (step.kind == DecoderStep::Kind::kReplace) growth *= GrowthOf(step.content, step.pattern);
    }
    if (growth > kMostGrowth)
      values_.RefuseUnsupported("a decoder that makes texts a thousand times as long");
  }

  DecoderStep ReadDecoderStep(Element step) const {
    using Kind = DecoderStep::Kind;
    const std::string place = "decoder", type = values_.TypeOf(step, place);
    DecoderStep read;
    if (type == "Replace") {
      read.kind = Kind::kReplace;
      const Element pattern = values_.Required(step, "pattern", place);
      const auto text = pattern.is_object() ? values_.Member(pattern, "String") : std::nullopt;
      if (!text) values_.RefuseUnsupported("the decoder Replace of a regular expression");
      read.pattern = values_.TextOf(*text, place);
      read.content = values_.RequiredText(step, "content", place);
      if (read.pattern.empty()) values_.RefuseUnsupported("the decoder Replace of no text");
    } else if (type == "ByteFallback") {
      read.kind = Kind::kByteFallback;
    } else if (type == "Fuse") {
      read.kind = Kind::kFuse;
    } else if (type == "Strip") {
      read.kind = Kind::kStrip;
      read.content = values_.RequiredText(step, "content", place);
      if (DecodeUtf8(read.content).size_bytes != read.content.size() || read.content.empty()) {
        values_.Refuse("strips what is not one character", place);
      }
      read.start = values_.IdOf(values_.Required(step, "start", place), place);
      read.stop = values_.IdOf(values_.Required(step, "stop", place), place);
    } else if (type == "Metaspace") {
      read.kind = Kind::kMetaspace;
      if (values_.RequiredText(step, "replacement", place) != kSpaceMark) {
        values_.RefuseUnsupported("the decoder Metaspace with another replacement than U+2581");
      }
      read.drops_first = ReadPrependScheme(step, place) != TextPipeline::Prepend::kNever;
    } else if (type == "WordPiece") {
      read.kind = Kind::kWordPiece;
      read.content = values_.RequiredText(step, "prefix", place);
      read.cleanup = values_.FlagOf(step, "cleanup", true, place);
    } else {
      values_.RefuseUnsupported("the decoder " + type);
    }
    return read;
  }

  void ReadModel() {
    const Element model = values_.Required(root_, "model", "");
    if (!model.is_object()) values_.RefuseShape("model");
    const auto type = values_.Member(model, "type");
    const std::string_view name = type ? values_.TextOf(*type, "model.type") : "BPE";
    if (name == "BPE") {
      ReadBpe(model);
    } else if (name == "Unigram") {
      ReadUnigram(model);
    } else if (name == "WordPiece") {
      ReadWordPiece(model);
    } else {
      values_.RefuseUnsupported("a model of type " + std::string(name));
    }
  }

  void ReadVocabulary(Element model) {
    for (const dom::key_value_pair entry :
         values_.ObjectOf(values_.Required(model, "vocab", "model"), "model.vocab")) {
      const uint32_t id = values_.IdOf(entry.value, "model.vocab");
      if (!ids_.emplace(entry.key, id).second)
        values_.Refuse("has a token twice", "model.vocab: " + Quoted(entry.key));
      pipeline_.tokens.push_back({std::string(entry.key), id, 0});
    }
    if (ids_.empty()) values_.Refuse("has no tokens", "model.vocab");
  }

  void ReadUnknown(Element model, bool required) {
    const auto token = values_.Member(model, "unk_token");
    if (!token && !required) return;
    const std::string_view text = token ? values_.TextOf(*token, "model.unk_token") : "[UNK]";
    const auto found = ids_.find(text);
    if (found == ids_.end()) values_.Refuse("lacks its unk_token " + Quoted(text), "model.vocab");
    pipeline_.unk_id = found->second;
  }

  /// Whether there is a token for every byte; some, and not all, would be neither here nor there.
  bool HasByteTokens() const {
    std::bitset<256> bytes;
    for (const TextPipeline::Token& token : pipeline_.tokens) {
      if (const std::optional<uint8_t> byte = ByteOfPiece(token.text)) bytes.set(*byte);
    }
    if (bytes.any() && !bytes.all()) values_.RefuseUnsupported("byte_fallback with tokens for some bytes");
    return bytes.any();
  }

  void ReadBpe(Element model) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto affix = values_.Member(model, key);
      if (affix && !values_.TextOf(*affix, key).empty()) values_.RefuseUnsupported(key);
    }
    if (const auto dropout = values_.Member(model, "dropout")) {
      double value = 0;
      if (dropout->get(value)) values_.RefuseShape("model.dropout");
      if (value != 0) values_.RefuseUnsupported("dropout");
    }
    pipeline_.fuse_unk = values_.FlagOf(model, "fuse_unk", false, "model");
    pipeline_.ignore_merges = values_.FlagOf(model, "ignore_merges", false, "model");
    ReadVocabulary(model);
    ReadUnknown(model, /*required=*/false);
    if (pipeline_.cut_before_marks && !ids_.contains(kSpaceMark)) {
      values_.RefuseUnsupported("the pre-tokenizer Metaspace without a token U+2581");
    }
    pipeline_.byte_fallback = values_.FlagOf(model, "byte_fallback", false, "model") && HasByteTokens();
    // Unknown characters would be left out before what is beside them merges.
    if (!pipeline_.byte_fallback && pipeline_.unk_id == kNoId) {
      values_.RefuseUnsupported("a BPE of characters with neither unk_token nor byte_fallback");
    }
  }

  void ReadUnigram(Element model) {
    const std::string place = "model.vocab";
    for (const Element entry : values_.ArrayOf(values_.Required(model, "vocab", "model"), place)) {
      const dom::array pair = values_.ArrayOf(entry, place);
      double score = 0;
      if (pair.size() != 2 || pair.at(1).get(score)) values_.RefuseShape(place);
      if (!std::isfinite(score)) values_.Refuse("has a score that is no finite number", place);
      const auto id = static_cast<uint32_t>(pipeline_.tokens.size());
      if (id == kMaxTokens) values_.Refuse("has too many tokens", place);
      const std::string_view text = values_.TextOf(pair.at(0), place);
      pipeline_.tokens.push_back({std::string(text), id, AsSerdeReads(score)});
    }
    const auto unknown = values_.Member(model, "unk_id");
    if (!unknown) values_.RefuseUnsupported("a Unigram model without unk_id");
    pipeline_.unk_id = values_.IdOf(*unknown, "model.unk_id");
    if (pipeline_.unk_id >= pipeline_.tokens.size()) values_.Refuse("lacks the token of its unk_id", place);
    pipeline_.model = TextPipeline::Model::kUnigram;
    pipeline_.byte_fallback = values_.FlagOf(model, "byte_fallback", false, "model") && HasByteTokens();
  }

  void ReadWordPiece(Element model) {
    pipeline_.model = TextPipeline::Model::kWordPiece;
    ReadVocabulary(model);
    ReadUnknown(model, /*required=*/true);
    const auto prefix = values_.Member(model, "continuing_subword_prefix");
    pipeline_.continuing_prefix = prefix ? values_.TextOf(*prefix, "model.continuing_subword_prefix") : "##";
    if (const auto longest = values_.Member(model, "max_input_chars_per_word")) {
      uint64_t characters = 0;
      if (longest->get(characters)) values_.RefuseShape("model.max_input_chars_per_word");
      pipeline_.longest_word = characters;
    }
  }

  const Element root_;
  const TokenizerJsonValues& values_;
  TextPipeline pipeline_;
  std::unordered_map<std::string_view, uint32_t> ids_;
};

}  // namespace

bool TextPipeline::marks_start() const {
  if (prepend != Prepend::kNever) return true;
  for (const NormalizerStep& step : normalizer) {
    if (step.kind == NormalizerStep::Kind::kPrepend) return true;
  }
  return false;
}

TextPipeline ReadTextPipeline(Element root, const TokenizerJsonValues& values) {
  return Reader(root, values).Read();
}

}  // namespace trainwright

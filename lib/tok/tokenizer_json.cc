#include "lib/tok/tokenizer_json.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "lib/base/error.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/space_marks.h"
#include "lib/tok/text_normalizer.h"
#include "lib/tok/text_pipeline_json.h"
#include "lib/tok/tokenizer_json_values.h"
#include "lib/tok/unicode.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

namespace dom = simdjson::dom;

constexpr uint32_t kMaxVocabulary = 1 << 24;

/// The byte that each character of GPT-2's table stands for.
/// \source bytes_to_unicode of GPT-2's encoder.py
class ByteCharacters {
 public:
  ByteCharacters() {
    uint32_t shifted = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      bytes_[printable ? byte : shifted++] = static_cast<int>(byte);
    }
  }
  /// nullopt when `text` has a character that stands for no byte.
  std::optional<std::string> Bytes(std::string_view text) const {
    std::string bytes;
    while (!text.empty()) {
      const Utf8Character character = DecodeUtf8(text);
      const auto found = bytes_.find(character.code_point);
      if (character.size_bytes == 0 || found == bytes_.end()) return std::nullopt;
      bytes.push_back(static_cast<char>(found->second));
      text.remove_prefix(character.size_bytes);
    }
    return bytes;
  }

 private:
  std::unordered_map<uint32_t, int> bytes_;
};

/// They are those of the last call before the file was saved. transformers sets both anew in each call, so
/// that texts are neither cut nor padded by them, and nor are they here.
void CheckTruncationAndPadding(dom::element root, const TokenizerJsonValues& values) {
  const auto require_count = [&](dom::element object, const char* key, const std::string& place) {
    uint64_t count = 0;
    if (values.Required(object, key, place).get(count)) values.RefuseShape(place + "." + key);
  };
  if (const auto truncation = values.Member(root, "truncation")) {
    const std::string place = "truncation";
    values.RequiredText(*truncation, "strategy", place);
    for (const char* key : {"max_length", "stride"}) require_count(*truncation, key, place);
  }
  if (const auto padding = values.Member(root, "padding")) {
    const std::string place = "padding";
    for (const char* key : {"direction", "pad_token"}) values.RequiredText(*padding, key, place);
    for (const char* key : {"pad_id", "pad_type_id"}) require_count(*padding, key, place);
    const dom::element strategy = values.Required(*padding, "strategy", place);
    if (strategy.is_object()) {
      require_count(strategy, "Fixed", place + ".strategy");
    } else {
      values.TextOf(strategy, place + ".strategy");
    }
  }
}

class Reader : private TokenizerJsonValues {
 public:
  Reader(std::string_view content, const std::string& name) : TokenizerJsonValues(name) {
    dom::element root;
    if (const auto error = parser_.parse(simdjson::padded_string(content)).get(root)) {
      if (error == simdjson::MEMALLOC) throw std::bad_alloc();
      Refuse(std::string("is not valid JSON: ") + simdjson::error_message(error));
    }
    root_ = root;
    if (!root_.is_object()) Refuse("is not a JSON object");
  }

  TokenizerJson Read() {
    if (const auto version = Member(root_, "version"); !version || TextOf(*version, "version") != "1.0") {
      Refuse("is not a tokenizer.json file of version 1.0");
    }
    CheckTruncationAndPadding(root_, *this);
    if (IsByteLevel()) {
      ReadNormalizer();
      ReadPreTokenizer();
      ReadDecoder();
      ReadModel();
    } else {
      json_.text = ReadTextPipeline(root_, *this);
      TakeTextModel();
    }
    ReadAddedTokens();
    ReadPostProcessor();
    NameSpecialIds();
    return std::move(json_);
  }

 private:
  bool IsByteLevel() const {
    const auto pre_tokenizer = Member(root_, "pre_tokenizer"), model = Member(root_, "model");
    const auto type = model && model->is_object() ? Member(*model, "type") : std::nullopt;
    if (type && TextOf(*type, "model.type") != "BPE") return false;
    if (!pre_tokenizer) return false;
    const auto steps = Steps(*pre_tokenizer, "pretokenizers", "pre_tokenizer");
    return std::any_of(steps.begin(), steps.end(),
                       [&](dom::element step) { return TypeOf(step, "pre_tokenizer") == "ByteLevel"; });
  }

  void TakeTextModel() {
    TextPipeline& text = *json_.text;
    ids_.reserve(text.tokens.size());
    for (const TextPipeline::Token& token : text.tokens) ids_[token.text] = token.id;
    for (const TextPipeline::Token& token : text.tokens) {
      TokenizerJson::Token& entry = TokenAt(token.id);
      if (entry.in_model) Refuse("has the id " + std::to_string(token.id) + " twice", "model.vocab");
      entry.in_model = true;
      entry.bytes = token.text;
    }
    json_.unk_id = text.unk_id;
    normalizer_ = TextNormalizer(text.normalizer);
    if (text.model != TextPipeline::Model::kBpe) return;
    ReadMerges(Required(root_, "model", ""));
    for (const BytePairMerge& merge : json_.merges) {
      for (const uint32_t id : {merge.left, merge.right}) {
        if (text.byte_fallback && ByteOfPiece(json_.tokens[id].bytes)) {
          RefuseUnsupported("a merge of a token that stands for a byte");
        }
      }
    }
    text.merges = std::move(json_.merges);
  }

  void ReadNormalizer() {
    const auto normalizer = Member(root_, "normalizer");
    if (!normalizer) return;
    for (const dom::element step : Steps(*normalizer, "normalizers", "normalizer")) {
      const std::string type = TypeOf(step, "normalizer");
      if (type != "NFC") RefuseUnsupported("the normalizer " + type);
      json_.nfc = true;
    }
  }

  void ReadPreTokenizer() {
    const std::string place = "pre_tokenizer";
    const auto pre_tokenizer = Member(root_, place);
    if (!pre_tokenizer) RefuseUnsupported("no pre-tokenizer");
    const std::vector<dom::element> steps = Steps(*pre_tokenizer, "pretokenizers", place);
    bool split = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      const std::string type = TypeOf(steps[i], place);
      const bool last = i + 1 == steps.size();
      if (type == "Digits" && i == 0 && !last) {
        if (!FlagOf(steps[i], "individual_digits", false, place)) {
          RefuseUnsupported("the pre-tokenizer Digits without individual_digits");
        }
        json_.cut_digits = true;
      } else if (type == "Split" && i == 0 && !last) {
        json_.cut_rule = RuleOfSplit(steps[i]);
        split = true;
      } else if (type == "ByteLevel" && last) {
        json_.add_prefix_space = FlagOf(steps[i], "add_prefix_space", true, place);
        const bool use_regex = FlagOf(steps[i], "use_regex", true, place);
        if (json_.add_prefix_space && i > 0) {
          RefuseUnsupported("the pre-tokenizer ByteLevel with add_prefix_space after another");
        }
        if (use_regex && split) RefuseUnsupported("the pre-tokenizer ByteLevel with use_regex after Split");
        if (use_regex) json_.cut_rule = CutRule::kGpt2;
      } else {
        RefuseUnsupported("the pre-tokenizer " + type + " at place " + std::to_string(i + 1) + " of " +
                          std::to_string(steps.size()));
      }
    }
    if (steps.empty() || TypeOf(steps.back(), place) != "ByteLevel") {
      RefuseUnsupported("no pre-tokenizer ByteLevel");
    }
  }

  CutRule RuleOfSplit(dom::element split) const {
    const std::string place = "pre_tokenizer.Split";
    const dom::element pattern = Required(split, "pattern", place);
    if (!pattern.is_object()) RefuseShape(place + ".pattern");
    const auto expression = Member(pattern, "Regex");
    if (!expression) RefuseUnsupported("the pre-tokenizer Split by a fixed text");
    const std::string_view text = TextOf(*expression, place + ".pattern.Regex");
    const auto rule = CutRuleOf(text);
    if (!rule) RefuseUnsupported("the pre-tokenizer Split by the regular expression " + std::string(text));
    const std::string_view behavior = TextOf(Required(split, "behavior", place), place + ".behavior");
    const bool invert = FlagOf(split, "invert", false, place);
    // The expressions match every character, so that nothing is left between two matches.
    const bool cuts = (behavior == "Isolated" && !invert) || (behavior == "Removed" && invert);
    if (!cuts) {
      RefuseUnsupported("the pre-tokenizer Split with behavior " + std::string(behavior) +
                        (invert ? ", inverted" : ""));
    }
    return *rule;
  }

  void ReadDecoder() const {
    const auto decoder = Member(root_, "decoder");
    if (!decoder) RefuseUnsupported("no decoder");
    for (const dom::element step : Steps(*decoder, "decoders", "decoder")) {
      const std::string type = TypeOf(step, "decoder");
      if (type != "ByteLevel") RefuseUnsupported("the decoder " + type);
    }
  }

  TokenizerJson::Token& TokenAt(uint32_t id) {
    // A few ids may be left out; a table of mostly nothing is no tokenizer, and would take all memory.
    if (id >= ids_.size() * 2 + 65536) Refuse("has the id " + std::to_string(id) + ", far beyond its tokens");
    if (id >= json_.tokens.size()) json_.tokens.resize(id + 1);
    return json_.tokens[id];
  }

  void ReadModel() {
    const std::string place = "model";
    const dom::element model = Required(root_, place, "");
    if (!model.is_object()) RefuseShape(place);
    // Files of before the version 0.8 of the library name no type.
    if (const auto type = Member(model, "type"); type && TextOf(*type, "model.type") != "BPE") {
      RefuseUnsupported("a model of type " + std::string(TextOf(*type, "model.type")));
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const auto affix = Member(model, key);
      if (affix && !TextOf(*affix, place + "." + key).empty()) RefuseUnsupported(key);
    }
    for (const char* key : {"byte_fallback", "fuse_unk"}) {
      if (FlagOf(model, key, false, place)) RefuseUnsupported(key);
    }
    if (const auto dropout = Member(model, "dropout")) {
      double value = 0;
      if (dropout->get(value)) RefuseShape("model.dropout");
      if (value != 0) RefuseUnsupported("dropout");
    }
    json_.ignore_merges = FlagOf(model, "ignore_merges", false, place);

    const dom::object vocabulary = ObjectOf(Required(model, "vocab", place), "model.vocab");
    ids_.reserve(vocabulary.size());
    for (const dom::key_value_pair entry : vocabulary) {
      if (!ids_.emplace(entry.key, IdOf(entry.value, "model.vocab")).second) {
        Refuse("has a token twice", "model.vocab: " + Quoted(entry.key));
      }
    }
    for (const dom::key_value_pair entry : vocabulary) {
      const uint32_t id = IdOf(entry.value, "model.vocab");
      TokenizerJson::Token& token = TokenAt(id);
      if (token.in_model) Refuse("has the id " + std::to_string(id) + " twice", "model.vocab");
      token.in_model = true;
      auto bytes = byte_characters_.Bytes(entry.key);
      token.spells_bytes = bytes.has_value();
      token.bytes = bytes ? *std::move(bytes) : std::string(entry.key);
    }
    if (ids_.empty()) Refuse("has no tokens", "model.vocab");

    uint32_t unknown = kNoId;
    if (const auto token = Member(model, "unk_token")) {
      const std::string_view text = TextOf(*token, "model.unk_token");
      const auto found = ids_.find(text);
      if (found == ids_.end()) Refuse("lacks its unk_token " + Quoted(text), "model.vocab");
      unknown = json_.unk_id = found->second;
    }
    json_.byte_ids.fill(unknown);
    for (uint32_t id = 0; id < json_.tokens.size(); ++id) {
      const TokenizerJson::Token& token = json_.tokens[id];
      if (token.spells_bytes && token.bytes.size() == 1) {
        json_.byte_ids[static_cast<uint8_t>(token.bytes[0])] = id;
      }
    }
    ReadMerges(model);
  }

  void ReadMerges(dom::element model) {
    const dom::array merges = ArrayOf(Required(model, "merges", "model"), "model.merges");
    json_.merges.reserve(merges.size());
    if (merges.size() >= kMaxVocabulary - 1) Refuse("has too many merges", "model.merges");
    size_t line = 0;
    std::string joined;
    for (const dom::element merge : merges) {
      const std::string place = "model.merges[" + std::to_string(line++) + "]";
      std::string_view left, right;
      if (merge.is_string()) {
        const std::string_view text = TextOf(merge, place);
        if (text.starts_with("#version")) continue;
        const size_t space = text.find(' ');
        if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
          Refuse("has a merge that is not two tokens", place);
        }
        left = text.substr(0, space);
        right = text.substr(space + 1);
      } else {
        const dom::array pair = ArrayOf(merge, place);
        if (pair.size() != 2) Refuse("has a merge that is not two tokens", place);
        left = TextOf(pair.at(0), place);
        right = TextOf(pair.at(1), place);
      }
      joined.assign(left).append(right);
      const uint32_t left_id = IdOfMergeToken(left, place), right_id = IdOfMergeToken(right, place);
      if (json_.unk_id != kNoId && (left_id == json_.unk_id || right_id == json_.unk_id)) {
        RefuseUnsupported("a merge of its unk_token");
      }
      const auto rank = static_cast<uint32_t>(json_.merges.size());
      json_.merges.push_back({left_id, right_id, IdOfMergeToken(joined, place), rank});
    }
  }
  uint32_t IdOfMergeToken(std::string_view token, const std::string& place) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) Refuse("merges tokens that are not in its vocabulary: " + Quoted(token), place);
    return found->second;
  }

  void ReadAddedTokens() {
    const auto list = Member(root_, "added_tokens");
    if (!list) return;
    // The library numbers new tokens itself, behind the model's.
    auto next_id = static_cast<uint32_t>(json_.text ? json_.text->tokens.size() : ids_.size());
    std::unordered_map<std::string_view, uint32_t> added;
    std::set<std::pair<std::string, bool>> patterns;
    for (const dom::element entry : ArrayOf(*list, "added_tokens")) {
      const std::string place = "added_tokens[" + std::to_string(added.size()) + "]";
      if (!entry.is_object()) RefuseShape(place);
      AddedToken token;
      const std::string_view content = TextOf(Required(entry, "content", place), place + ".content");
      if (content.empty()) Refuse("has an added token without text", place);
      token.content = content;
      token.id = IdOf(Required(entry, "id", place), place + ".id");
      token.single_word = FlagOf(entry, "single_word", false, place);
      token.left_strip = FlagOf(entry, "lstrip", false, place);
      token.right_strip = FlagOf(entry, "rstrip", false, place);
      token.normalized = FlagOf(entry, "normalized", true, place);
      token.special = FlagOf(entry, "special", false, place);
      if (!added.emplace(content, token.id).second) Refuse("adds " + Quoted(content) + " twice", place);
      const auto in_model = ids_.find(content);
      const uint32_t expected = in_model == ids_.end() ? next_id++ : in_model->second;
      if (token.id != expected) {
        Refuse("gives the added token " + Quoted(content) + " the id " + std::to_string(token.id) +
                   ", and the library gives it " + std::to_string(expected),
               place);
      }
      TokenizerJson::Token& entry_of_id = TokenAt(token.id);
      if (entry_of_id.in_model && in_model == ids_.end()) {
        Refuse("has the id " + std::to_string(token.id) + " twice", place);
      }
      entry_of_id.special = token.special;
      token.pattern = token.content;
      if (json_.text) {
        entry_of_id.bytes = NormalizeAdded(&token, place);
        // As the library looks for special tokens among texts.
        entry_of_id.special = token.special && entry_of_id.bytes == token.content;
      } else {
        if (token.normalized && json_.nfc) NormalizeNfc(token.content, &token.pattern);
        auto bytes = byte_characters_.Bytes(token.pattern);
        entry_of_id.bytes = bytes ? *std::move(bytes) : token.pattern;
      }
      if (!patterns.emplace(token.pattern, token.normalized).second) {
        Refuse("has two added tokens that read alike: " + Quoted(content), place);
      }
      json_.added_tokens.push_back(std::move(token));
    }
  }

  /// \returns what the token is to the decoder
  std::string NormalizeAdded(AddedToken* token, const std::string& place) const {
    if (!token->normalized) return token->content;
    normalizer_.Normalize(token->content, /*prepend=*/true, &token->pattern);
    // Where it ends among what the first character became, the library takes the rest for the beginning of
    // the text.
    if (json_.text->expands && json_.text->prepend == TextPipeline::Prepend::kFirst) {
      RefuseUnsupported(
          "a normalized added token before the pre-tokenizer Metaspace with prepend_scheme first");
    }
    if (token->pattern.empty()) Refuse("has an added token of which nothing is left, normalized", place);
    if (!json_.text->folds_by_normalizer) return token->pattern;
    if (token->left_strip || token->right_strip) {
      RefuseUnsupported("an added token that is normalized and strips white space");
    }
    token->pattern = WithSpaces(token->pattern);
    return WithMarks(token->pattern);
  }

  /// Ids of the special tokens that the post-processor puts at the ends of a text, if it does.
  void ReadPostProcessor() {
    const auto post_processor = Member(root_, "post_processor");
    if (!post_processor) return;
    for (const dom::element step : Steps(*post_processor, "processors", "post_processor")) {
      const std::string type = TypeOf(step, "post_processor");
      if (type == "ByteLevel") continue;
      if (type == "BertProcessing" || type == "RobertaProcessing") {
        json_.bos_id = IdOfPair(step, "cls");
        json_.eos_id = IdOfPair(step, "sep");
        continue;
      }
      if (type != "TemplateProcessing") RefuseUnsupported("the post-processor " + type);
      bool before = true;
      for (const dom::element item : ArrayOf(Required(step, "single", type), type)) {
        if (!item.is_object()) RefuseShape(type);
        const auto special = Member(item, "SpecialToken");
        if (!special) {
          before = false;
          continue;
        }
        if (!special->is_object()) RefuseShape(type);
        const uint32_t id = IdOfEnd(TextOf(Required(*special, "id", type), type));
        (before ? json_.bos_id : json_.eos_id) = id;
      }
    }
  }
  uint32_t IdOfPair(dom::element step, std::string_view key) const {
    const std::string place = "post_processor." + std::string(key);
    const dom::array pair = ArrayOf(Required(step, key, place), place);
    if (pair.size() != 2) RefuseShape(place);
    return IdOfEnd(TextOf(pair.at(0), place));
  }
  /// What the post-processor names may be a token of the model that no added token repeats.
  uint32_t IdOfEnd(std::string_view content) const {
    const uint32_t added = IdOfSpecial(content);
    const auto of_model = ids_.find(content);
    return added == kNoId && of_model != ids_.end() ? of_model->second : added;
  }
  uint32_t IdOfSpecial(std::string_view content) const {
    for (const AddedToken& token : json_.added_tokens) {
      if (token.content == content) return token.id;
    }
    return kNoId;
  }

  /// A file says nowhere which tokens begin and end a text when its post-processor adds none; the families
  /// have names for them.
  void NameSpecialIds() {
    const auto first_of = [&](std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) {
        if (const uint32_t id = IdOfSpecial(name); id != kNoId) return id;
      }
      return kNoId;
    };
    const uint32_t end_of_text = IdOfSpecial("<|endoftext|>");
    if (json_.bos_id == kNoId) json_.bos_id = first_of({"<|begin_of_text|>", "<|startoftext|>", "<s>"});
    // GPT-2 and GPT-NeoX begin and end texts with one token; who has marks for chat does so only by its
    // tokenizer_config.json.
    if (json_.bos_id == kNoId && IdOfSpecial("<|im_start|>") == kNoId) json_.bos_id = end_of_text;
    if (json_.eos_id == kNoId) json_.eos_id = first_of({"<|endoftext|>", "<|end_of_text|>", "</s>"});
    json_.pad_id = first_of({"<|padding|>", "<pad>", "<|finetune_right_pad_id|>"});
    if (!json_.text) return;
    if (json_.bos_id == kNoId) json_.bos_id = first_of({"<bos>", "[CLS]"});
    if (json_.eos_id == kNoId) json_.eos_id = first_of({"<eos>", "[SEP]"});
    if (json_.pad_id == kNoId) json_.pad_id = first_of({"[PAD]"});
  }

  dom::parser parser_;
  dom::element root_;
  TokenizerJson json_;
  TextNormalizer normalizer_;
  ByteCharacters byte_characters_;
  std::unordered_map<std::string_view, uint32_t> ids_;  // the model's tokens, as the file writes them
};

}  // namespace

TokenizerJson ParseTokenizerJson(std::string_view content, const std::string& name) {
  return Reader(content, name).Read();
}

uint32_t IdOfToken(const TokenizerJson& json, std::string_view content) {
  for (const AddedToken& token : json.added_tokens) {
    if (token.content == content) return token.id;
  }
  if (json.text) {
    for (const TextPipeline::Token& token : json.text->tokens) {
      if (token.text == content) return token.id;
    }
    return kNoId;
  }
  const std::optional<std::string> bytes = ByteCharacters().Bytes(content);
  for (uint32_t id = 0; id < json.tokens.size(); ++id) {
    const TokenizerJson::Token& token = json.tokens[id];
    if (!token.in_model || token.spells_bytes != bytes.has_value()) continue;
    if (token.bytes == (bytes ? std::string_view(*bytes) : content)) return id;
  }
  return kNoId;
}

}  // namespace trainwright

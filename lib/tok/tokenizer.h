/// Text to token ids and back. Implementations are immutable after construction and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

/// A token with a meaning of its own, like "<s>" or "<|im_end|>", and how it is written.
struct SpecialToken {
  std::string text;
  uint32_t id = kNoId;
  bool matched_in_text = false;  ///< whether Encode gives this id for such text
  /// Looks like a mark and is a word that the model may say itself, like "</think>": no control token.
  bool is_word = false;
};

/// How Decode makes an id part of a text.
enum class DecodedAs : uint8_t {
  kText,       ///< by a text of its own, which ids after it do not change
  kByte,       ///< by a byte of a character: its neighbours' bytes complete it, or it is U+FFFD
  kByteOfRun,  ///< likewise, but each byte of its run is U+FFFD unless all of the run is UTF-8
  kNothing,    ///< as though it were not there
  kBreak       ///< by no text, but a run of bytes ends there
};

struct DecodedId {
  DecodedAs as = DecodedAs::kText;
  char byte = 0;  ///< of kByte and kByteOfRun
};

/// A library that is no part of the suite.
struct LibraryIdentity {
  std::string name;          ///< "libsentencepiece"
  std::string version = {};  ///< of the one that the suite was built with; empty: unknown
  std::string path = {};     ///< of the file that this process has loaded; empty: none that can be read
  std::string sha256 = {};   ///< of that file
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Appends the ids of one document to `ids`, exactly as the reference library gives them for the whole text
  /// (newlines are text; no BOS or EOS is added). Any bytes are accepted; see each tokenizer for invalid
  /// UTF-8.
  virtual void Encode(std::string_view text, std::vector<uint32_t>* ids) const = 0;
  /// Likewise for text that continues a text: without the mark that Encode puts at the beginning, if it
  /// does.
  virtual void EncodeContinued(std::string_view text, std::vector<uint32_t>* ids) const { Encode(text, ids); }
  /// Likewise, but text that spells an added token of tokenizer.json is cut like any other.
  /// \param continued whether the text continues a text
  virtual void EncodeUnmatched(std::string_view text, bool continued, std::vector<uint32_t>* ids) const {
    continued ? EncodeContinued(text, ids) : Encode(text, ids);
  }
  /// Whether Encode and EncodeContinued differ.
  virtual bool marks_start() const { return false; }
  /// Who encodes, for messages: "encoded by the suite itself".
  virtual std::string method() const { return "encoded by the suite itself"; }
  /// Which library it is that encodes; nullopt: the suite does.
  virtual std::optional<LibraryIdentity> library() const { return std::nullopt; }
  /// An independent way to the same ids, which --verify compares with: its method() names it. It may refer to
  /// this tokenizer. Null when there is nothing to compare.
  virtual std::unique_ptr<Tokenizer> MakeReference() const { return nullptr; }
  /// As a reference: whether its ids and other ones of the same text are two cuts of equal worth, of which
  /// its version of the library is known to take another one; else one of the two is wrong.
  virtual bool IsTie(std::span<const uint32_t> ids, std::span<const uint32_t> reference_ids) const {
    static_cast<void>(ids), static_cast<void>(reference_ids);
    return false;
  }
  virtual const std::vector<SpecialToken>& special_tokens() const {
    static const std::vector<SpecialToken> none;
    return none;
  }
  /// Ids back to text; ids >= vocab_size throw Error{kBadInput}.
  virtual std::string Decode(std::span<const uint32_t> ids) const = 0;
  /// What must be known of an id to decode ids as they come, without those long before: O(1).
  virtual DecodedId DecodedIdOf(uint32_t id) const {
    static_cast<void>(id);
    return {};
  }
  virtual const TokenizerIdentity& identity() const = 0;
};

/// What messages say who gave something else.
inline constexpr char kTokenizerHint[] =
    "--tokenizer takes a SentencePiece .model file, a tokenizer.json file (byte-level BPE as of GPT-2, "
    "GPT-NeoX, "
    "Llama 3, Qwen2, SmolLM2; BPE of characters as of Llama 2, Mistral, Gemma; Unigram as of T5, XLM-R; "
    "WordPiece as "
    "of BERT), a .tiktoken file, a folder that holds tokenizer.model, tokenizer.json or tokenizer.tiktoken, "
    "or "
    "\"bytes\"";

/// Whether a token is written as marks are: "<...>" or "[...]".
inline bool LooksLikeMark(std::string_view text) {
  return text.size() >= 3 &&
         ((text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']'));
}

/// \param spec "bytes", or the path of a SentencePiece .model file, of a tokenizer.json file, of a .tiktoken
///     file, or of a folder that holds one of them; tokenizer.model comes first
/// \throws Error{kIo} when it cannot be read, Error{kBadInput} when it is no tokenizer this build knows
std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& spec);

/// A tokenizer from the identity that a stream, shard or checkpoint carries.
/// \throws Error{kBadInput} when the model is missing or its hash is not `identity.sha256`
std::unique_ptr<Tokenizer> TokenizerFromIdentity(const TokenizerIdentity& identity);

}  // namespace trainwright

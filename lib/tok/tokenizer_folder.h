/// Which tokenizer a folder in Hugging Face's layout holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainwright {

/// The field of tokenizer_config.json that marks the built-in tokenizer of bytes, whose tokenizer.json is for
/// transformers alone; "sentencepiece" says that tokenizer.model alone decides how a text begins.
inline constexpr char kTokenizerKindField[] = "trainwright_tokenizer";

/// As LoadTokenizer takes it: the path of tokenizer.model, tokenizer.json or tokenizer.tiktoken, the first
/// that there is, or "bytes"; empty when there is none. LoadTokenizer may yet refuse the file. Where the
/// folder adds tokens that tokenizer.model lacks (lib/tok/folder_added_tokens.h), it is the tokenizer.json
/// that has them.
/// \throws Error{kBadInput} when there is none that has; Error{kIo}
std::string TokenizerOfFolder(const std::string& folder);

/// Before which texts of a conversation comes the mark that SentencePiece puts at the beginning of a text.
enum class StartMarks : uint8_t {
  kBehindBos,       ///< the conversation's first, and those after BOS
  kBehindSpecials,  ///< its first, and those after any special token
  kFirst,           ///< the first alone, where no special token is before it
  kNone
};

/// Of a folder whose tokenizer is its tokenizer.model, as transformers 5 does it.
///
/// With a tokenizer.json beside it, what that says: kBehindSpecials by a normalizer Prepend or a Metaspace
/// with prepend_scheme always, kFirst by first, kNone by never. But of a Llama tokenizer transformers 5 makes
/// a new one, unless it is of a model whose tokenizer.json it takes as it is (Mistral). That one, and one
/// without tokenizer.json, goes by tokenizer_config.json: kNone by "add_prefix_space": false, else
/// kBehindSpecials where it is "legacy" and kFirst where it is not. Where that is not said, or null,
/// transformers 4 takes it for legacy and transformers 5 does not: kBehindBos, unless the tokenizer.json says
/// kFirst, as both take it then.
/// \returns nullopt of a tokenizer.model alone that is not Llama's, of a tokenizer.json that marks by nothing
///     of these, and where tokenizer.model is not what LoadTokenizer takes
/// \throws Error{kIo}, Error{kBadInput} above 1 GiB
std::optional<StartMarks> StartMarksOfFolder(const std::string& folder);

/// Whether a text is to begin without the mark that the folder's tokenizer.model puts there: where
/// transformers, by the tokenizers that are its default, makes a Llama tokenizer of that file and
/// tokenizer_config.json says "add_prefix_space": false.
/// \throws Error{kIo}, Error{kBadInput} above 1 GiB
bool LeavesOutStartMark(const std::string& folder);

/// The file that LoadTokenizer reads: that of a folder, else of this name; empty for the built-in one.
/// \throws as TokenizerOfFolder
std::string TokenizerFileOf(const std::string& name);

}  // namespace trainwright

/// Which tokenizer a folder in Hugging Face's layout holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainwright {

/// The field of tokenizer_config.json that marks the built-in tokenizer of bytes, whose tokenizer.json is for
/// transformers alone.
inline constexpr char kTokenizerKindField[] = "trainwright_tokenizer";

/// As LoadTokenizer takes it: the path of tokenizer.model, tokenizer.json or tokenizer.tiktoken, the first
/// that there is, or "bytes"; empty when there is none. LoadTokenizer may yet refuse the file. Where the
/// folder adds tokens that tokenizer.model lacks (lib/tok/folder_added_tokens.h), it is the tokenizer.json
/// that has them.
/// \throws Error{kBadInput} when there is none that has; Error{kIo}
std::string TokenizerOfFolder(const std::string& folder);

/// Before which texts of a conversation comes the mark that SentencePiece puts at the beginning of a text.
enum class StartMarks : uint8_t {
  kBehindBos,       ///< the conversation's first, and those behind BOS
  kBehindSpecials,  ///< its first, and those behind any special token
  kFirst,           ///< the first alone, where no special token is before it
  kNone
};

/// As tokenizer_config.json asks the Llama tokenizers of transformers for it: kNone by "add_prefix_space":
/// false, else kBehindSpecials where they are "legacy" and kFirst where they are not. Where it does not say
/// whether they are, or null, transformers 4 takes them for legacy and transformers 5 does not: kBehindBos.
/// \returns nullopt of another tokenizer than Llama's, and of a folder with more than tokenizer.model: a
///     tokenizer.json says by its normalizer what it does
/// \throws Error{kIo}, Error{kBadInput} above 1 GiB
std::optional<StartMarks> StartMarksOfFolder(const std::string& folder);

/// The file that LoadTokenizer reads: that of a folder, else of this name; empty for the built-in one.
/// \throws as TokenizerOfFolder
std::string TokenizerFileOf(const std::string& name);

}  // namespace trainwright

/// Which tokenizer a folder in Hugging Face's layout holds.
#pragma once

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

/// Whether a text after any special token begins as one after BOS does, with the mark that SentencePiece puts
/// at the beginning of a text. By the Llama tokenizers of transformers it does where their configuration says
/// that they are "legacy". Where it says nothing, or null, transformers 4 takes them for that and
/// transformers 5 does not: here they are not. Only of a folder with tokenizer.model alone: a tokenizer.json
/// says by its normalizer what it does.
/// \throws Error{kIo}, Error{kBadInput} above 1 GiB
bool MarksTextBehindSpecials(const std::string& folder);

/// The file that LoadTokenizer reads: that of a folder, else of this name; empty for the built-in one.
/// \throws as TokenizerOfFolder
std::string TokenizerFileOf(const std::string& name);

}  // namespace trainwright

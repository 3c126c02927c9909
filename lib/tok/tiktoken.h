/// The vocabularies of the Python package tiktoken: files of one token a line, in base64, and its rank.
///
/// Such a file does not say how text is cut; that goes with its name. Known here, by their content, are
/// r50k_base (GPT-2), p50k_base, cl100k_base and o200k_base; every other is refused. \source tiktoken
/// 0.14.0, openai_public.py and src/lib.rs
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/tok/tokenizer_json.h"

namespace trainwright {

struct TiktokenVocabulary {
  std::string name;
  CutRule cut_rule = CutRule::kNone;
  std::vector<std::pair<std::string, uint32_t>> special_tokens;  ///< the first ends a text, and begins one
};

/// Whether a file starts like such a file: base64, a space, a number, a line's end.
bool LooksLikeTiktoken(std::string_view content);

/// What the file with this content is known to be.
/// \throws Error{kBadInput} for one that is not known
TiktokenVocabulary KnownTiktokenVocabulary(std::string_view content, const std::string& name);

/// A vocabulary as a tokenizer.json would describe it, could it say that all ways to make a token have one
/// rank. Special tokens are never found in text, as by encode_ordinary.
/// \throws Error{kBadInput} when the file is malformed
TokenizerJson ParseTiktoken(std::string_view content, const TiktokenVocabulary& vocabulary,
                            const std::string& name);

}  // namespace trainwright

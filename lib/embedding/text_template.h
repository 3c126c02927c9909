/// How sentence-transformers writes a text of a model's folder.
#pragma once

#include <optional>
#include <string>

#include "lib/dist/world.h"
#include "lib/formats/text_role.h"
#include "lib/nn/pooling/pooling.h"

namespace trainwright {

/// The tokenizer's special tokens, and the prompt that config_sentence_transformers.json has for texts that
/// come with none. What the library pools comes between [ and ]; where that is more than the text, no place
/// is left for an instruction.
/// \param pools_prompt include_prompt of the pooling
/// \returns a ChatTemplate, by which an instruction comes before its text as it is given
/// \throws Error{kBadInput} on what no template says; Error{kIo}
std::string ReadTextTemplate(const std::string& folder, Pooling pooling, bool pools_prompt);

/// The same for texts of a role that come with no instruction: with the prompt that the folder names for the
/// role, query or the first of document, passage and corpus that is there, be it empty. Warns, on the writer,
/// of one that no template says.
/// \returns nothing where the folder has none, or its default prompt is the same
/// \throws Error{kBadInput} on marks that no template says; Error{kIo}
std::optional<std::string> ReadRoleTemplate(const std::string& folder, TextRole role, Pooling pooling,
                                            bool pools_prompt, const World& world);

}  // namespace trainwright

/// The chat template in Jinja of a model's folder, as transformers keeps it: chat_template.jinja, or else the
/// field chat_template of tokenizer_config.json, which may be a list of named ones. More of these are files
/// additional_chat_templates/NAME.jinja. Of named ones "default" counts, and "tool_use" for conversations
/// with tools, as in get_chat_template of transformers.
#pragma once

#include <optional>
#include <string>

#include "lib/documents/chat_template.h"

namespace trainwright {

/// \returns nullopt when the folder has none
/// \throws Error{kUsage, kIo} when there are several and none is the default, or a file is broken
std::optional<ChatTemplate> FindFolderTemplate(const std::string& folder);

/// Likewise of an adapter's folder beside its base: the adapter's own, or else the base's. Special tokens
/// that the adapter does not name are named as in the base.
std::optional<ChatTemplate> FindAdapterTemplate(const std::string& adapter, const std::string& base);

/// Of a file NAME.jinja (special tokens are named by the tokenizer_config.json beside it), or NAME.json with
/// the field chat_template.
/// \returns nullopt when it has no such name, or is no file
/// \throws Error{kUsage, kIo}
std::optional<ChatTemplate> LoadTemplateFile(const std::string& path);

/// Writes chat_template.jinja, from which transformers renders what the template renders here: special tokens
/// that it uses and that tokens_folder's tokenizer_config.json names otherwise are set in its first lines.
/// Likewise additional_chat_templates/tool_use.jinja, where conversations with tools have one of their own.
/// A tokenizer_config.json of the folder for which StartMarksOfFolder reads something says from then on what
/// it reads as the template's start_marks, but for a folder with a tokenizer.json or one whose texts begin
/// without a mark (LeavesOutStartMark).
/// \param chat_template in Jinja
/// \throws Error{kIo}
void WriteFolderTemplate(const std::string& folder, const ChatTemplate& chat_template,
                         const std::string& tokens_folder);

/// Takes chat_template.jinja and the field chat_template of tokenizer_config.json away, if they are there.
/// \throws Error{kIo}
void RemoveFolderTemplate(const std::string& folder);

/// Copies the files additional_chat_templates/NAME.jinja of a folder, if there are any.
/// \throws Error{kIo}, Error{kBadInput} above 1 MiB
void CopyNamedTemplates(const std::string& folder, const std::string& out);

}  // namespace trainwright

/// The chat template of training data, as provenance keeps it.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/documents/chat_template.h"

namespace trainwright {

/// The fields by which provenance keeps the template of conversations. RecordedTemplate reads them.
/// \throws Error{kUsage} on what is no Jinja though it says so, but for a template for tools
nlohmann::json RecordOfTemplate(const ChatTemplate& chat_template);

/// The template by which the conversations of a data set were written: of pretokenize's record of options,
/// wherever `provenance` holds it among its inputs.
/// \param provenance of a set of shards or a stream of documents
/// \returns nullopt when there are no conversations, or several templates wrote them
/// \throws Error{kUsage} naming what is no template
std::optional<ChatTemplate> RecordedTemplate(const nlohmann::ordered_json& provenance);

/// Whether several templates wrote the conversations of a data set. RecordedTemplate then gives none of them,
/// as of data without conversations.
/// \param provenance as of RecordedTemplate
bool HasSeveralTemplates(const nlohmann::ordered_json& provenance);

/// Whether there are conversations that no one template in Jinja wrote: several did, or one of another
/// language. A model of them has no chat_template.jinja.
/// \param provenance as of RecordedTemplate
bool LacksJinjaTemplate(const nlohmann::ordered_json& provenance);

/// What the template of a stream of documents had strftime_now return.
/// \param provenance of the stream
/// \returns nullopt when no template that says the time wrote it
std::optional<std::chrono::sys_seconds> RecordedTemplateTime(const nlohmann::ordered_json& provenance);

}  // namespace trainwright

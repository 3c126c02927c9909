/// Texts to retrieve, and queries, as BEIR's corpus.jsonl and queries.jsonl have them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/documents/json_objects.h"

namespace trainwright {

struct RetrievalText {
  std::string id;
  std::string text;  ///< of a document with a title: the title, a blank and the text, if there is any
};

/// Reads {"_id" or "id", "text", and perhaps "title"}: strings, or of the id a whole number. gzip and zstd
/// content is decompressed; memory holds one text.
/// \param path "-" is standard input
/// \returns the SHA-256 of the bytes read, as they are stored, in hexadecimal
/// \throws Error{kBadInput} naming file and line, also of an id that is empty; Error{kIo}; what `use` throws
std::string ForEachRetrievalText(const std::string& path,
                                 const std::function<void(RetrievalText&&, const JsonPlace&)>& use);

/// The text of an id: a string, or of a whole number its digits; empty where it is neither.
std::string IdTextOf(const nlohmann::json& id);

/// The id of an object: its first member of "_id" and "id", a string or a whole number.
/// \throws Error{kBadInput} where it has none or another
std::string IdOf(const nlohmann::json& object, const JsonPlace& place);

/// A document's text after its title, where it has one.
/// \throws Error{kBadInput}
std::string TitledTextOf(const nlohmann::json& object, const JsonPlace& place);

}  // namespace trainwright

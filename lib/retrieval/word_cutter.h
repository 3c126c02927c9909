/// Words of a text, as bag-of-words retrieval counts them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

/// The runs of at least two word characters (letters, marks, digits and connectors such as '_', by Unicode),
/// in lower case, each character by itself, without the most frequent words of English. Bytes that are not
/// UTF-8 part words. Pure and thread-safe.
/// Nothing is stemmed.
/// \source the pattern and the 33 words are those that bm25s and Lucene's English analyser begin with
std::vector<std::string> SearchWords(std::string_view text);

}  // namespace trainwright

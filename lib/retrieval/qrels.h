/// Relevance judgements: which documents answer which queries, as BEIR and TREC write them.
///
/// BEIR's form has three columns between tabs, query, document and grade, under a header line. TREC's has
/// four columns between white space: query, a word that nothing reads, document, grade. gzip and zstd content
/// is decompressed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

namespace trainwright {

/// Grades by document: above 0 is relevant, and the higher the more; 0 and below is not. A document without a
/// grade is not relevant either.
using Judgements = std::unordered_map<std::string, int32_t>;
/// Judgements by query.
using Qrels = std::map<std::string, Judgements>;

/// \param path "-" is standard input
/// \param sha256 of the bytes as they are stored, in hexadecimal; null: not wanted
/// \throws Error{kBadInput} naming file and line: other columns, a grade that is no whole number from -1000
///     to 1000, two grades of one document for one query; without any judgement. Error{kIo}
Qrels ReadQrels(const std::string& path, std::string* sha256 = nullptr);

}  // namespace trainwright

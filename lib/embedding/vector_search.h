/// Exact search by dot products, of vectors from a model or from files of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/embedding/similarity.h"
#include "lib/embedding/top_k.h"
#include "lib/retrieval/document_ids.h"
#include "lib/retrieval/run_file.h"

namespace trainwright {

/// Rows of unit length: a row of zeros stays one.
/// \param values [n, columns]
/// \param kept_columns first numbers of each row that count, at least 1
/// \returns fp32 [n, kept_columns], contiguous
at::Tensor UnitRows(std::span<const float> values, int64_t columns, int64_t kept_columns);
/// \param rows_nd fp32, on the CPU
at::Tensor UnitRows(const at::Tensor& rows_nd);
/// Rows whose dot products are the similarities of vectors: of unit length for the cosine, else as they are.
/// \param rows_nd fp32, on the CPU
/// \returns contiguous
at::Tensor ComparedRows(const at::Tensor& rows_nd, Similarity similarity);

/// Finds the documents of a corpus that are nearest to queries. Documents with equal scores are in
/// trec_eval's order. Not thread-safe.
class VectorSearch {
 public:
  /// \param queries_qd as UnitRows or ComparedRows gives them
  /// \param documents that are kept of each query, at least 1
  VectorSearch(at::Tensor queries_qd, int64_t documents);
  VectorSearch(const VectorSearch&) = delete;  // the order of ties refers to it
  VectorSearch& operator=(const VectorSearch&) = delete;

  /// The next documents of the corpus.
  /// \param rows_nd likewise
  /// \param ids [n]
  void Add(const at::Tensor& rows_nd, std::span<const std::string> ids);
  const DocumentIds& documents() const { return ids_; }

  /// Checks the documents' names, and gives each query's ranking its name.
  /// \param corpus for messages
  /// \param queries [Q]
  /// \throws Error{kBadInput} where two documents have the same name
  RetrievalRun Take(const std::string& corpus, std::span<const std::string> queries);

 private:
  DocumentIds ids_;
  TopK top_;
};

/// Rankings by name, of rows that were found.
/// \param rows of each query
RetrievalRun RunOfRows(const std::vector<std::vector<ScoredRow>>& rows, const DocumentIds& documents,
                       std::span<const std::string> queries);

}  // namespace trainwright

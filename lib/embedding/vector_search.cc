#include "lib/embedding/vector_search.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/nn/pooling/span_pooling.h"

namespace trainwright {

at::Tensor UnitRows(std::span<const float> values, int64_t columns, int64_t kept_columns) {
  TRAINWRIGHT_CHECK(1 <= kept_columns && kept_columns <= columns);
  const int64_t rows = static_cast<int64_t>(values.size()) / columns;
  at::Tensor kept = at::empty({rows, kept_columns}, at::kFloat);
  float* out = kept.mutable_data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    out = std::copy_n(values.data() + row * columns, kept_columns, out);
  }
  at::Tensor lengths = at::empty({rows}, at::kFloat);
  NormalizeRows(kept, lengths);
  return kept;
}

at::Tensor UnitRows(const at::Tensor& rows_nd) {
  const at::Tensor rows = rows_nd.contiguous();
  return UnitRows({rows.const_data_ptr<float>(), static_cast<size_t>(rows.numel())}, rows.size(1),
                  rows.size(1));
}

at::Tensor ComparedRows(const at::Tensor& rows_nd, Similarity similarity) {
  return similarity == Similarity::kCosine ? UnitRows(rows_nd) : rows_nd.contiguous();
}

VectorSearch::VectorSearch(at::Tensor queries_qd, int64_t documents)
    : top_(std::move(queries_qd), documents, ids_.LaterNameFirst()) {}

void VectorSearch::Add(const at::Tensor& rows_nd, std::span<const std::string> ids) {
  TRAINWRIGHT_CHECK(static_cast<int64_t>(ids.size()) == rows_nd.size(0));
  for (const std::string& id : ids) ids_.Add(id);
  top_.Add(rows_nd);
}

RetrievalRun VectorSearch::Take(const std::string& corpus, std::span<const std::string> queries) {
  ids_.Index(corpus);
  return RunOfRows(top_.Take(), ids_, queries);
}

RetrievalRun RunOfRows(const std::vector<std::vector<ScoredRow>>& rows, const DocumentIds& documents,
                       std::span<const std::string> queries) {
  TRAINWRIGHT_CHECK(rows.size() == queries.size());
  RetrievalRun run;
  for (size_t i = 0; i < rows.size(); ++i) {
    Ranking& ranking = run[queries[i]];
    for (const ScoredRow& found : rows[i]) ranking.push_back({documents[found.row], found.score});
  }
  return run;
}

}  // namespace trainwright

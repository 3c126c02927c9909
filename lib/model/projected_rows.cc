#include "lib/model/projected_rows.h"

#include <ATen/ops/empty.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "lib/base/error.h"
#include "lib/nn/pooling/row_projection.h"

namespace trainwright {
namespace {

size_t ProjectionMatrixOf(const Body& body) {
  const std::optional<size_t> matrix = body.projection();
  TRAINWRIGHT_CHECK(matrix);
  return *matrix;
}

}  // namespace

at::Tensor Projected(const Body& body, const at::Tensor& pooled_td) {
  const size_t matrix = ProjectionMatrixOf(body);
  const std::vector<Parameter>& parameters = body.parameters().all();
  at::Tensor projected_tp = at::empty({pooled_td.size(0), parameters[matrix].shape[0]}, pooled_td.options());
  ProjectRows(pooled_td, parameters[matrix].value.to(at::kFloat), parameters[matrix + 1].value.to(at::kFloat),
              projected_tp);
  return projected_tp;
}

at::Tensor ProjectedBackward(Body* body, const at::Tensor& d_projected_tp, const at::Tensor& pooled_td) {
  const size_t matrix = ProjectionMatrixOf(*body);
  FlatParameters& parameters = body->parameters();
  at::Tensor d_pooled_td = at::empty(pooled_td.sizes(), pooled_td.options());
  ProjectRowsBackward(d_projected_tp, pooled_td, parameters.all()[matrix].value.to(at::kFloat),
                      parameters.Gradient(matrix), parameters.Gradient(matrix + 1), d_pooled_td);
  return d_pooled_td;
}

}  // namespace trainwright

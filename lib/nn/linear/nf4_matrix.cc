#include "lib/nn/linear/nf4_matrix.h"

#include "lib/nn/linear/quantized_product.h"
#include "lib/nn/linear/quantized_thin_product.h"

namespace trainwright {

bool Nf4Matrix::MultiplyThin(const at::Tensor& a_mk, at::Tensor& out_mn) const {
  if (depth() % kNf4Block != 0) return false;
  const std::vector<at::Tensor> parts = tensor_.parts();
  return MultiplyThinInFp32(a_mk, out_mn, [&](const cpu::ThinRows& thin, int64_t begin, int64_t end) {
    cpu::ComputeNf4Product({thin, parts[0].const_data_ptr<uint8_t>(), parts[1].const_data_ptr<uint8_t>(),
                            parts[2].const_data_ptr<float>(), *parts[3].const_data_ptr<float>()},
                           begin, end);
  });
}

}  // namespace trainwright

#include "tests/cuda/seam_under_test.h"
#include "tests/support/cuda_emulation/host_product.h"

namespace trainwright::cuda {

std::map<std::string, int64_t> CountedProducts() {
  return cuda_emulation::ProductCounts();
}
int64_t AlgorithmSearches() {
  return cuda_emulation::AlgorithmsAskedFor();
}
void ForgetProducts() {
  cuda_emulation::ResetProductCounts();
}

}  // namespace trainwright::cuda

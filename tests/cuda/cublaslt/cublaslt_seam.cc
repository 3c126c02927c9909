#include "tests/cuda/seam_under_test.h"
#include "tests/support/fake_cublaslt/fake_cublaslt.h"

namespace trainwright::cuda {

namespace {

/// The seam's name of an epilogue of the library.
std::string NameOf(const std::string& epilogue) {
  if (epilogue == "default") return "none";
  if (epilogue == "gelu_aux" || epilogue == "gelu_aux_bias") return "gelu";
  if (epilogue == "dgelu") return "gelu gradient";
  if (epilogue == "bgradb") return "bias gradient";
  if (epilogue == "fp8 default") return "fp8";
  return epilogue;
}

}  // namespace

std::map<std::string, int64_t> CountedProducts() {
  const fake_cublaslt::Record record = fake_cublaslt::Recorded();
  std::map<std::string, int64_t> counts;
  for (const auto& [epilogue, count] : record.products) counts[NameOf(epilogue)] += count;
  if (record.refused_searches > 0) counts["unsupported"] = record.refused_searches;
  return counts;
}
int64_t AlgorithmSearches() {
  return fake_cublaslt::Recorded().searches;
}
void ForgetProducts() {
  fake_cublaslt::Forget();
}

}  // namespace trainwright::cuda

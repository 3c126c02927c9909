#include "lib/model/body.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

Error NoKeysAndValues() {
  return Error(ErrorCode::kUsage, "the model", "has no keys and values, so its contexts cannot be kept", "",
               "leave out --context-cache");
}

}  // namespace

at::Tensor BodyDecoder::Prefill(int64_t /*sequence*/, const std::vector<int64_t>& /*tokens*/,
                                AttentionMask /*mask*/) {
  throw NoKeysAndValues();
}

CacheTensors BodyDecoder::Export(int64_t /*sequence*/) const {
  throw NoKeysAndValues();
}

void BodyDecoder::Import(int64_t /*sequence*/, const CacheTensors& /*cache*/) {
  throw NoKeysAndValues();
}

}  // namespace trainwright

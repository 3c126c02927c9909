#include "lib/spec/attention_backend.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr AttentionBackend kAll[] = {AttentionBackend::kAuto, AttentionBackend::kFlash,
                                     AttentionBackend::kCudnn, AttentionBackend::kEfficient,
                                     AttentionBackend::kMath};

}  // namespace

AttentionBackend ParseAttentionBackend(const std::string& name, const std::string& flag) {
  for (const AttentionBackend backend : kAll) {
    if (name == AttentionBackendName(backend)) return backend;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown attention backend '" + name + "'", "",
              "use auto, flash, cudnn, efficient or math");
}

std::string AttentionBackendName(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::kAuto:
      return "auto";
    case AttentionBackend::kFlash:
      return "flash";
    case AttentionBackend::kCudnn:
      return "cudnn";
    case AttentionBackend::kEfficient:
      return "efficient";
    case AttentionBackend::kMath:
      return "math";
  }
  return "";
}

}  // namespace trainwright

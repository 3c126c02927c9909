#include "lib/spec/scan_kind.h"

#include "lib/base/error.h"

namespace trainwright {

ScanKind ParseScanKind(const std::string& name, const std::string& flag) {
  for (const ScanKind kind : {ScanKind::kSequential, ScanKind::kChunked, ScanKind::kFused}) {
    if (name == ScanKindName(kind)) return kind;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown scan '" + name + "'", "", "use sequential, chunked or fused");
}

std::string ScanKindName(ScanKind kind) {
  switch (kind) {
    case ScanKind::kFused:
      return "fused";
    case ScanKind::kChunked:
      return "chunked";
    case ScanKind::kSequential:
      return "sequential";
  }
  return "";
}

}  // namespace trainwright

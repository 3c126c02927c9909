/// What a document is for. Only kLm is written today; the other two are reserved in every format of
/// version 1.
#pragma once

#include <cstdint>

namespace trainwright {

enum class RecordKind : uint8_t { kLm = 0, kSft = 1, kContrastive = 2 };

}  // namespace trainwright

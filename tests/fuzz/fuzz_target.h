/// What all fuzz targets share. A target feeds bytes to one parser; the parser may refuse them with
/// Error{kBadInput}. Any other exception, a broken promise or a sanitizer's report is a bug.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace trainwright::fuzz {

template <typename Function>
void MayRefuse(Function&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
  }
}

}  // namespace trainwright::fuzz

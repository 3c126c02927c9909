/// Operators of torch's libraries by their names.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace trainwright::ops {

/// The operator as a function of this signature. Looking it up takes a lock, so callers keep it.
/// \throws c10::Error where no library has one of that name
template <typename Signature>
c10::TypedOperatorHandle<Signature> Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace trainwright::ops

#include "lib/device/tf32_scope.h"

#include <ATen/Context.h>

namespace trainwright {

Tf32Scope::Tf32Scope(bool on) : before_(at::globalContext().allowTF32CuBLAS()) {
  at::globalContext().setAllowTF32CuBLAS(on);
}

Tf32Scope::~Tf32Scope() {
  at::globalContext().setAllowTF32CuBLAS(before_);
}

}  // namespace trainwright

/// Functions of a library that is loaded at run time.
#pragma once

#include <dlfcn.h>

namespace trainwright {

/// Sets `function` to what `library` calls `name`, or to null where it has none.
template <typename Function>
void FindFunction(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace trainwright

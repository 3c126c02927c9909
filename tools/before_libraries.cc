// What an engine does before the static initialisers of its libraries, which take memory, too.
#include "lib/device/memory_death.h"

namespace {

using Initializer = void (*)();
__attribute__((section(".preinit_array"), used)) const Initializer kBeforeLibraries =
    trainwright::TellDeathsForMemory;

}  // namespace

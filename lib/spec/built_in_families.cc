#include "lib/spec/built_in_families.h"

#include "lib/spec/gpt2_family.h"
#include "lib/spec/llama_family.h"
#include "lib/spec/mistral_family.h"
#include "lib/spec/neox_family.h"
#include "lib/spec/qwen2_family.h"
#include "lib/spec/ten_family.h"

namespace trainwright {

FamilyList BuiltInDescriptions() {
  return FamilyList({
      &LlamaFamily(),
      &MistralFamily(),
      &Qwen2Family(),
      &Gpt2Family(),
      &NeoxFamily(),
      &TenFamily(),
  });
}

}  // namespace trainwright

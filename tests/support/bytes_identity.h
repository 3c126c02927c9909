/// The tokenizer "bytes" as models and shards of tests name it.
#pragma once

#include "lib/formats/tokenizer_identity.h"

namespace trainwright::test {

inline TokenizerIdentity BytesIdentity() {
  TokenizerIdentity identity;
  identity.kind = "bytes";
  identity.vocab_size = 258;
  identity.bos_id = 256;
  identity.eos_id = 257;
  return identity;
}

}  // namespace trainwright::test

/// The built-in tokenizer "bytes": an id is a byte's value; 256 begins and 257 ends a document. Needs no
/// file, loses nothing: any bytes, valid UTF-8 or not, come back as they were.
#pragma once

#include "lib/tok/tokenizer.h"

namespace trainwright {

class BytesTokenizer final : public Tokenizer {
 public:
  BytesTokenizer();
  void Encode(std::string_view text, std::vector<uint32_t>* ids) const override;
  /// BOS and EOS stand for no text.
  std::string Decode(std::span<const uint32_t> ids) const override;
  DecodedId DecodedIdOf(uint32_t id) const override;
  const TokenizerIdentity& identity() const override { return identity_; }

 private:
  TokenizerIdentity identity_;
};

}  // namespace trainwright

/// Text to token ids and back. Implementations are immutable after construction and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/formats/tokenizer_identity.h"

namespace trainwright {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Appends the ids of one document to `ids`, exactly as the reference library gives them for the whole text
  /// (newlines are text; no BOS or EOS is added). Any bytes are accepted; see each tokenizer for invalid
  /// UTF-8.
  virtual void Encode(std::string_view text, std::vector<uint32_t>* ids) const = 0;
  /// Ids back to text; ids >= vocab_size throw Error{kBadInput}.
  virtual std::string Decode(std::span<const uint32_t> ids) const = 0;
  virtual const TokenizerIdentity& identity() const = 0;
};

/// \param spec "bytes", or the path of a SentencePiece .model file
/// \throws Error{kIo} when it cannot be read, Error{kBadInput} when it is no tokenizer this build knows
std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& spec);

/// A tokenizer from the identity that a stream, shard or checkpoint carries.
/// \throws Error{kBadInput} when the model is missing or its hash is not `identity.sha256`
std::unique_ptr<Tokenizer> TokenizerFromIdentity(const TokenizerIdentity& identity);

}  // namespace trainwright

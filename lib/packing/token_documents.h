/// Documents as token ids, wherever they come from: what `pack` packs.
#pragma once

#include <vector>

#include "lib/formats/provenance.h"
#include "lib/formats/token_stream.h"

namespace trainwright {

/// Not thread-safe.
class TokenDocuments {
 public:
  virtual ~TokenDocuments() = default;
  /// The tokenizer and the kind of records; its provenance goes unread.
  virtual const TokenStreamHeader& header() const = 0;
  /// The distinct ways in which the inputs were made.
  virtual const std::vector<ProvenanceInput>& provenance() const = 0;
  /// The next piece, as in TokenStreamReader.
  /// \throws Error{kBadInput}
  [[nodiscard]] virtual bool Next(DocumentPiece* piece) = 0;
};

}  // namespace trainwright

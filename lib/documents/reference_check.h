/// Compares the ids of every N-th document with those of another way to encode: `pretokenize --verify N`.
///
/// Immutable after construction and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/base/error.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

class ReferenceCheck {
 public:
  /// \param tokenizer outlives this
  /// \param every >= 1
  /// \throws Error{kUsage} when it has no reference
  ReferenceCheck(const Tokenizer& tokenizer, uint64_t every);

  /// Whether a record, numbered from 1 within its source, is compared: the first, and every N-th after it.
  bool Due(uint64_t record) const { return (record - 1) % every_ == 0; }
  const Tokenizer& reference() const { return *reference_; }

  struct Comparison {
    std::optional<Error> difference;  ///< kNo: the first position where the ids differ, and both ids
    bool tied = false;  ///< they differ as the reference explains, and both are right: no difference
  };
  /// \param source, place where the document is, for the message
  Comparison Compare(std::span<const uint32_t> ids, std::span<const uint32_t> reference_ids,
                     const std::string& source, const std::string& place) const;

 private:
  std::unique_ptr<Tokenizer> reference_;
  uint64_t every_;
};

}  // namespace trainwright

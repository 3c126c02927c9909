/// What ends the samples of `generate`, besides their length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/eval/generate.h"
#include "lib/eval/sample_text.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

struct SampleEnds {
  std::vector<uint32_t> ids;                     ///< each ends a sample; sorted, once each
  std::vector<std::vector<uint32_t>> sequences;  ///< several ids that end one together
  std::vector<std::string> answer_ends;          ///< what such a sequence spells, however it is cut into ids
  std::vector<std::string> stops;                ///< texts that the user gave

  /// Answer ends and stops.
  std::vector<std::string> texts() const;
};

/// \param ids each of which ends a sample
/// \param answer_end ids that end an answer together; may be empty
/// \param stops those that are special tokens, or hold some, are recognised by their ids as well
/// \throws Error{kUsage} on an empty stop
SampleEnds SampleEndsOf(const Tokenizer& tokenizer, std::vector<uint32_t> ids,
                        const std::vector<uint32_t>& answer_end, const std::vector<std::string>& stops);

/// Looks for the ends of one sample that are no single ids. Linear in the sample. Not thread-safe.
class EndFinder {
 public:
  /// \param tokenizer, ends outlive this
  EndFinder(const Tokenizer* tokenizer, const SampleEnds* ends, std::span<const int64_t> prompt);

  /// \param ids of the sample; called after each
  /// \returns of a sequence of ids: those before it, and kEos; of a text that is there: all ids, and kStop
  std::optional<SampleEnd> Find(const std::vector<uint32_t>& ids);

 private:
  const SampleEnds* ends_;
  std::vector<std::string> texts_;
  size_t longest_ = 0;  // of them
  SampleText text_;
  size_t searched_ = 0;  // bytes of what is settled
};

/// Takes the end off a sample whose text holds one (kStop). A stop's tokens remain among its ids; those of an
/// answer's end do not, and it finishes with kEos then.
/// \param text of the whole sample; of its text what is before the end remains
void RemoveEnd(const Tokenizer& tokenizer, const SampleEnds& ends, std::span<const uint32_t> prompt,
               Generation* sample, std::string* text);

}  // namespace trainwright

/// Which of the inputs of `pack` can be read to their ends.
#pragma once

#include <string>
#include <vector>

#include "lib/packing/foreign_documents.h"

namespace trainwright {

struct SoundInputs {
  std::vector<std::string> paths;    ///< in the order of the inputs
  std::vector<std::string> corrupt;  ///< one message a file that is not among them
};

/// Reads every input to its end, so that a file is packed whole or not at all. Costs a second reading of the
/// data; memory as ForeignDocuments or one token stream.
/// \param inputs files; folders of token streams count as their files
/// \throws Error{kUsage} on what is no regular file, since it cannot be read twice; what opening throws of
///         options that are wrong or missing; Error{kIo}; OutsideVocabulary; Error{kBadInput} when no input
///         is sound
SoundInputs FindSoundInputs(const std::vector<std::string>& inputs, const ImportOptions& import);

}  // namespace trainwright

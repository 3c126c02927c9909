/// Where the runs of a claim take place: the tools, and a folder with the made-up data that they train on.
#pragma once

#include <ostream>
#include <string>

#include "lib/bench/temporary_folder.h"

namespace trainwright {

/// What the runs of a claim train on.
enum class ClaimData { kText, kContrastive };

class ClaimsWorkplace {
 public:
  /// \param contrastive whether some runs train on such records
  /// \throws Error{kBadInput} where a tool does not run
  explicit ClaimsWorkplace(bool contrastive);
  /// What train --help prints.
  const std::string& help() const { return help_; }
  /// Whether train knows the flags and their values.
  bool Takes(const std::string& flags) const;
  /// The training run with some flags. Those given replace the ones here: the last of several counts.
  std::string Train(const std::string& flags, ClaimData data = ClaimData::kText) const;

 private:
  void MakeShards(const std::string& name, int chunk_tokens, void (*write)(std::ostream*),
                  const std::string& flags);
  TemporaryFolder folder_;
  std::string tools_, help_;
};

/// Whether the kernel shows a GPU's device file.
bool HasGpu();

}  // namespace trainwright

/// Where the runs of a claim take place: the tools, and a folder with the made-up data that they train on.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "lib/bench/temporary_folder.h"

namespace trainwright {

/// What the runs of a claim train, and on what: llama-1m on documents of about 700 tokens or on contrastive
/// records; or, long, a recurrent model of the size of ten-nano on one document of 327,680 tokens. kExamples
/// are kText, but at the guide's size the few documents that it fine-tunes on.
enum class ClaimData { kText, kContrastive, kLong, kExamples };

/// kSmall is as ClaimData says. kGuide trains the model that the guide names, with its batch and length, on
/// random ids (guide_models.h), GuideIds or GuideExamples, where a claim says which (Claim::guide).
enum class ClaimScale { kSmall, kGuide };

class ClaimsWorkplace {
 public:
  /// \param contrastive, long_document whether some runs train on such data
  /// \throws Error{kBadInput} where a tool does not run
  ClaimsWorkplace(bool contrastive, bool long_document, ClaimScale scale = ClaimScale::kSmall);
  /// What train --help prints.
  const std::string& help() const { return help_; }
  /// Whether train knows the flags and their values.
  bool Takes(const std::string& flags, ClaimData data = ClaimData::kText) const;
  /// The training run with some flags. Those given replace the ones here: the last of several counts.
  /// \param guide flags of a run of the guide's size, as of Claim::guide
  std::string Train(const std::string& flags, ClaimData data = ClaimData::kText,
                    const std::string& guide = "") const;
  /// The start of a command that runs a tool of the suite.
  std::string Tool(const std::string& name) const { return tools_ + name; }
  /// Where a file of the workplace is.
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  /// A configuration of a recurrent model for up to 32,768 tokens, which are bytes.
  /// \param init as of --ten-init
  std::string MakeLongModel(const std::string& init) const;
  /// Path(name) + ".shards" of what is written.
  /// \param flags of pretokenize
  void MakeShards(const std::string& name, int chunk_tokens, const std::function<void(std::ostream*)>& write,
                  const std::string& flags) const;
  /// Runs a command of the suite and returns what it prints.
  /// \throws Error{kBadInput} when it fails, or takes longer
  std::string Run(const std::string& command, double timeout_s) const;

 private:
  void MakeGuideData() const;
  /// Path(name) + ".shards" of documents of ids.
  void MakeIdShards(const std::string& name, const std::vector<uint16_t>& ids) const;

  const ClaimScale scale_;
  TemporaryFolder folder_;
  std::string tools_, help_;
};

/// Whether the kernel shows a GPU's device file.
bool HasGpu();

}  // namespace trainwright

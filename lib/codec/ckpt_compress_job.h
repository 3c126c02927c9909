/// `ckpt-compress`, from settings to exit status: which input is compressed, restored, checked, listed or
/// split up, what the output is called, and what is said about it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/report/progress.h"

namespace trainwright {

enum class OutputForm { kAuto, kSafetensors, kStream, kRaw };

struct CkptCompressOptions {
  std::vector<std::string> inputs;  ///< empty: standard input
  std::string output;               ///< empty: beside the input, or standard output
  bool force = false;
  bool decompress = false, test = false, list = false;
  bool fast = false, max = false;
  OutputForm to = OutputForm::kAuto;
  std::string base;
  bool no_verify = false;
  bool keep_going = false;
  std::vector<std::string> tensors, slices;
  bool json = false;
  int threads = 0;  ///< 0: DefaultCodecThreads
};

/// How many threads code where nobody says: one a processor, or as many as 256 MiB have room for, whatever
/// the elements are, where that is less.
/// \param processors 0: unknown
int DefaultCodecThreads(const CkptCompressOptions& options, int processors);

/// Handles the inputs one after another; listings go to standard output.
/// \param summary gets the counts of all
/// \returns 0, or 3 when an input is damaged and that was asked (-t) or skipped (--keep-going)
/// \throws Error: kUsage (options that do not go together, an output that exists), kBadInput (with -t, -l and
///     --keep-going after the other inputs), kIo
int RunCkptCompress(const CkptCompressOptions& options, ProgressMode progress,
                    nlohmann::ordered_json* summary);

}  // namespace trainwright

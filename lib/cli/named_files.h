/// Files that a command line names twice: what one option reads, another must not replace.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// A file or folder, by the option that names it.
struct NamedFile {
  std::string option;  ///< "--tokenizer", or "FILE" of an argument
  std::string path;    ///< "-" is a standard stream
};

/// \throws Error{kUsage} where a tool's output is the file of one of the options
void RefuseToReplaceNamed(const NamedFile& output, const std::vector<NamedFile>& others);

/// A summary replaces no file that the tool reads or writes, nor the one that standard output goes to. In a
/// folder that an option names, it may be a new file or a former summary, but have no name of shards.
/// \param summary a path; "-" and what is no file are as they are
/// \throws Error{kUsage}
void RefuseSummaryOver(const std::string& summary, const std::vector<NamedFile>& files);

/// Whether a summary would replace a file in which there is something that is no summary.
bool SummaryReplacesOther(const std::string& summary);

}  // namespace trainwright

/// Compressing and restoring a whole checkpoint folder: each *.safetensors is compressed, every other file is
/// copied, so that the restored folder has the same names and bytes.
#pragma once

#include <string>

#include "lib/codec/compress_job.h"

namespace trainwright {

/// "ckpt" -> "ckpt.twc"; and back, empty for another name.
std::string CompressedFolderName(const std::string& folder);
std::string RestoredFolderName(const std::string& folder);

/// Subfolders are taken along; a link to a file becomes that file, a link to a folder stays a link. The base
/// is a folder, too: each file has the base of its name, if there is one. The output appears whole or not at
/// all; with `force` it replaces a folder.
/// \throws as CompressFile; Error{kUsage} for a file that the restoring would take for a compressed one
CompressReport CompressFolder(const std::string& input, const std::string& output,
                              const CompressJobOptions& options);
/// \throws as RestoreFile
CompressReport RestoreFolder(const std::string& input, const std::string& output,
                             const CompressJobOptions& options);
/// Paths of the compressed files in a folder and its subfolders, sorted.
/// \throws Error{kBadInput} when there is none
std::vector<std::string> CompressedFilesIn(const std::string& folder);
/// The options for one of them: with the base of its name.
CompressJobOptions OptionsFor(const std::string& path, const std::string& folder,
                              const CompressJobOptions& options);

}  // namespace trainwright

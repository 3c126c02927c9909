/// Compressing and restoring a whole checkpoint folder: each *.safetensors is compressed, every other file is
/// copied, so that the restored folder has the same names, bytes and permissions. Nothing is compressed
/// twice: a file that is compressed already, under a plain name, is copied.
#pragma once

#include <string>

#include "lib/codec/compress_job.h"

namespace trainwright {

/// "ckpt" -> "ckpt.twc"; and back, empty for another name. "." and ".." stand for the folders that they are.
std::string CompressedFolderName(const std::string& folder);
std::string RestoredFolderName(const std::string& folder);

/// Subfolders are taken along; a link to a file becomes that file, a link to a folder stays a link. The base
/// is a file or a folder: then each file has the base of its name, if there is one. The output appears whole
/// or not at all; with `force` it replaces a folder. With CompressedInput::kRewrite the files of a compressed
/// folder are written in another form.
/// \throws as CompressFile; Error{kUsage} for files with the names of compressed ones, when all is compressed
/// already, when no file has a base, when the output would replace what is read
CompressReport CompressFolder(const std::string& input, const std::string& output,
                              const CompressJobOptions& options);
/// With keep_going the output lacks files of which nothing is left, and is not made where that is so of all.
/// \throws as RestoreFile; Error{kUsage} when two files would get one name
CompressReport RestoreFolder(const std::string& input, const std::string& output,
                             const CompressJobOptions& options);
/// Paths of the compressed files in a folder and its subfolders, sorted: those of such a name, and the
/// safetensors files that are compressed under a plain name, or whose header cannot be read.
/// \throws Error{kBadInput} when none has such a name
std::vector<std::string> CompressedFilesIn(const std::string& folder);
/// The options for one of them: with the base of its name.
CompressJobOptions OptionsFor(const std::string& path, const std::string& folder,
                              const CompressJobOptions& options);

}  // namespace trainwright

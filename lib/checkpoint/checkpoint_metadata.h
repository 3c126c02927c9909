/// metadata.json of a checkpoint folder: the size and SHA-256 of every file beside it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace trainwright {

inline constexpr char kCheckpointMetadataFile[] = "metadata.json";

/// SHA-256 of files, in hexadecimal, by name.
using FileHashes = std::map<std::string, std::string>;

/// Whether metadata.json may list a file of this name: one of the folder, or of a folder in it.
bool IsCheckpointFileName(const std::string& name);

/// Compares every file that the folder's metadata.json lists with its size and hash. Reads all of them.
/// \param hashes where not null, gets those of the files
/// \returns false when the folder has no metadata.json (a model that other tools wrote)
/// \throws Error{kBadInput} naming the file that disagrees or is missing, Error{kIo}
bool VerifyCheckpointFiles(const std::string& folder, FileHashes* hashes = nullptr);

/// A field of the provenance in the folder's metadata.json, or null.
nlohmann::ordered_json ReadCheckpointProvenance(const std::string& folder, const std::string& field);

}  // namespace trainwright

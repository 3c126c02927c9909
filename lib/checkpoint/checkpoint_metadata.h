/// metadata.json of a checkpoint, or of a model made of others: the size and SHA-256 of every file beside it.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace trainwright {

inline constexpr char kCheckpointMetadataFile[] = "metadata.json";
/// What metadata.json calls itself: of a checkpoint, and of a model without a run.
inline constexpr char kCheckpointSchema[] = "trainwright.checkpoint/1",
                      kModelSchema[] = "trainwright.model/1";

/// Of a plan, and of the provenance of a model that was made of checkpoints: see ReadEvalSplit.
inline constexpr char kEvalSplitField[] = "eval_split";

/// SHA-256 of files, in hexadecimal, by name.
using FileHashes = std::map<std::string, std::string>;

/// Whether metadata.json may list a file of this name: one of the folder, or of a folder below it.
bool IsCheckpointFileName(const std::string& name);

/// Compares every file that the folder's metadata.json lists with its size and hash. Reads all of them.
/// \param hashes where not null, gets those of the files
/// \returns false when the folder has no metadata.json, or one of another program (a model that other tools
///     wrote)
/// \throws Error{kBadInput} naming the file that disagrees or is missing, Error{kIo}
bool VerifyCheckpointFiles(const std::string& folder, FileHashes* hashes = nullptr);

/// The field `files` of metadata.json: size_bytes and sha256 of every file that the folder holds, by name.
/// \throws Error{kIo}
nlohmann::ordered_json DescribeFiles(const std::string& folder);

/// The fields of metadata.json of a model: what it is, its files, and where it comes from.
nlohmann::ordered_json MetadataOfModel(const nlohmann::ordered_json& files,
                                       const nlohmann::ordered_json& provenance);

/// Writes metadata.json of a model in a folder of a checkpoint, and lists it among the checkpoint's files. It
/// has no time and host, which the checkpoint has: lists of the files of equal checkpoints are equal.
/// \param name of the folder in `folder`
/// \param fields besides those of every model; with the provenance
/// \param files of the checkpoint, as DescribeFiles gives them
/// \throws Error{kIo}
void WriteInnerMetadata(const std::string& folder, const std::string& name,
                        const nlohmann::ordered_json& fields, nlohmann::ordered_json* files);

/// Writes metadata.json: the fields given, when and where, and that these are volatile. It comes last of a
/// folder's files.
/// \throws Error{kIo}
void WriteFolderMetadata(const std::string& folder, nlohmann::ordered_json metadata);

/// Changes the folder's metadata.json, which is at each time whole on the disk: as it was, or changed.
/// \param change other fields than `files`
/// \throws Error{kIo}, Error{kBadInput} where it is no JSON object
void ChangeFolderMetadata(const std::string& folder,
                          const std::function<void(nlohmann::ordered_json*)>& change);

/// A field of the provenance in the folder's metadata.json, or null; of another program's always null.
nlohmann::ordered_json ReadCheckpointProvenance(const std::string& folder, const std::string& field);

/// What the run of a checkpoint held out of its data, in the form of the plan; of a model that was made of
/// checkpoints, what is recorded of theirs. Null: nothing, or nobody says it.
nlohmann::ordered_json ReadEvalSplit(const std::string& folder);

}  // namespace trainwright

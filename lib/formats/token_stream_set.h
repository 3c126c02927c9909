/// A folder of token streams, one for each input, in order: DIR/stream-NUMBER-KEY.twt, made whole by
/// DIR/MANIFEST.json. While DIR/.pretokenize-journal is there, a run is active or was ended, and nobody
/// reads the folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

inline constexpr char kStreamJournalName[] = ".pretokenize-journal";
inline constexpr char kStreamPrefix[] = "stream-";

struct StreamEntry {
  std::string file_name;
  uint64_t size_bytes = 0;
  uint64_t hash = 0;      ///< XXH3-64 of all but the last 8 bytes, which hold it
  std::string key;        ///< 64 hex digits: SHA-256 of all that decides what is in the stream
  std::string source;     ///< the input's path, for people
  nlohmann::json counts;  ///< "documents", "tokens", "source_bytes" and whatever else the writer counts
};

/// "stream-000012-0123456789ab.twt": names of a folder in byte order are the streams in order (up to a
/// million), and streams of other content have other names.
std::string StreamFileName(size_t number, const std::string& key);
/// Whether a name has that form: no other file is touched.
bool IsStreamFileName(std::string_view name);

nlohmann::json ToJson(const StreamEntry& entry);
/// \throws nlohmann::json::exception, std::out_of_range
StreamEntry StreamEntryFrom(const nlohmann::json& json);

std::string EncodeStreamManifest(const std::vector<StreamEntry>& entries);
/// \param path for messages
/// \throws Error{kBadInput} for anything but such a manifest
std::vector<StreamEntry> DecodeStreamManifest(const std::string& text, const std::string& path);

/// The hash with which a stream ends.
/// \throws Error{kIo}
uint64_t StreamHashOf(const std::string& path, uint64_t size_bytes);
/// Whether the file has the entry's size and ends with its hash.
bool LooksLike(const StreamEntry& entry, const std::string& path);
/// Whether, besides, every byte is what the hash says.
/// \throws Error{kIo, kInterrupted, kTerminated}
bool IsWhole(const StreamEntry& entry, const std::string& path);

/// What the manifest of a finished folder names, in order; the streams are not looked at.
/// \throws Error{kBadInput} for a folder that is not finished; Error{kIo}
std::vector<StreamEntry> EntriesOfFolder(const std::string& folder);
/// The streams of a finished folder, in order.
/// \throws Error{kBadInput} for a folder that is not finished or lacks a stream; Error{kIo}
std::vector<std::string> StreamsOfFolder(const std::string& folder);
/// `paths` with the streams of a folder in the place of the folder.
std::vector<std::string> WithStreamsOfFolders(const std::vector<std::string>& paths);

}  // namespace trainwright

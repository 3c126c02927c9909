#include "lib/packing/sound_inputs.h"

#include <filesystem>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/signals.h"
#include "lib/base/units.h"
#include "lib/formats/token_stream.h"
#include "lib/formats/token_stream_set.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

bool BeginsAsTokenStream(const std::string& path) {
  BufferedReader reader(DecompressIfNeeded(OpenSource(path)));
  return IsTokenStream(reader.Peek(kTokenStreamStartBytes));
}

/// The format that was asked for, or that of the first file whose beginning shows one.
ForeignFormat FormatOfAll(const std::vector<std::string>& paths, const ImportOptions& import) {
  for (const std::string& path : paths) {
    try {
      const ForeignFormat format = FormatOf(path, import);
      if (format != ForeignFormat::kTokens || BeginsAsTokenStream(path)) return format;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
    }
  }
  return ForeignFormat::kTokens;
}

/// \throws OutsideVocabulary of a file that is sound but for that; Error
void ReadToTheEnd(const std::string& path, const ImportOptions& import) {
  DocumentPiece piece;
  if (import.format == ForeignFormat::kTokens) {
    TokenStreamReader stream(DecompressIfNeeded(OpenSource(path)));
    while (stream.Next(&piece)) ThrowIfStopped();
    return;
  }
  ForeignDocuments documents({path}, *import.format, import);
  std::optional<OutsideVocabulary> outside;
  for (bool more = true; more;) {
    try {
      more = documents.Next(&piece);
    } catch (const OutsideVocabulary& error) {
      // Damage, too, makes such ids, and only the end of an archive's entry tells it.
      if (!outside) outside = error;
    }
  }
  if (outside) throw *outside;
}

/// The inputs with the streams of a folder in its place, which may be damaged. A folder without a manifest
/// that names them counts as one corrupt input.
std::vector<std::string> FilesOf(const std::vector<std::string>& inputs, std::vector<std::string>* corrupt) {
  std::vector<std::string> files;
  for (const std::string& path : inputs) {
    if (path == "-" || !std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    try {
      for (const StreamEntry& entry : EntriesOfFolder(path)) {
        if (std::string file = path + "/" + entry.file_name; std::filesystem::exists(file)) {
          files.push_back(std::move(file));
        } else {
          corrupt->push_back(file + ": is missing");
        }
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
      corrupt->push_back(error.what());
    }
  }
  return files;
}

}  // namespace

SoundInputs FindSoundInputs(const std::vector<std::string>& inputs, const ImportOptions& import) {
  const bool foreign = import.format.value_or(ForeignFormat::kTokens) != ForeignFormat::kTokens;
  SoundInputs sound;
  const std::vector<std::string> paths = foreign ? inputs : FilesOf(inputs, &sound.corrupt);
  for (const std::string& path : paths) {
    if (std::filesystem::is_regular_file(path)) continue;
    throw Error(ErrorCode::kUsage, path == "-" ? "standard input" : path,
                "is no file, and --on-error skip reads every input twice", "", "save it to a file");
  }
  ImportOptions checked = import;
  checked.format = FormatOfAll(paths, import);
  for (const std::string& path : paths) {
    try {
      if (!import.format && checked.format != ForeignFormat::kTokens && BeginsAsTokenStream(path)) {
        throw Error(ErrorCode::kUsage, path,
                    "is a token stream, and other inputs are files of another program", "",
                    "pack them one by one, with --append");
      }
      ReadToTheEnd(path, checked);
      sound.paths.push_back(path);
    } catch (const OutsideVocabulary&) {
      throw;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
      sound.corrupt.push_back(error.what());
    }
  }
  if (sound.paths.empty()) {
    throw Error(ErrorCode::kBadInput, FormatNumberOf(sound.corrupt.size(), "input"),
                "cannot be read; the first: " + sound.corrupt.front());
  }
  return sound;
}

}  // namespace trainwright

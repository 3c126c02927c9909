#include "lib/tok/sentencepiece_version.h"

#include <link.h>
#include <sentencepiece_processor.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/version.h"
#include "lib/io/file_checksum.h"

namespace trainwright {
namespace {

/// A unigram model of "0" and "00", and <unk>: ids 1, 2 and 0. The sum of their scores lies between two
/// floats and is rounded down.
std::string ModelWithATie() {
  const auto field = [](char number_and_wire, const std::string& content) {
    return std::string({number_and_wire, static_cast<char>(content.size())}) + content;
  };
  const auto piece = [&](const std::string& text, float score, char type) {
    const auto bits = std::bit_cast<uint32_t>(score);
    std::string message = field(0x0A, text) + '\x15';
    for (int shift = 0; shift < 32; shift += 8) message.push_back(static_cast<char>(bits >> shift));
    return field(0x0A, message + '\x18' + type);
  };
  const std::string no_dummy_prefix = {0x18, 0x00}, no_space_removal = {0x20, 0x00}, unigram = {0x18, 0x01};
  return piece("<unk>", 0, 2) + piece("0", -(1 + 0x3p-23F), 1) + piece("00", -2, 1) + field(0x12, unigram) +
         field(0x1A, no_dummy_prefix + no_space_removal);
}

bool AskLibrary() {
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.LoadFromSerializedProto(ModelWithATie()).ok()) return false;
  std::vector<int> ids;
  return processor.Encode("000", &ids).ok() && ids == std::vector<int>{2, 1};
}

constexpr char kName[] = "libsentencepiece";

/// Of one of the files that the process has loaded; stops at that of the library.
int TakeIfLibrary(dl_phdr_info* info, size_t /*size*/, void* path) {
  const std::filesystem::path loaded(info->dlpi_name == nullptr ? "" : info->dlpi_name);
  if (!loaded.filename().string().starts_with(std::string(kName) + ".so")) return 0;
  *static_cast<std::filesystem::path*>(path) = loaded;
  return 1;
}

LibraryIdentity FindLibrary() {
  LibraryIdentity library = {.name = kName, .version = TRAINWRIGHT_SENTENCEPIECE_VERSION};
  std::filesystem::path loaded;
  if (dl_iterate_phdr(TakeIfLibrary, &loaded) == 0) return library;
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical(loaded, unknown);
  if (unknown) return library;
  try {
    library.sha256 = Sha256OfFile(file.string());
    library.path = file.string();
  } catch (const Error&) {  // it may have been removed since
  }
  return library;
}

}  // namespace

const LibraryIdentity& LoadedSentencePiece() {
  static const LibraryIdentity library = FindLibrary();
  return library;
}

bool LibraryIsOlderThan022() {
  static const bool older = AskLibrary();
  return older;
}

}  // namespace trainwright

#include "lib/io/file_checksum.h"

#include <cerrno>
#include <fstream>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"

namespace trainwright {

std::string Sha256OfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(size_t{1} << 20);
  Sha256 hash;
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    hash.Update(AsBytes({piece.data(), static_cast<size_t>(file.gcount())}));
  }
  if (!file.eof()) throw SystemError(path, "read", errno);
  return HexEncode(hash.Digest());
}

}  // namespace trainwright

// Files of other programs. The first byte chooses the format; of Megatron's two files, the next byte is the
// size of the ids.
#include "lib/packing/foreign_documents.h"

#include <unistd.h>

#include <fstream>

#include "tests/fuzz/fuzz_target.h"

namespace trainwright {
namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/trainwright-fuzz-XXXXXX";
    TRAINWRIGHT_CHECK(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() {
    for (const char* file : {"/in", "/in.idx", "/in.bin"}) unlink((path + file).c_str());
    rmdir(path.c_str());
  }
  std::string Write(const std::string& name, ByteSpan bytes) const {
    std::ofstream file(path + name, std::ios::binary | std::ios::trunc);
    file.write(AsText(bytes).data(), static_cast<std::streamsize>(bytes.size()));
    return path + name;
  }
  std::string path;
};

void ReadAll(const std::string& path, ForeignFormat format) {
  fuzz::MayRefuse([&] {
    ImportOptions options;
    options.format = format;
    options.vocab_size = 60'000;
    options.end_of_text = 7;
    ForeignDocuments documents({path}, format, options);
    DocumentPiece piece;
    bool open = false;
    uint64_t tokens = 0;
    // A small archive may hold the same ids many times.
    while (tokens < (1 << 22) && documents.Next(&piece)) {
      TRAINWRIGHT_CHECK(piece.begins == !open);
      for (const uint32_t id : piece.tokens) TRAINWRIGHT_CHECK(id < 60'000);
      tokens += piece.tokens.size() + 1;
      open = !piece.ends;
    }
  });
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  static const Folder folder;
  if (size < 2) return 0;
  const ByteSpan rest(data + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      ReadAll(folder.Write("/in", rest), ForeignFormat::kLlmC);
      break;
    case 1:
      ReadAll(folder.Write("/in", rest), ForeignFormat::kNanoGpt);
      break;
    case 2:
      ReadAll(folder.Write("/in", rest), ForeignFormat::kNpz);
      break;
    case 3:
      ReadAll(folder.Write("/in", rest), ForeignFormat::kTorch);
      break;
    default: {
      const size_t ids = std::min<size_t>(rest[0], rest.size() - 1);
      folder.Write("/in.bin", rest.subspan(1, ids));
      ReadAll(folder.Write("/in.idx", rest.subspan(1 + ids)), ForeignFormat::kMegatron);
    }
  }
  return 0;
}

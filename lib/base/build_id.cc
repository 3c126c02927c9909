#include "lib/base/build_id.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"

namespace trainwright {
namespace {

constexpr char kOwner[] = "GNU";

size_t RoundUp(size_t size_bytes, size_t alignment) {
  return (size_bytes + alignment - 1) / alignment * alignment;
}

/// The build ID among the notes of a segment; empty where there is none.
std::string BuildIdOf(ByteSpan notes, size_t alignment) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof(head));
    const size_t id = RoundUp(sizeof(head) + head.n_namesz, alignment);
    if (id + head.n_descsz > notes.size()) break;
    const bool is_ours = head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof(kOwner) &&
                         std::memcmp(notes.data() + sizeof(head), kOwner, sizeof(kOwner)) == 0;
    if (is_ours) return HexEncode(notes.subspan(id, head.n_descsz));
    notes = notes.subspan(std::min(notes.size(), RoundUp(id + head.n_descsz, alignment)));
  }
  return "";
}

/// Called with the program itself first.
int FindBuildId(dl_phdr_info* program, size_t, void* found) {
  constexpr size_t kWord = 4, kWide = 8;
  for (size_t i = 0; i < program->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const begin = reinterpret_cast<const uint8_t*>(program->dlpi_addr + segment.p_vaddr);
    const std::string id = BuildIdOf({begin, segment.p_memsz}, segment.p_align == kWide ? kWide : kWord);
    if (!id.empty()) *static_cast<std::string*>(found) = id;
  }
  return 1;
}

}  // namespace

std::string ProgramBuildId() {
  std::string id;
  dl_iterate_phdr(FindBuildId, &id);
  if (!id.empty()) return id;
  std::ifstream program("/proc/self/exe", std::ios::binary);
  Xxh3Stream hash;
  std::array<char, size_t{1} << 16> piece;
  while (program.read(piece.data(), piece.size()) || program.gcount() > 0) {
    hash.Update(AsBytes({piece.data(), static_cast<size_t>(program.gcount())}));
  }
  return std::to_string(hash.Digest());
}

}  // namespace trainwright

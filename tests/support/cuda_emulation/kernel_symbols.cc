#include "tests/support/cuda_emulation/kernel_symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>

#include "lib/base/error.h"

namespace trainwright::cuda_emulation {
namespace {

struct Symbol {
  std::string name;  ///< mangled
  uintptr_t address = 0;
  size_t size = 0;
  bool function = false;
};

/// A file of which code is in memory, and where.
struct LoadedFile {
  std::string path;
  uintptr_t base = 0;
};

LoadedFile FileOf(const void* address) {
  struct Search {
    uintptr_t address;
    LoadedFile found;
  } search = {reinterpret_cast<uintptr_t>(address), {}};
  const auto visit = [](dl_phdr_info* info, size_t, void* data) {
    auto* of = static_cast<Search*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
      if (header.p_type != PT_LOAD || of->address - begin >= header.p_memsz) continue;
      of->found = {info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe", info->dlpi_addr};
      return 1;
    }
    return 0;
  };
  dl_iterate_phdr(visit, &search);
  return search.found;
}

template <typename T>
std::vector<T> ReadArray(std::istream* file, uint64_t offset, uint64_t bytes) {
  std::vector<T> items(bytes / sizeof(T));
  file->seekg(static_cast<std::streamoff>(offset));
  file->read(reinterpret_cast<char*>(items.data()), static_cast<std::streamsize>(items.size() * sizeof(T)));
  return items;
}

/// The functions and variables of namespace trainwright::cuda.
std::vector<Symbol> ReadSymbols(const LoadedFile& from) {
  std::ifstream file(from.path, std::ios::binary);
  const auto header = ReadArray<ElfW(Ehdr)>(&file, 0, sizeof(ElfW(Ehdr)));
  std::vector<Symbol> symbols;
  if (!file || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return symbols;
  const auto sections =
      ReadArray<ElfW(Shdr)>(&file, header[0].e_shoff, uint64_t{header[0].e_shnum} * sizeof(ElfW(Shdr)));
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const ElfW(Shdr)& names_at = sections[section.sh_link];
    const auto names = ReadArray<char>(&file, names_at.sh_offset, names_at.sh_size);
    for (const ElfW(Sym) & symbol : ReadArray<ElfW(Sym)>(&file, section.sh_offset, section.sh_size)) {
      const std::string_view name = names.data() + symbol.st_name;
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT)) continue;
      if (name.find("N11trainwright4cuda") > 3) continue;
      // Shared memory has no initial value: a section without content.
      if (type == STT_FUNC ||
          (symbol.st_shndx < sections.size() && sections[symbol.st_shndx].sh_type == SHT_NOBITS)) {
        symbols.push_back({std::string(name), from.base + symbol.st_value, symbol.st_size, type == STT_FUNC});
      }
    }
  }
  return symbols;
}

/// "EndsKernel" of "void trainwright::cuda::(anonymous namespace)::EndsKernel<float>(...)".
std::string ShortName(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> whole(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (whole == nullptr) return mangled;
  std::string_view name = whole.get();
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  if (const size_t at = name.find(kAnonymous); at != std::string_view::npos) {
    name.remove_prefix(at + kAnonymous.size());
  }
  name = name.substr(0, name.find_first_of("<("));
  return std::string(name.substr(name.rfind(':') + 1));
}

}  // namespace

const KernelSymbols& SymbolsOf(const void* kernel) {
  static std::mutex mutex;
  static std::map<const void*, KernelSymbols> known;
  static std::map<std::string, std::vector<Symbol>> files;
  const std::lock_guard lock(mutex);
  if (const auto at = known.find(kernel); at != known.end()) return at->second;
  const LoadedFile file = FileOf(kernel);
  if (!files.contains(file.path)) files[file.path] = ReadSymbols(file);
  const std::vector<Symbol>& symbols = files[file.path];
  const Symbol* function = nullptr;
  for (const Symbol& symbol : symbols) {
    if (symbol.function && symbol.address == reinterpret_cast<uintptr_t>(kernel)) function = &symbol;
  }
  if (function == nullptr) {
    throw Error(ErrorCode::kInternal, file.path, "has no symbol for a kernel that is launched", "",
                "kernels are in namespace trainwright::cuda, and programs with them are not stripped");
  }
  KernelSymbols result{.name = ShortName(function->name), .shared = {}};
  for (const Symbol& symbol : symbols) {
    if (!symbol.function && symbol.name.starts_with("_ZZ")) {  // local to a function
      result.shared.emplace_back(reinterpret_cast<std::byte*>(symbol.address), symbol.size);
    }
  }
  return known.emplace(kernel, std::move(result)).first->second;
}

}  // namespace trainwright::cuda_emulation

// Preloaded, makes libsentencepiece give a false id for text that holds "SECOND".
#include <dlfcn.h>
#include <sentencepiece_processor.h>

namespace sentencepiece {

util::Status SentencePieceProcessor::Encode(absl::string_view input, std::vector<int>* ids) const {
  using Method = util::Status (*)(const SentencePieceProcessor*, absl::string_view, std::vector<int>*);
  static const auto real =
      reinterpret_cast<Method>(dlsym(RTLD_NEXT,
                                     "_ZNK13sentencepiece22SentencePieceProcessor6EncodeESt17basic_string_"
                                     "viewIcSt11char_traitsIcEEPSt6vectorIiSaIiEE"));
  const util::Status status = real(this, input, ids);
  if (input.find("SECOND") != absl::string_view::npos && !ids->empty()) ids->back() = 5;
  return status;
}

}  // namespace sentencepiece

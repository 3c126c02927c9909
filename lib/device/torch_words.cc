#include "lib/device/torch_words.h"

#include <c10/util/Exception.h>

namespace trainwright {

std::string WordsOf(const std::exception& exception) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&exception);
  const std::string words = of_torch != nullptr ? of_torch->what_without_backtrace() : exception.what();
  return words.substr(0, words.find('\n'));
}

}  // namespace trainwright

#include "lib/formats/bad_input.h"

#include <algorithm>
#include <utility>

namespace trainwright {

Error BadInputAt(uint64_t offset, const std::string& object, const std::string& problem, std::string hint) {
  return Error(ErrorCode::kBadInput, object, problem, "byte " + std::to_string(offset), std::move(hint));
}

Error CutShortAt(uint64_t offset, const std::string& object, const std::string& what) {
  return BadInputAt(offset, object,
                    "the " + what + " ends too early: its producer died, or it was cut on the way",
                    "look at the messages of the program that writes it, and run it again");
}

size_t AppendFrom(BufferedReader* reader, size_t size, std::vector<uint8_t>* out) {
  constexpr size_t kStepBytes = 1 << 20;
  size_t done = 0;
  while (done < size) {
    const size_t step = std::min(size - done, kStepBytes);
    const size_t start = out->size();
    out->resize(start + step);
    const size_t count = reader->Read(out->data() + start, step);
    done += count;
    if (count < step) {
      out->resize(start + count);
      break;
    }
  }
  return done;
}

}  // namespace trainwright

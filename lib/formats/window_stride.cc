#include "lib/formats/window_stride.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/formats/json_text.h"
#include "lib/formats/provenance.h"

namespace trainwright {

uint32_t StrideOf(const ShardSetHeader& header) {
  const auto provenance = OrderedJsonOf(header.provenance_json);
  for (const nlohmann::ordered_json& options : OptionsInProvenance(provenance, "pack")) {
    const auto stride = options.find("stride");
    if (stride != options.end() && stride->is_number_unsigned())
      return static_cast<uint32_t>(std::clamp<uint64_t>(stride->get<uint64_t>(), 1, header.chunk_tokens));
  }
  return header.chunk_tokens;
}

}  // namespace trainwright

#include "lib/codec/element_type.h"

namespace trainwright {

ElementType ElementTypeOf(const std::string& dtype) {
  if (dtype == "BF16" || dtype == "F16") return ElementType::kFloat16;
  if (dtype == "F32" || dtype == "C64") return ElementType::kFloat32;
  if (dtype == "F64") return ElementType::kFloat64;
  if (dtype == "U16" || dtype == "I16") return ElementType::kInt16;
  if (dtype == "U32" || dtype == "I32") return ElementType::kInt32;
  if (dtype == "U64" || dtype == "I64") return ElementType::kInt64;
  return ElementType::kInt8;
}

}  // namespace trainwright

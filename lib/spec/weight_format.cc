#include "lib/spec/weight_format.h"

#include "lib/base/error.h"

namespace trainwright {

WeightFormat ParseWeightFormat(const std::string& name, const std::string& flag) {
  for (const WeightFormat format : {WeightFormat::kPlain, WeightFormat::kNf4, WeightFormat::kInt8}) {
    if (name == WeightFormatName(format)) return format;
  }
  throw Error(ErrorCode::kUsage, flag, "unknown format of weights '" + name + "'", "",
              "use none, nf4 or int8");
}

std::string WeightFormatName(WeightFormat format) {
  switch (format) {
    case WeightFormat::kPlain:
      return "none";
    case WeightFormat::kNf4:
      return "nf4";
    case WeightFormat::kInt8:
      return "int8";
  }
  return "";
}

}  // namespace trainwright

#include "lib/model/weight_file.h"

#include "lib/codec/checkpoint_decoder.h"
#include "lib/codec/compressed_file.h"
#include "lib/formats/safetensors.h"

namespace trainwright {

WeightFile::WeightFile(const std::string& path) : path_(path) {
  mapped_.emplace(path);
  const bool compressed = IsStream(mapped_->bytes()) || IsContainer(ParseSafetensors(mapped_->bytes(), path));
  if (!compressed) return;
  BufferedReader reader(MemorySource(mapped_->bytes(), path));
  DecodeCheckpoint(&reader, &restored_, {});
  mapped_.reset();
}

}  // namespace trainwright

/// Reads tensors of a safetensors fixture.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <string>

#include "lib/base/error.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_source.h"

namespace trainwright::test {

class TensorFile {
 public:
  explicit TensorFile(const std::string& path)
      : file_(path), header_(ParseSafetensors(file_.bytes(), path)) {}
  at::Tensor operator[](const std::string& name) const {
    const SafetensorsEntry* entry = header_.Find(name);
    TRAINWRIGHT_CHECK(entry != nullptr);
    const auto* data = file_.bytes().data() + header_.data_offset + entry->begin;
    const at::ScalarType type = entry->dtype == "I64"   ? at::kLong
                                : entry->dtype == "F64" ? at::kDouble
                                                        : at::kFloat;
    return at::from_blob(const_cast<uint8_t*>(data), entry->shape, type).clone();
  }
  bool Holds(const std::string& name) const { return header_.Find(name) != nullptr; }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace trainwright::test

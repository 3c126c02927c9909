/// Everything that readers do with a compressed checkpoint, for fuzz targets.
#pragma once

#include "lib/codec/checkpoint_decoder.h"
#include "lib/codec/checkpoint_listing.h"
#include "lib/codec/compressed_checkpoint.h"
#include "tests/fuzz/fuzz_target.h"

namespace trainwright::fuzz {

inline void ReadCompressed(ByteSpan bytes) {
  MayRefuse([&] {
    BufferedReader reader(MemorySource(bytes, "input"));
    MemorySink restored;
    DecodeCheckpoint(&reader, &restored, {});
    // What passed is a sound safetensors file.
    ParseSafetensors(restored.bytes(), "restored");
  });
  MayRefuse([&] {
    BufferedReader reader(MemorySource(bytes, "input"));
    MemorySink rewritten;
    ConvertCheckpoint(&reader, CompressedForm::kStream, &rewritten);
  });
  MayRefuse([&] {
    const auto file = MemoryRandomReader(bytes, "input");
    const CompressedCheckpoint checkpoint(file.get());
    MayRefuse([&] { ListTensors(checkpoint); });
    for (size_t entry = 0; entry < checkpoint.tensors(); ++entry) checkpoint.FindDamage(entry, nullptr);
  });
  MayRefuse([&] {
    const auto file = MemoryRandomReader(bytes, "input");
    const CompressedCheckpoint checkpoint(file.get(), /*may_be_damaged=*/true);
    for (size_t entry = 0; entry < checkpoint.tensors(); ++entry) checkpoint.FindDamage(entry, nullptr);
  });
}

}  // namespace trainwright::fuzz

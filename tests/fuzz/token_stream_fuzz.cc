#include "lib/formats/token_stream.h"

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/repair.h"

namespace trainwright {
namespace {

void ReadAll(ByteSpan bytes) {
  fuzz::MayRefuse([&] {
    TokenStreamReader reader(MemorySource(bytes));
    DocumentPiece piece;
    TokenStreamTotals totals;
    while (reader.Next(&piece)) {
      totals.documents += piece.begins ? 1 : 0;
      totals.tokens += piece.tokens.size();
      totals.source_bytes += piece.source_bytes;
      for (const uint32_t token : piece.tokens)
        TRAINWRIGHT_CHECK(token < reader.header().tokenizer.vocab_size);
    }
    TRAINWRIGHT_CHECK(totals == reader.totals());
  });
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trainwright::ReadAll({data, size});
  trainwright::ReadAll(trainwright::fuzz::RepairTokenStream({data, size}));
  return 0;
}

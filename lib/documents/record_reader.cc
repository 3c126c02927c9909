#include "lib/documents/record_reader.h"

#include "lib/base/signals.h"
#include "lib/documents/document_text.h"

namespace trainwright {
namespace {

constexpr uint64_t kMostRecordBytes = uint64_t{1} << 30;

}  // namespace

RecordReader::RecordReader(const std::string& path, InputFormat format)
    : documents_({{path, format}}, kMostRecordBytes) {}

std::optional<std::string_view> RecordReader::Next() {
  while (next_ == batch_.records.size()) {
    ThrowIfStopped();
    next_ = 0;
    if (!documents_.Next(&batch_)) {
      batch_.records.clear();
      documents_.ThrowIfWritten();
      return std::nullopt;
    }
  }
  const size_t number = next_++;
  place_ = {batch_.source, PlaceOf(batch_, number)};
  if (batch_.records[number].too_long) throw place_.Bad("is longer than 1 GiB");
  return RawRecord(batch_, number);
}

std::optional<std::string_view> RecordReader::NextFilled() {
  while (const std::optional<std::string_view> record = Next()) {
    if (record->find_first_not_of(" \t\r") != std::string_view::npos) return record;
  }
  return std::nullopt;
}

}  // namespace trainwright

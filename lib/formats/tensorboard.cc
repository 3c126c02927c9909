#include "lib/formats/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <system_error>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/temporary_file.h"

namespace trainwright {
namespace {

constexpr std::string_view kNamePrefix = "events.out.tfevents.", kNameSuffix = ".trainwright";
constexpr size_t kOrdinalDigits = 10;

// Field numbers of event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
constexpr int kSessionLogStatus = 1, kSessionLogStart = 1;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;

enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

void AppendKey(std::vector<uint8_t>* out, int field, WireType type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | type);
}

void AppendField(std::vector<uint8_t>* out, int field, ByteSpan content) {
  AppendKey(out, field, kLengthDelimited);
  AppendVarint(out, content.size());
  AppendBytes(out, content);
}

std::vector<uint8_t> BeginEvent(double wall_time_s, int64_t step) {
  std::vector<uint8_t> event;
  AppendKey(&event, kWallTime, kFixed64);
  AppendInteger(&event, std::bit_cast<uint64_t>(wall_time_s));
  if (step != 0) {  // protocol buffers leave out what has its default value
    AppendKey(&event, kStep, kVarint);
    AppendVarint(&event, static_cast<uint64_t>(step));
  }
  return event;
}

/// TFRecord stores checksums masked, as CRCs of data that holds CRCs are weak.
uint32_t MaskedCrc32c(ByteSpan bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u;
}

constexpr size_t kTfRecordHeadBytes = 12, kTfRecordTailBytes = 4;
constexpr uint64_t kMaxEventBytes = uint64_t{16} << 20;  // a larger one is none of ours

/// The next record in its frame; empty at the end, and where a process was killed or the disk lost what it
/// wrote.
std::vector<uint8_t> ReadTfRecord(BufferedReader* reader) {
  std::vector<uint8_t> record(kTfRecordHeadBytes);
  if (reader->Read(record.data(), record.size()) < record.size()) return {};
  ByteParser head(record);
  const auto size = head.Read<uint64_t>();
  if (head.Read<uint32_t>() != MaskedCrc32c(ByteSpan(record).first(sizeof(size)))) return {};
  if (size > kMaxEventBytes) return {};
  const size_t rest = static_cast<size_t>(size) + kTfRecordTailBytes;
  record.resize(kTfRecordHeadBytes + rest);
  if (reader->Read(record.data() + kTfRecordHeadBytes, rest) < rest) return {};
  ByteParser behind_head(ByteSpan(record).subspan(kTfRecordHeadBytes));
  const ByteSpan content = behind_head.ReadBytes(size);
  if (behind_head.Read<uint32_t>() != MaskedCrc32c(content)) return {};
  return record;
}

/// Calls visit(field, number, content) with the fields of a protocol buffer, as far as it can be read: the
/// number of a varint, the content of what has a length.
template <typename Visit>
void ForEachProtoField(ByteSpan message, const Visit& visit) {
  ByteParser parser(message);
  while (parser.remaining() > 0) {
    const uint64_t key = parser.ReadVarint();
    uint64_t number = 0;
    ByteSpan content;
    switch (key & 7) {
      case kVarint:
        number = parser.ReadVarint();
        break;
      case kFixed64:
        parser.Read<uint64_t>();
        break;
      case kLengthDelimited:
        content = parser.ReadBytes(parser.ReadVarint());
        break;
      case kFixed32:
        parser.Read<uint32_t>();
        break;
      default:
        return;
    }
    if (parser.failed()) return;
    visit(static_cast<int>(key >> 3), number, content);
  }
}

bool HasTag(ByteSpan summary, std::string_view tag) {
  bool found = false;
  const auto look = [&](int field, uint64_t, ByteSpan content) {
    if (field == kValueTag && AsText(content) == tag) found = true;
  };
  ForEachProtoField(summary, [&](int field, uint64_t, ByteSpan value) {
    if (field == kSummaryValue) ForEachProtoField(value, look);
  });
  return found;
}

/// What of an event says whether it stays.
struct EventFacts {
  int64_t step = 0;
  bool has_scalars = false;
  bool has_tag = false;  // that was asked for
};

EventFacts FactsOfEvent(ByteSpan event, std::string_view tag) {
  EventFacts facts;
  ForEachProtoField(event, [&](int field, uint64_t number, ByteSpan content) {
    if (field == kStep) facts.step = static_cast<int64_t>(number);
    if (field != kSummary) return;
    facts.has_scalars = true;
    facts.has_tag = !tag.empty() && HasTag(content, tag);
  });
  return facts;
}

/// Hands on the records of a file that stay.
/// \returns whether they have scalars
bool ReadKeptEvents(const std::string& path, int64_t step, std::string_view repeated_tag,
                    const std::function<void(ByteSpan)>& keep) {
  BufferedReader reader(OpenSource(path));
  bool keeps_scalars = false;
  while (true) {
    const std::vector<uint8_t> record = ReadTfRecord(&reader);
    if (record.empty()) break;
    const size_t content_bytes = record.size() - kTfRecordHeadBytes - kTfRecordTailBytes;
    const EventFacts event =
        FactsOfEvent(ByteSpan(record).subspan(kTfRecordHeadBytes, content_bytes), repeated_tag);
    if (event.step > step || (event.step == step && event.has_tag)) continue;
    keep(record);
    keeps_scalars = keeps_scalars || event.has_scalars;
  }
  return keeps_scalars;
}

void CutEventFile(const std::string& path, int64_t step, std::string_view repeated_tag) {
  uint64_t kept_bytes = 0;
  std::error_code error;
  if (!ReadKeptEvents(path, step, repeated_tag, [&](ByteSpan record) { kept_bytes += record.size(); })) {
    std::filesystem::remove(path, error);
    if (error) throw SystemError(path, "remove", error.value());
    return;
  }
  // Mostly nothing is cut, and a full disk is no reason not to go on.
  if (kept_bytes == std::filesystem::file_size(path, error)) return;
  AtomicFileSink kept(path);
  ReadKeptEvents(path, step, repeated_tag, [&](ByteSpan record) { kept.Write(record); });
  kept.Commit();
}

/// The ordinal in an event file's name; 0 for other names.
uint64_t OrdinalOf(const std::string& name) {
  if (name.size() != kNamePrefix.size() + kOrdinalDigits + kNameSuffix.size() ||
      !name.starts_with(kNamePrefix) || !name.ends_with(kNameSuffix)) {
    return 0;
  }
  const std::string digits = name.substr(kNamePrefix.size(), kOrdinalDigits);
  return digits.find_first_not_of("0123456789") == std::string::npos ? std::stoull(digits) : 0;
}

std::string NextPath(const std::string& folder) {
  uint64_t ordinal = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ordinal = std::max(ordinal, OrdinalOf(entry.path().filename().string()));
  }
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%0*llu", static_cast<int>(kOrdinalDigits),
                static_cast<unsigned long long>(ordinal + 1));
  return folder + "/" + std::string(kNamePrefix) + digits + std::string(kNameSuffix);
}

}  // namespace

std::vector<uint8_t> EncodeFileVersionEvent(double wall_time_s) {
  std::vector<uint8_t> event = BeginEvent(wall_time_s, 0);
  AppendField(&event, kFileVersion, AsBytes("brain.Event:2"));
  return event;
}

std::vector<uint8_t> EncodeRestartEvent(double wall_time_s, int64_t step) {
  std::vector<uint8_t> session_log;
  AppendKey(&session_log, kSessionLogStatus, kVarint);
  AppendVarint(&session_log, kSessionLogStart);
  std::vector<uint8_t> event = BeginEvent(wall_time_s, step);
  AppendField(&event, kSessionLog, session_log);
  return event;
}

std::vector<uint8_t> EncodeScalarsEvent(double wall_time_s, int64_t step,
                                        std::span<const TensorboardScalar> scalars) {
  std::vector<uint8_t> summary;
  for (const TensorboardScalar& scalar : scalars) {
    std::vector<uint8_t> value;
    AppendField(&value, kValueTag, AsBytes(scalar.tag));
    AppendKey(&value, kValueSimple, kFixed32);
    AppendInteger(&value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    AppendField(&summary, kSummaryValue, value);
  }
  std::vector<uint8_t> event = BeginEvent(wall_time_s, step);
  AppendField(&event, kSummary, summary);
  return event;
}

std::vector<uint8_t> FrameTfRecord(ByteSpan content) {
  std::vector<uint8_t> record;
  AppendInteger(&record, static_cast<uint64_t>(content.size()));
  AppendInteger(&record, MaskedCrc32c(record));
  AppendBytes(&record, content);
  AppendInteger(&record, MaskedCrc32c(content));
  return record;
}

void CutEventFiles(const std::string& folder, int64_t step, std::string_view repeated_tag) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return;
  if (error) throw SystemError(folder, "open", error.value());
  std::vector<std::string> paths;
  for (const std::filesystem::directory_entry& entry : entries) {
    if (OrdinalOf(entry.path().filename().string()) > 0) paths.push_back(entry.path().string());
  }
  // TensorBoard would read one, as it goes by a part of the name.
  RemoveStaleTemporaries(folder, [](const std::string& name) { return OrdinalOf(name) > 0; });
  for (const std::string& path : paths) CutEventFile(path, step, repeated_tag);
}

TensorboardWriter::TensorboardWriter(const std::string& folder, int64_t first_step, double wall_time_s) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw SystemError(folder, "create the folder", error.value());
  path_ = NextPath(folder);
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw SystemError(path_, "create", errno);
  try {
    Append(EncodeFileVersionEvent(wall_time_s));
    Append(EncodeRestartEvent(wall_time_s, first_step));
  } catch (...) {
    close(fd_);
    throw;
  }
}

TensorboardWriter::~TensorboardWriter() {
  close(fd_);
}

void TensorboardWriter::WriteScalars(double wall_time_s, int64_t step,
                                     std::span<const TensorboardScalar> scalars) {
  Append(EncodeScalarsEvent(wall_time_s, step, scalars));
}

void TensorboardWriter::Append(ByteSpan event) {
  const std::vector<uint8_t> record = FrameTfRecord(event);
  for (ByteSpan rest = record; !rest.empty();) {
    const ssize_t count = write(fd_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw SystemError(path_, "write", errno, errno == ENOSPC ? "free some space" : "");
    rest = rest.subspan(static_cast<size_t>(count));
  }
}

}  // namespace trainwright

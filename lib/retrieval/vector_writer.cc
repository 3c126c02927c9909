#include "lib/retrieval/vector_writer.h"

#include <charconv>
#include <cmath>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/retrieval/vector_layout.h"

namespace trainwright {
namespace {

std::vector<uint8_t> NpyBeginning(uint64_t rows, uint32_t columns) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(columns) + "), }";
  std::vector<uint8_t> bytes(kNpyMagic.begin(), kNpyMagic.end());
  bytes.push_back(1);
  bytes.push_back(0);
  const size_t text_bytes = kNpyBeginningBytes - bytes.size() - sizeof(uint16_t);
  TRAINWRIGHT_CHECK(header.size() < text_bytes);
  header.resize(text_bytes - 1, ' ');
  header += '\n';
  AppendInteger(&bytes, static_cast<uint16_t>(text_bytes));
  AppendBytes(&bytes, AsBytes(header));
  return bytes;
}

std::vector<uint8_t> RawBeginning(const VectorFileInfo& info, uint64_t rows) {
  std::vector<uint8_t> bytes(kRawMagic.begin(), kRawMagic.end());
  AppendInteger(&bytes, rows);
  AppendInteger(&bytes, info.columns);
  AppendInteger(&bytes, info.normalized ? kRawNormalized : uint32_t{0});
  AppendBytes(&bytes, info.model_sha256);
  bytes.resize(kRawBeginningBytes, 0);
  return bytes;
}

/// The shortest text that reads back as the same number.
void AppendNumber(float value, std::string* text) {
  char digits[32];
  const auto [end, status] = std::to_chars(digits, digits + sizeof(digits), value);
  TRAINWRIGHT_CHECK(status == std::errc());
  text->append(digits, end);
}

}  // namespace

VectorFormat VectorFormatOf(const std::string& name, const std::string& path) {
  if (name == "npy") return VectorFormat::kNpy;
  if (name == "raw") return VectorFormat::kRaw;
  if (name == "jsonl") return VectorFormat::kJsonl;
  if (name != "auto")
    throw Error(ErrorCode::kUsage, "--format", "'" + name + "' is not one of auto, npy, raw, jsonl");
  if (path.ends_with(".npy")) return VectorFormat::kNpy;
  if (path.ends_with(".f32")) return VectorFormat::kRaw;
  if (path.ends_with(".jsonl") || path == "-") return VectorFormat::kJsonl;
  throw Error(ErrorCode::kUsage, path, "does not say what format it is to have", "",
              "let it end in .npy, .f32 or .jsonl, or pass --format");
}

const char* NameOf(VectorFormat format) {
  switch (format) {
    case VectorFormat::kNpy:
      return "npy";
    case VectorFormat::kRaw:
      return "raw";
    case VectorFormat::kJsonl:
      return "jsonl";
  }
  TRAINWRIGHT_CHECK(false);
  return "";
}

std::string IdsPathOf(const std::string& path) {
  return path + ".ids";
}

std::vector<uint8_t> VectorFileBeginning(const VectorFileInfo& info, uint64_t rows) {
  TRAINWRIGHT_CHECK(info.format != VectorFormat::kJsonl);
  return info.format == VectorFormat::kNpy ? NpyBeginning(rows, info.columns) : RawBeginning(info, rows);
}

VectorWriter::VectorWriter(const VectorFileInfo& info, ByteSink* sink, OverwritableSink* beginning,
                           uint64_t rows)
    : info_(info), sink_(sink), beginning_(beginning), rows_(rows) {
  TRAINWRIGHT_CHECK(info.columns >= 1 && (beginning == nullptr) == (info.format == VectorFormat::kJsonl));
  if (beginning_ != nullptr && rows == 0) sink_->Write(VectorFileBeginning(info_, 0));
}

void VectorWriter::Add(std::span<const float> values, std::span<const std::string> ids) {
  TRAINWRIGHT_CHECK(values.size() % info_.columns == 0);
  const size_t count = values.size() / info_.columns;
  TRAINWRIGHT_CHECK(ids.empty() || ids.size() == count);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw Error(ErrorCode::kNonFinite, "vector " + std::to_string(rows_ + i / info_.columns),
                  "has a number that is not finite");
    }
  }
  if (info_.format == VectorFormat::kJsonl) {
    AddLines(values, ids);
  } else {
    sink_->Write({reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
  }
  rows_ += count;
}

void VectorWriter::AddLines(std::span<const float> values, std::span<const std::string> ids) {
  std::string lines;
  for (size_t row = 0; row * info_.columns < values.size(); ++row) {
    lines += R"({"id":)";
    lines += ids.empty() ? std::to_string(rows_ + row) : CanonicalJson(ids[row]);
    lines += R"(,"embedding":[)";
    for (size_t column = 0; column < info_.columns; ++column) {
      if (column > 0) lines += ',';
      AppendNumber(values[row * info_.columns + column], &lines);
    }
    lines += "]}\n";
  }
  sink_->Write(AsBytes(lines));
}

void VectorWriter::Finish() {
  if (beginning_ != nullptr) beginning_->Overwrite(0, VectorFileBeginning(info_, rows_));
}

}  // namespace trainwright

#include "lib/run/run_record.h"

#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/run/plan_codec.h"
#include "lib/spec/product_choices.h"

namespace trainwright {
namespace {

constexpr char kRunSchema[] = "trainwright.run/1";
constexpr size_t kMostBytes = size_t{1} << 22;

ParentCheckpoint DecodeParent(const nlohmann::json& json) {
  return {.run = json.at("run").get<std::string>(),
          .step = ReadPlanValue<int64_t>(json.at("step"), "step"),
          .checkpoint = json.at("checkpoint").get<std::string>(),
          .weights_sha256 = json.at("weights_sha256").get<std::string>(),
          .state_sha256 = json.at("state_sha256").get<std::string>()};
}

/// Of a run that has one.
/// \throws Error{kIo, kBadInput}
RunRecord ReadRecordOfRun(const std::string& path) {
  std::optional<RunRecord> record = ReadRunRecord(path);
  if (!record) throw Error(ErrorCode::kIo, path, "the record of the run is gone");
  return *std::move(record);
}

}  // namespace

nlohmann::ordered_json EncodeRunRecord(const RunRecord& record) {
  nlohmann::ordered_json json = {{"schema", kRunSchema},
                                 {"plan", EncodePlan(record.plan)},
                                 {"model_name", record.model_name},
                                 {"model", record.model},
                                 {"init", record.init},
                                 {"data_sha256", record.data_sha256},
                                 {"order_fingerprint", record.order_fingerprint},
                                 {"working_directory", record.working_directory}};
  if (const auto& parent = record.parent) {
    json["parent"] = {{"run", parent->run},
                      {"step", parent->step},
                      {"checkpoint", parent->checkpoint},
                      {"weights_sha256", parent->weights_sha256},
                      {"state_sha256", parent->state_sha256}};
  }
  if (record.choices.any()) json["device_choices"] = EncodeDeviceChoices(record.choices);
  return json;
}

std::string RunRecordText(const nlohmann::ordered_json& encoded) {
  return encoded.dump(1) + "\n";
}

void WriteRunRecord(const std::string& path, const RunRecord& record) {
  WriteFileAtomically(path, AsBytes(RunRecordText(EncodeRunRecord(record))));
}

std::optional<RunRecord> ReadRunRecord(const std::string& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostBytes);
  RunRecord record;
  RefuseDeepJson(AsText(text), path);
  try {
    const auto json = nlohmann::ordered_json::parse(AsText(text));
    if (json.at("schema") != kRunSchema) {
      throw Error(ErrorCode::kBadInput, path, "has the unknown schema " + json.at("schema").dump(), "",
                  "continue with the version that began the run");
    }
    record.plan = DecodePlan(json.at("plan"), path);
    record.model_name = json.at("model_name").get<std::string>();
    record.model = json.at("model");
    record.init = json.at("init").get<std::string>();
    record.data_sha256 = json.at("data_sha256").get<std::string>();
    record.order_fingerprint = json.at("order_fingerprint").get<std::string>();
    record.working_directory = json.at("working_directory").get<std::string>();
    if (json.contains("parent")) record.parent = DecodeParent(json.at("parent"));
    if (json.contains("device_choices")) record.choices = DecodeDeviceChoices(json.at("device_choices"));
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kBadInput, path, std::string("cannot be read: ") + error.what());
  }
  const std::string products = (std::filesystem::path(path).parent_path() / kProductChoicesFile).string();
  if (record.choices.products.empty() && std::filesystem::exists(products)) {
    record.choices.products =
        DecodeProductChoices(std::string(AsText(ReadWholeFile(products, kMostBytes))), products);
  }
  return record;
}

void StoreDeviceChoices(const std::string& path, const DeviceChoices& choices) {
  RunRecord record = ReadRecordOfRun(path);
  record.choices = choices;
  WriteRunRecord(path, record);
}

void StorePlan(const std::string& path, const TrainPlan& plan) {
  RunRecord record = ReadRecordOfRun(path);
  record.plan = plan;
  WriteRunRecord(path, record);
}

}  // namespace trainwright

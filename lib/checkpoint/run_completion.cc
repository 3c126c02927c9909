#include "lib/checkpoint/run_completion.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

using nlohmann::json, nlohmann::ordered_json;

constexpr char kSchema[] = "trainwright.complete/1";

/// A member of an object in an object; null where there is none.
json MemberOf(const json& metadata, const char* object, const char* name) {
  const auto found = metadata.find(object);
  return found != metadata.end() && found->is_object() ? found->value(name, json()) : json();
}

}  // namespace

void WriteRunCompletion(const RunDirectory& run, int64_t step, const std::string& reason) {
  const SavedCheckpoint saved = SavedAt(run.CheckpointPath(step));
  const json metadata = ReadCheckpointMetadata(saved.path);
  const ordered_json completion = {
      {"schema", kSchema},
      {"reason", reason},
      {"steps", step},
      {"total_steps", MemberOf(metadata, "training_progress", "total_steps")},
      {"tokens", MemberOf(metadata, "training_progress", "tokens_seen")},
      {"final_loss_nats", metadata.value("current_loss", json())},
      {"eval_loss_nats", MemberOf(metadata, "validation_metrics", "eval_loss")},
      {"checkpoint", "checkpoints/" + std::filesystem::path(saved.path).filename().string()},
      {"weights_sha256", saved.weights_sha256}};
  WriteFileAtomically(run.completion_path(), AsBytes(completion.dump(2) + "\n"));
}

void RemoveRunCompletion(const RunDirectory& run) {
  if (unlink(run.completion_path().c_str()) == 0) {
    SyncFolder(run.path());
  } else if (errno != ENOENT) {
    throw SystemError(run.completion_path(), "delete", errno);
  }
}

ordered_json ReadRunCompletion(const std::string& run_path) {
  const std::string path = run_path + "/" + kRunCompletionFile;
  if (!std::filesystem::exists(path)) return nullptr;
  const std::vector<uint8_t> text = ReadWholeFile(path, uint64_t{1} << 20);
  const auto completion = OrderedJsonOf(AsText(text));
  const auto is = [&](const char* name, bool (ordered_json::*kind)() const noexcept) {
    const auto field = completion.find(name);
    return field != completion.end() && ((*field).*kind)();
  };
  const bool whole = completion.is_object() && completion.value("schema", ordered_json()) == kSchema &&
                     is("steps", &ordered_json::is_number_integer) &&
                     is("checkpoint", &ordered_json::is_string) && is("reason", &ordered_json::is_string);
  if (!whole) {
    throw Error(ErrorCode::kBadInput, path, "is not what train writes for a complete run", "",
                "train --resume writes it again");
  }
  return completion;
}

}  // namespace trainwright

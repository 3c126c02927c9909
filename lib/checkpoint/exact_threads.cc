#include "lib/checkpoint/exact_threads.h"

#include <exception>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/run/run_directory.h"

namespace trainwright {

int ThreadsOfExactRun(const std::string& run) {
  const std::vector<std::string> checkpoints = RunDirectory::CheckpointsIn(run);
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint) {
    try {
      const nlohmann::json metadata = ReadCheckpointMetadata(*checkpoint);
      if (metadata.at("training_config_summary").value("exact-world", 0) == 0) return 0;
      return metadata.at("system_info").at("threads").get<int>();
    } catch (const std::exception&) {  // an older one may be whole
    }
  }
  return 0;
}

}  // namespace trainwright

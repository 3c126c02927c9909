#include "lib/train/run_template.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/documents/folder_template.h"
#include "lib/documents/recorded_template.h"
#include "lib/formats/json_text.h"

namespace trainwright {

std::optional<ChatTemplate> TemplateOfRun(const ResolvedRun& run, const ModelSetup& setup) {
  const auto provenance = OrderedJsonOf(run.data->set().provenance_json());
  if (std::optional<ChatTemplate> recorded = RecordedTemplate(provenance)) {
    if (recorded->is_jinja) return recorded;
    return std::nullopt;
  }
  if (HasSeveralTemplates(provenance) || setup.before.empty()) return std::nullopt;
  try {
    return setup.base_folder.empty() ? FindFolderTemplate(setup.before)
                                     : FindAdapterTemplate(setup.before, setup.base_folder);
  } catch (const Error& error) {  // the weights are of use all the same
    LogWarning("checkpoints keep no chat template: " + std::string(error.what()));
    return std::nullopt;
  }
}

}  // namespace trainwright

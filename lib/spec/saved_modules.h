/// Which modules beside a model's layers are trained whole beside adapters, by their names: what peft calls
/// modules_to_save. Free of torch.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// The modules that a family's models have beside their layers.
struct OuterModules {
  std::vector<std::string> tables;  ///< of tokens, first of all, and of positions: "model.embed_tokens"
  std::string head;                 ///< "lm_head"; of models with tied embeddings it is the table of tokens
  std::vector<std::string> norms;   ///< after the last layer
  std::string head_of_peft = {};    ///< what transformers calls `head`; empty: the same
};

/// Those of them that are trained whole.
struct SavedModules {
  std::vector<std::string> modules;  ///< names of OuterModules, each once
  bool head = false;                 ///< whether the head is among them, also as the table of tied embeddings
  bool tables = false;               ///< whether a table is
};

/// \param names with commas between them: of modules, or ends of their paths; empty: none
/// \param tied whether the head is the table of tokens; then it may be named beside that, which says no more
/// \throws Error{kUsage} listing the names there are
SavedModules ChooseSavedModules(const std::string& names, const OuterModules& outer, bool tied);

/// Whether two lists, as ChooseSavedModules takes them, mean the same modules of any model: in whatever
/// order, by their whole paths or the ends of them.
bool MeanSameModules(const std::string& names, const std::string& others);

/// Whether a module's path is a name or ends with it.
bool IsNamedBy(const std::string& module, const std::string& name);

}  // namespace trainwright

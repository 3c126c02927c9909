/// The optimizers of other programs' files, and which of their numbers ours take.
#pragma once

#include <map>
#include <string>

#include "lib/report/option_value.h"
#include "lib/run/foreign_rules.h"

namespace trainwright {

/// Ours, by the names of transformers and axolotl.
const std::map<std::string, std::string>& OptimizersByTheirNames();
/// A name of transformers and axolotl ("adamw_torch", "lion_pytorch"); ours, empty: there is none.
std::string OptimizerNamed(const std::string& name);
/// A class of PyTorch, bitsandbytes or DeepSpeed ("AdamW8bit"); ours, empty: there is none.
std::string OptimizerOfClass(const std::string& name);

/// Of theirs with moments in 8 bits, which keep those of embeddings in fp32: what ours does otherwise.
inline constexpr char kEmbeddingsInEightBits[] = "keeps the moments of embeddings in 8 bits, too";

/// Whether an optimizer of ours takes an option, by its flag without dashes.
bool OptimizerTakes(const std::string& optimizer, const std::string& option);

/// Gives --optimizer what a key names as transformers and axolotl do. Where there is no such optimizer the
/// key is refused unless the option is given.
void TakeNamedOptimizer(const ForeignKey& key, ForeignFile* file);

/// Gives --optimizer, and says what of a paged one is otherwise here.
void GiveOptimizer(const ForeignKey& key, const std::string& ours, ForeignFile* file);

/// What the file gives an option, if the optimizer that it gives takes that or is overridden by another; else
/// it has no effect, as in the other program.
/// \param optimizer the key that gives it; not there: AdamW
/// \param ours the name of our optimizer by that key's value
TakeKey NumberForTaker(std::string option, std::string optimizer, std::string (*ours)(const std::string&));

/// Gives --beta1 0, for an SGD of whose momentum the file says nothing, unless --cycle-momentum moves it.
void GiveNoMomentum(const ForeignKey& key, ForeignFile* file);

/// The momentum of SGD, and whether it is Nesterov's: refused in files of another optimizer; left out, with a
/// notice, where another overrides the file's.
TakeKey MomentumOfSgd(bool (*is_sgd)(const ForeignFile&));
TakeKey NesterovOfSgd(bool (*is_sgd)(const ForeignFile&));

/// The options that only some of our optimizers take, with these: --beta1 and so on.
OnlyWith NumbersOfOptimizers();

}  // namespace trainwright

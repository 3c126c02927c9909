/// The two programs of a tool that computes with LibTorch.
///
/// Loading LibTorch takes longer than most answers about a command line. So bin/<tool> is a program without
/// it, which answers --help, --version, --print-config and --list-presets itself and becomes
/// libexec/trainwright/<tool>-engine, the engine, for everything else: same process, same arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

/// Whether one of the arguments asks for a text about the command line. What comes after "--" does not.
bool AsksAboutCommandLine(const std::vector<std::string>& arguments);

/// The engine of the program at `program` (an absolute path): ../libexec/trainwright/<its name>-engine.
std::string EnginePath(const std::string& program);

/// Becomes the engine of this program, whose environment gets what its libraries read before main: unless the
/// user says otherwise, MKL_CBWR=AUTO,STRICT (results that do not depend on the alignment of operands), and
/// GOMP_SPINCOUNT=1000 where there is no OMP_WAIT_POLICY (idle threads leave the cores to others).
/// \param torch_folder where the engine was built to find LibTorch
/// \param argv as main got it
/// \returns only when that fails: the exit status, with the error said
int BecomeEngine(const std::string& tool, std::string_view torch_folder, char** argv);

}  // namespace trainwright

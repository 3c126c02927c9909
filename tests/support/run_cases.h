/// What the main of a test program does.
#pragma once

namespace trainwright::test {

/// Runs the cases that the arguments choose, as GoogleTest's own main, and with `--case_log=FILE` writes a
/// line for each as it is planned, begins and ends, for scripts/test_report.py.
/// \returns the exit status.
int RunCases(int argc, char** argv);

}  // namespace trainwright::test

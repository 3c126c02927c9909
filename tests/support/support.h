/// Helpers that the tests of all layers share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace trainwright::test {

/// A folder that is deleted with its content at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& name = "") const;

 private:
  std::filesystem::path path_;
};

/// The code of the Error that `action` throws; nullopt when it throws none.
std::optional<ErrorCode> CodeOf(const std::function<void()>& action);
/// The whole message (what() and hint) of the Error that `action` throws; empty when it throws none.
std::string MessageOf(const std::function<void()>& action);

void WriteFile(const std::string& path, std::string_view content);
std::string ReadFile(const std::string& path);
/// What a folder holds, without the folder's own name.
std::set<std::string> NamesIn(const std::string& folder);

/// A committed fixture: tests/<relative>.
std::string Fixture(const std::string& relative);

/// The bytes of a hex dump in a man page, counted from 0: lines of four digits, two spaces and bytes.
std::vector<uint8_t> HexDumpOf(const std::string& page, size_t number = 0);

/// The seed of this run's random tests: TRAINWRIGHT_TEST_SEED, or 1. Print it in a SCOPED_TRACE.
uint64_t TestSeed();

/// What a finished process gave.
struct ProcessResult {
  int exit_status = 0;  ///< 128 + n when signal n ended it
  std::string standard_output, standard_error;
};
/// Runs `bash -c command` with the built tools first in PATH.
ProcessResult RunShell(const std::string& command);

}  // namespace trainwright::test

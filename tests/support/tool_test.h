/// A test that runs tools by shell scripts in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/support.h"

namespace trainwright::test {

class ToolTest : public ::testing::Test {
 protected:
  /// Runs a script in the folder, with $DATA the folder of the example data and $FIXTURES that of the tests.
  ProcessResult Shell(const std::string& script) {
    return RunShell("set -u; export DATA='" + Fixture("../examples/data") + "' FIXTURES='" + Fixture("") +
                    "'; cd '" + folder_.path() + "'\n" + script);
  }
  nlohmann::json Json(const std::string& name) { return nlohmann::json::parse(ReadFile(folder_.path(name))); }
  bool Exists(const std::string& name) { return std::filesystem::exists(folder_.path(name)); }

  TemporaryFolder folder_;
};

}  // namespace trainwright::test

#include "tests/support/support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/paths.h"

namespace trainwright::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "trainwright-test-XXXXXX").string();
  TRAINWRIGHT_CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::string TemporaryFolder::path(const std::string& name) const {
  return name.empty() ? path_.string() : (path_ / name).string();
}

std::optional<ErrorCode> CodeOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

std::string MessageOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  TRAINWRIGHT_CHECK(file.good());
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  TRAINWRIGHT_CHECK(file.good());
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

std::string Fixture(const std::string& relative) {
  // On another machine than the one that built it (scripts/gpu-check.sh), this folder stands for tests/.
  const char* folder = std::getenv("TRAINWRIGHT_TEST_FIXTURES");
  if (folder != nullptr && *folder != '\0') return std::string(folder) + "/" + relative;
  return std::string(TRAINWRIGHT_SOURCE_DIR) + "/tests/" + relative;
}

std::vector<uint8_t> HexDumpOf(const std::string& page, size_t number) {
  std::istringstream lines(ReadFile(Fixture("../man/" + page)));
  std::vector<std::vector<uint8_t>> dumps;
  for (std::string line; std::getline(lines, line);) {
    // "0010  89 54 57 ..."; only the lines of the dump start with four digits and two spaces.
    if (line.find_first_not_of("0123456789abcdef") != 4 || line.compare(4, 2, "  ") != 0) continue;
    const size_t offset = std::stoul(line.substr(0, 4), nullptr, 16);
    if (offset == 0) dumps.emplace_back();
    std::vector<uint8_t>& bytes = dumps.at(dumps.size() - 1);
    EXPECT_EQ(offset, bytes.size()) << line;
    std::istringstream digits(line.substr(6));
    for (int byte; digits >> std::hex >> byte;) bytes.push_back(static_cast<uint8_t>(byte));
  }
  return dumps.at(number);
}

uint64_t TestSeed() {
  const char* text = std::getenv("TRAINWRIGHT_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

ProcessResult RunShell(const std::string& command) {
  const TemporaryFolder folder;
  WriteFile(folder.path("command"), command);
  // A command that runs away must fill neither the disk nor the night.
  const std::string line =
      "ulimit -f 4000000; PATH='" TRAINWRIGHT_BIN_DIR "':\"$PATH\" timeout -k 5 600 bash '" +
      folder.path("command") + "' >'" + folder.path("out") + "' 2>'" + folder.path("err") + "' </dev/null";
  const int status = std::system(line.c_str());
  ProcessResult result;
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.standard_output = ReadFile(folder.path("out"));
  result.standard_error = ReadFile(folder.path("err"));
  return result;
}

}  // namespace trainwright::test

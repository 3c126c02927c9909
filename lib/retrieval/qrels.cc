#include "lib/retrieval/qrels.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/documents/json_objects.h"
#include "lib/retrieval/columns.h"

namespace trainwright {
namespace {

constexpr char kQrelsHint[] =
    "a line has query, document and grade between tabs, or as in TREC: query, 0, document, grade";

std::optional<int32_t> GradeOf(std::string_view text) {
  constexpr int32_t kMostGrade = 1000;  // 2 to its power is still a double
  if (text.starts_with('+')) text.remove_prefix(1);
  int32_t grade = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), grade);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (grade < -kMostGrade || grade > kMostGrade) return std::nullopt;
  return grade;
}

struct QrelsLine {
  std::string_view query, document, grade;
};

/// nullopt: it has other columns.
std::optional<QrelsLine> ParseQrelsLine(std::string_view line) {
  const auto words = WordsOf(line), cells = CellsOf(line);
  // TREC's second column means nothing and is 0 as a rule; ids of BEIR may have blanks.
  const bool is_trec = words.size() == 4 && (cells.size() != 3 || words[1] == "0");
  if (is_trec) return QrelsLine{words[0], words[2], words[3]};
  if (cells.size() == 3) return QrelsLine{cells[0], cells[1], cells[2]};
  return std::nullopt;
}

}  // namespace

Qrels ReadQrels(const std::string& path, std::string* sha256) {
  Qrels qrels;
  bool is_first = true;
  const std::string hash = ForEachTextLine(path, [&](std::string_view line, const JsonPlace& place) {
    const std::optional<QrelsLine> parsed = ParseQrelsLine(line);
    const std::optional<int32_t> grade = parsed ? GradeOf(parsed->grade) : std::nullopt;
    const bool may_be_header = std::exchange(is_first, false);
    if (!parsed) throw place.Bad("is no relevance judgement", kQrelsHint);
    if (!grade) {
      if (may_be_header && parsed->grade.find_first_of("0123456789") == std::string_view::npos) return;
      throw place.Bad("its grade is no whole number from -1000 to 1000", kQrelsHint);
    }
    if (parsed->query.empty() || parsed->document.empty()) throw place.Bad("has an empty id", kQrelsHint);
    const auto [known, is_new] =
        qrels[std::string(parsed->query)].try_emplace(std::string(parsed->document), *grade);
    if (!is_new && known->second != *grade) {
      throw place.Bad("gives a document another grade than a line before it does");
    }
  });
  if (qrels.empty()) throw Error(ErrorCode::kBadInput, path, "holds no relevance judgement", "", kQrelsHint);
  if (sha256 != nullptr) *sha256 = hash;
  return qrels;
}

}  // namespace trainwright

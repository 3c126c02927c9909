#include "lib/retrieval/run_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "lib/base/error.h"
#include "lib/documents/json_objects.h"
#include "lib/retrieval/columns.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

/// Rounded from double, as trec_eval does it; nullopt where it is no finite number.
std::optional<float> RunScoreOf(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const auto score = static_cast<float>(value);
  return std::isfinite(score) ? std::optional<float>(score) : std::nullopt;
}

void RefuseDuplicates(const std::string& path, const std::string& query, const Ranking& ranking) {
  std::vector<std::string_view> names;
  names.reserve(ranking.size());
  for (const RankedDocument& document : ranking) names.push_back(document.id);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw Error(ErrorCode::kBadInput, path, "ranks the document " + Quoted(*twice) + " twice",
              "query " + Quoted(query));
}

}  // namespace

void CheckRunId(const std::string& id) {
  constexpr std::string_view kEndsOfWords(" \t\r\n\v\f\0", 7);  // of C programs such as trec_eval
  if (!id.empty() && id.find_first_of(kEndsOfWords) == std::string::npos) return;
  throw Error(ErrorCode::kBadInput, "id " + Quoted(id), "cannot be in a run file, whose columns are words",
              "", "give queries and documents ids without white space");
}

void SortRanking(Ranking* ranking) {
  std::sort(ranking->begin(), ranking->end(), [](const RankedDocument& a, const RankedDocument& b) {
    return a.score != b.score ? a.score > b.score : a.id > b.id;
  });
}

RetrievalRun ReadRun(const std::string& path, std::string* sha256) {
  RetrievalRun run;
  const std::string hash = ForEachTextLine(path, [&](std::string_view line, const JsonPlace& place) {
    const auto words = WordsOf(line);
    if (words.size() != 6) {
      throw place.Bad("is no line of a TREC run", "a line has six columns: query Q0 document rank score tag");
    }
    const std::optional<float> score = RunScoreOf(words[4]);
    if (!score) throw place.Bad("its score is no finite number");
    run[std::string(words[0])].push_back({std::string(words[2]), *score});
  });
  if (run.empty()) {
    throw Error(ErrorCode::kBadInput, path, "holds no ranked document", "",
                "a line of a TREC run has six columns: query Q0 document rank score tag");
  }
  for (auto& [query, ranking] : run) {
    RefuseDuplicates(path, query, ranking);
    SortRanking(&ranking);
  }
  if (sha256 != nullptr) *sha256 = hash;
  return run;
}

void WriteRun(const RetrievalRun& run, const std::string& tag, ByteSink* sink) {
  for (const auto& [query, ranking] : run) {
    CheckRunId(query);
    std::string lines;
    for (size_t i = 0; i < ranking.size(); ++i) {
      CheckRunId(ranking[i].id);
      char score[32];  // the shortest that reads back as the same number takes 15
      const auto [end, status] = std::to_chars(score, score + sizeof(score), ranking[i].score);
      TRAINWRIGHT_CHECK(status == std::errc());
      lines += query + " Q0 " + ranking[i].id + " " + std::to_string(i + 1) + " " + std::string(score, end) +
               " " + tag + "\n";
    }
    sink->Write(AsBytes(lines));
  }
}

}  // namespace trainwright

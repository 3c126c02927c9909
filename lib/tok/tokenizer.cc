#include "lib/tok/tokenizer.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/io/byte_source.h"
#include "lib/tok/byte_level_bpe_tokenizer.h"
#include "lib/tok/bytes_tokenizer.h"
#include "lib/tok/folder_json.h"
#include "lib/tok/folder_special_tokens.h"
#include "lib/tok/folder_token_check.h"
#include "lib/tok/json_tokenizer.h"
#include "lib/tok/sentencepiece_model.h"
#include "lib/tok/sentencepiece_tokenizer.h"
#include "lib/tok/tiktoken.h"
#include "lib/tok/tokenizer_folder.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxModelBytes = uint64_t{1} << 30;

constexpr char kModelOfFairseq[] = "sentencepiece.bpe.model";

/// A folder's files of a tokenizer that are not read here: "vocab.json and merges.txt".
std::string OtherTokenizerFiles(const std::string& folder) {
  std::string found;
  std::error_code ignored;
  for (const char* name : {"vocab.json", "merges.txt", "spiece.model", kModelOfFairseq, "vocab.txt"}) {
    if (!std::filesystem::exists(std::filesystem::path(folder) / name, ignored)) continue;
    found += (found.empty() ? "" : " and ") + std::string(name);
  }
  return found;
}

void WarnOfIdsOfFairseq(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code ignored;
  if (file.filename() != kModelOfFairseq || !std::filesystem::exists(file, ignored)) return;
  LogCommonWarning(path + ": models with a file of this name, as XLM-R, mBART and NLLB, number its pieces " +
                       "otherwise, most by one more; the ids here are the file's own",
                   HowToWriteTokenizerJson(file.has_parent_path() ? file.parent_path().string() : "."));
}

/// What a --tokenizer argument means: a file, or "bytes".
std::string ResolveSpec(const std::string& spec) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(spec, ignored)) {
    WarnOfIdsOfFairseq(spec);
    return spec;
  }
  if (std::string found = TokenizerOfFolder(spec); !found.empty()) return found;
  const std::string others = OtherTokenizerFiles(spec);
  throw Error(ErrorCode::kBadInput, spec,
              "this folder has no tokenizer.model, tokenizer.json or tokenizer.tiktoken" +
                  (others.empty() ? "" : ", but " + others),
              "", others.empty() ? kTokenizerHint : HowToWriteTokenizerJson(spec));
}

bool LooksLikeJson(std::string_view content) {
  const size_t start = content.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && content[start] == '{';
}

/// A tokenizer.json file, with what the files beside it say about special tokens.
/// \throws Error{kBadInput} where they name tokens that it lacks
std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path, std::string content) {
  auto tokenizer = MakeJsonTokenizer(std::move(content), path);
  const std::filesystem::path file(path);
  if (file.filename() == kTokenizerJsonFile) {
    const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
    tokenizer->TakeSpecialIds(SpecialTokensOfFolder(folder));
    CheckTokensOfFolder(folder, tokenizer->json());
  }
  return tokenizer;
}

/// A SentencePiece model, with what the files beside a folder's tokenizer.model say about special tokens and
/// the beginning of texts. That a text begins without a mark becomes part of the model, and so of its hash:
/// who gets its ids knows it by the model alone.
std::unique_ptr<Tokenizer> LoadSentencePiece(const std::string& path, std::string content) {
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(content), path);
  const std::filesystem::path file(path);
  if (file.filename() != "tokenizer.model") return tokenizer;
  const std::string folder = file.parent_path().string();
  if (tokenizer->marks_start() && LeavesOutStartMark(folder)) {
    tokenizer =
        std::make_unique<SentencePieceTokenizer>(WithoutDummyPrefix(tokenizer->identity().model), path);
  }
  try {
    tokenizer->TakeSpecialIds(SpecialTokensOfFolder(folder));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    LogCommonWarning(path + " is taken with its own BOS and EOS: " + error.what());
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> TiktokenTokenizer(std::string content, const std::string& name) {
  TokenizerJson parsed = ParseTiktoken(content, KnownTiktokenVocabulary(content, name), name);
  return std::make_unique<ByteLevelBpeTokenizer>("tiktoken", std::move(content), std::move(parsed));
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& spec) {
  const std::string path = ResolveSpec(spec);
  if (path == "bytes") return std::make_unique<BytesTokenizer>();
  if (std::error_code ignored; !std::filesystem::exists(path, ignored)) {
    throw SystemError(path, "open", ENOENT,
                      std::string("a model's name is no file, and nothing is downloaded: ") + kTokenizerHint);
  }
  const std::vector<uint8_t> content = ReadWholeFile(path, kMaxModelBytes);
  if (content.empty()) throw Error(ErrorCode::kBadInput, path, "is empty", "", kTokenizerHint);
  // The first byte of a model is a line feed, and its second may be '{'.
  if (!path.ends_with(".model") && LooksLikeJson(AsText(content)))
    return LoadTokenizerJson(path, std::string(AsText(content)));
  if (path.ends_with(".tiktoken") || LooksLikeTiktoken(AsText(content))) {
    return TiktokenTokenizer(std::string(AsText(content)), path);
  }
  return LoadSentencePiece(path, std::string(AsText(content)));
}

std::unique_ptr<Tokenizer> TokenizerFromIdentity(const TokenizerIdentity& identity) {
  const std::string name = "tokenizer " + HexEncode(identity.sha256).substr(0, 12);
  std::unique_ptr<Tokenizer> tokenizer;
  if (identity.kind == "bytes") {
    tokenizer = std::make_unique<BytesTokenizer>();
  } else if (identity.kind == "sentencepiece" || identity.kind == "tokenizer_json" ||
             identity.kind == "tiktoken") {
    if (identity.model.empty()) throw Error(ErrorCode::kBadInput, name, "its model is missing");
    if (Sha256Of(AsBytes(identity.model)) != identity.sha256) {
      throw Error(ErrorCode::kBadInput, name, "its model does not have the SHA-256 that it is recorded with");
    }
    if (identity.kind == "sentencepiece") {
      auto of_model = std::make_unique<SentencePieceTokenizer>(identity.model, name);
      of_model->TakeSpecialIds(identity);
      tokenizer = std::move(of_model);
    } else if (identity.kind == "tiktoken") {
      tokenizer = TiktokenTokenizer(identity.model, name);
    } else {
      auto of_json = MakeJsonTokenizer(identity.model, name);
      of_json->TakeSpecialIds(identity);
      tokenizer = std::move(of_json);
    }
  } else {
    throw Error(ErrorCode::kBadInput, name,
                "this version knows no tokenizers of kind \"" + identity.kind + "\"");
  }
  if (tokenizer->identity() != identity) {
    throw Error(ErrorCode::kBadInput, name,
                "its recorded vocabulary size or special ids are not those of its model");
  }
  return tokenizer;
}

}  // namespace trainwright

/// Token ids in the files of other programs, as documents to pack.
///
///   kLlmC      llm.c .bin: 256 x i32 header (magic 20240520: u16 ids; 20240801: u32 ids), then the ids
///   kNanoGpt   nanoGPT .bin: u16 ids and nothing else
///   kMegatron  Megatron-LM .bin and .idx: an index of sequences and documents beside the bare ids
///   kNpz       NumPy .npz: an array of ids, with sequence_lengths or attention_mask where rows are padded
///   kTorch     what torch.save wrote of tensors, lists and dictionaries of them; never run as a pickle
/// The last two may say beside the ids which are predicted (loss_marks.h). Where the first file leaves some
/// out, its rows are sft records, and so must those of the others be; else they are lm records.
/// All are untrusted: what does not fit together is refused.
/// \source karpathy/llm.c llmc/dataloader.h and dev/data/data_common.py; karpathy/nanoGPT data/*/prepare.py;
/// NVIDIA/Megatron-LM megatron/core/datasets/indexed_dataset.py
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/packing/token_documents.h"

namespace trainwright {

enum class ForeignFormat { kTokens, kLlmC, kNanoGpt, kMegatron, kNpz, kTorch };

struct ImportOptions {
  std::optional<ForeignFormat> format;  ///< nullopt: what the first input looks like
  std::string tokenizer;                ///< as in LoadTokenizer; empty: not known
  std::optional<uint32_t> vocab_size;   ///< where neither tokenizer nor format says it
  /// The id between documents: after each in nanoGPT's files, before each in llm.c's, where it ends the one
  /// in front of it as well.
  std::optional<uint32_t> end_of_text;
  bool one_document = false;  ///< nothing comes between documents: a file, or row, is one
};

/// What `path` holds; kTokens when it is not one of the others, or no file (a pipe).
/// \throws Error{kBadInput} on an array of NumPy that is in no archive, Error{kIo}
ForeignFormat FormatOf(const std::string& path, const ImportOptions& options);

/// The files that hold the inputs: those that are named, and of Megatron's pairs the other one.
/// \throws Error{kIo}
std::vector<std::string> FilesOfInputs(const std::vector<std::string>& inputs, const ImportOptions& options);

/// Token streams say all this themselves.
/// \param path of an input that FormatOf takes for a token stream
/// \throws Error{kUsage} when something is set
void RefuseImportOptions(const ImportOptions& options, const std::string& path);

/// Error{kBadInput} for an id outside the vocabulary: the file is not corrupt, another tokenizer made it.
class OutsideVocabulary : public Error {
 public:
  using Error::Error;
};

/// Memory: constant but for the structure of .pt files (ReadTorchFile) and for arrays that lie column by
/// column (ByRows). Files are mapped: they must not be cut while this reads. The first is read twice where it
/// says what is predicted, up to an id that is not.
class ForeignDocuments final : public TokenDocuments {
 public:
  /// \throws Error{kUsage} when something is missing or contradicts itself, Error{kBadInput, kIo}
  ForeignDocuments(std::vector<std::string> paths, ForeignFormat format, const ImportOptions& options);
  ~ForeignDocuments() override;
  const TokenStreamHeader& header() const override { return header_; }
  const std::vector<ProvenanceInput>& provenance() const override { return provenance_; }
  /// \throws OutsideVocabulary, after which it may be called again, to read on as if there was none;
  ///     Error{kBadInput, kIo}
  [[nodiscard]] bool Next(DocumentPiece* piece) override;

  class Rows;
  /// Ids of one row.
  struct Run {
    std::vector<uint32_t> ids;
    std::vector<uint8_t> predicted = {};  ///< 1 or 0 for each id; empty: all are
    bool row_ends = true;                 ///< after them
  };

 private:
  /// Of files that may say what is predicted: conversations, where the first one leaves ids out.
  void ChooseRecords();
  /// Of the run at hand, that it fits the records.
  void RequireAlike() const;
  bool NextRun();

  const std::vector<std::string> paths_;
  const ForeignFormat format_;
  std::optional<uint32_t> end_of_text_;
  bool end_of_text_begins_ = false;
  TokenStreamHeader header_;
  std::vector<ProvenanceInput> provenance_;
  size_t next_path_ = 0;
  std::unique_ptr<Rows> rows_;  // of the file at hand
  Run run_;
  size_t used_ = 0;  // of run_
  bool in_document_ = false;
};

}  // namespace trainwright

#include "lib/codec/checkpoint_decoder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/codec/block_workers.h"
#include "lib/codec/buffer_pool.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/formats/bad_input.h"

namespace trainwright {
namespace {

constexpr char kWhat[] = "compressed checkpoint";

/// A tensor on its way: its prologue is read, its blocks are decoded.
struct Job {
  const SafetensorsEntry* entry = nullptr;
  std::optional<TensorBytes> base;
  std::optional<BlockDecoder> decoder;
  bool decodes = true;  // false: only what is stored is checked
};

struct Work {
  std::shared_ptr<Job> job;
  uint64_t block = 0, offset = 0;
  std::vector<uint8_t> coded;
  size_t coded_bytes = 0;
};
struct DecodedBlock {
  Work work;
  std::vector<uint8_t> buffer;
  size_t size_bytes = 0;
};

/// Reads one compressed checkpoint and hands out what it is made of, in order.
class Reader {
 public:
  explicit Reader(BufferedReader* in) : in_(in) {}

  /// \throws Error{kBadInput} also on what is no compressed checkpoint
  DecodedCheckpoint ReadHead() {
    DecodedCheckpoint found;
    std::vector<uint8_t> head;
    if (IsStream(in_->Peek(8))) {
      Append(kStreamPrefixBytes, &head);
      Append(StreamHeadBytes(head, name()) - head.size(), &head);
      found.form = CompressedForm::kStream;
      found.head = ParseStreamHead(head, name());
    } else {
      const ByteSpan prefix = in_->Peek(8);
      const uint64_t size = SafetensorsHeadBytes(prefix, name());
      Append(size, &head);
      if (!IsContainer(ParseSafetensorsHead(head, name()))) {
        throw Error(ErrorCode::kBadInput, name(), kNotCompressed);
      }
      ParseContainerHead(head, name(), &found.head, &found.tail);
    }
    return found;
  }

  void Append(uint64_t size, std::vector<uint8_t>* out) {
    if (AppendFrom(in_, size, out) < size) throw CutShortAt(in_->position(), name(), kWhat);
  }
  /// Into a buffer that is large enough.
  void Read(uint8_t* out, size_t size) {
    if (in_->Read(out, size) < size) throw CutShortAt(in_->position(), name(), kWhat);
  }
  void ExpectEnd() {
    if (!in_->Peek(1).empty())
      throw BadInputAt(in_->position(), name(), "bytes follow the end of the compressed checkpoint");
  }
  uint64_t position() const { return in_->position(); }
  const std::string& name() const { return in_->name(); }

 private:
  BufferedReader* in_;
};

/// The prologue of a coded tensor, as bytes.
/// \param coded_bytes of the tensor, 0 when not known
std::vector<uint8_t> ReadPrologue(Reader* reader, const SafetensorsEntry& entry, const std::string& object) {
  const uint64_t begin = reader->position();
  std::vector<uint8_t> prologue;
  reader->Append(BlockDecoder::kHeadBytes, &prologue);
  try {
    const uint64_t size = BlockDecoder::PrologueBytes(prologue, object);
    if (size > MostPrologueBytes(entry))
      throw Error(ErrorCode::kBadInput, object, "its prologue claims to be larger than the tensor");
    reader->Append(size - prologue.size(), &prologue);
  } catch (const Error& error) {
    throw error.object() == object ? BadInputAt(begin, object, error.problem(), error.hint()) : error;
  }
  return prologue;
}

BlockDecoder OpenTensor(ByteSpan prologue, const CompressedHead& head, const SafetensorsEntry& entry,
                        const std::string& object, uint64_t offset, std::optional<TensorContent> base) {
  try {
    BlockDecoder decoder(prologue, object, base, head.Identity(entry.name));
    if (decoder.size_bytes() != entry.end - entry.begin)
      throw Error(ErrorCode::kBadInput, object,
                  "it holds another number of bytes than the original header says");
    return decoder;
  } catch (const Error& error) {
    if (error.object() != object) throw;  // of the base
    throw BadInputAt(offset, object, error.problem(), error.hint());
  }
}

std::string ObjectName(const Reader& reader, const SafetensorsEntry& entry) {
  return reader.name() + ": tensor '" + entry.name + "'";
}

bool IsCodedAgainstBase(ByteSpan prologue) {
  return prologue[6] == static_cast<uint8_t>(TensorTransform::kBase);
}

/// One block as it is stored.
size_t ReadBlock(Reader* reader, const BlockDecoder& decoder, uint64_t block, std::vector<uint8_t>* out) {
  const uint64_t offset = reader->position();
  reader->Read(out->data(), BlockDecoder::kBlockHeadBytes);
  const uint64_t size = decoder.BlockBytes(*out, block, offset);
  reader->Read(out->data() + BlockDecoder::kBlockHeadBytes, size - BlockDecoder::kBlockHeadBytes);
  return size;
}

/// Checks the end of a tensor, and its size against what a container's header says of it.
void CheckTensorEnd(const BlockDecoder& decoder, ByteSpan index, uint64_t offset,
                    const std::vector<uint32_t>& block_bytes, uint64_t coded_bytes,
                    const DecodedCheckpoint& found, size_t entry, const std::string& object) {
  if (decoder.ReadIndex(index, offset) != block_bytes)
    throw BadInputAt(offset, object, "the index of blocks does not fit the blocks");
  if (found.form == CompressedForm::kSafetensors && found.tail.coded_bytes[entry] != coded_bytes)
    throw BadInputAt(offset, object, "its size is not the one that the header says");
}

/// The end of a stream; nothing for a container.
void ReadEnd(Reader* reader, const std::vector<uint64_t>& coded_bytes, DecodedCheckpoint* found) {
  if (found->form == CompressedForm::kStream) {
    const uint64_t offset = reader->position();
    std::vector<uint8_t> end;
    reader->Append(StreamEndBytes(found->head), &end);
    found->tail = ParseStreamEnd(end, found->head, reader->name(), offset);
    if (found->tail.coded_bytes != coded_bytes)
      throw BadInputAt(offset, reader->name(), "the footer does not fit the tensors before it");
  }
  reader->ExpectEnd();
  found->compressed_bytes = reader->position();
}

class Decoder {
 public:
  Decoder(BufferedReader* in, ByteSink* out, const DecodeOptions& options)
      : reader_(in),
        out_(out),
        options_(options),
        workers_(
            options.threads, [this](Work work) { return Decode(std::move(work)); },
            [this](DecodedBlock block) { Take(std::move(block)); }) {}

  DecodedCheckpoint Run() {
    found_ = reader_.ReadHead();
    if (found_.head.base_hash && options_.base == nullptr && options_.allow_missing_base && out_ == nullptr) {
      found_.content_checked = false;
    } else {
      CheckBase(found_.head, options_.base, reader_.name());
    }
    const std::vector<uint8_t> source_head = found_.head.SourceHead();
    hash_.Update(source_head);
    if (out_ != nullptr) out_->Write(source_head);
    std::vector<uint64_t> coded_bytes;
    for (size_t i = 0; i < found_.head.source.entries.size(); ++i) coded_bytes.push_back(ReadTensor(i));
    workers_.Finish();
    ReadEnd(&reader_, coded_bytes, &found_);
    if (found_.content_checked && hash_.Digest() != found_.tail.source_hash) {
      throw Error(ErrorCode::kBadInput, reader_.name(),
                  "is corrupt: the hash of the restored file is not that of the original");
    }
    return std::move(found_);
  }

 private:
  uint64_t ReadTensor(size_t index) {
    auto job = std::make_shared<Job>();
    job->entry = &found_.head.source.entries[index];
    const std::string object = ObjectName(reader_, *job->entry);
    const uint64_t begin = reader_.position();
    const std::vector<uint8_t> prologue = ReadPrologue(&reader_, *job->entry, object);
    if (IsCodedAgainstBase(prologue)) {
      if (options_.base != nullptr) job->base = options_.base->Read(*job->entry);
      job->decodes = job->base.has_value() || found_.content_checked;
    }
    job->decoder.emplace(OpenTensor(prologue, found_.head, *job->entry, object, begin,
                                    job->base ? std::optional(job->base->view) : std::nullopt));
    const BlockDecoder& decoder = *job->decoder;
    std::vector<uint32_t> block_bytes;
    for (uint64_t block = 0; block < decoder.blocks(); ++block) {
      Work work{job, block, reader_.position(), coded_pool_.Take(decoder.max_block_bytes()), 0};
      work.coded_bytes = ReadBlock(&reader_, decoder, block, &work.coded);
      block_bytes.push_back(static_cast<uint32_t>(work.coded_bytes));
      workers_.Push(std::move(work), decoder.ElementsOf(block) * ElementBytes(decoder.type()));
    }
    const uint64_t index_offset = reader_.position();
    std::vector<uint8_t> block_index;
    reader_.Append(decoder.IndexBytes(), &block_index);
    const uint64_t size = reader_.position() - begin;
    CheckTensorEnd(decoder, block_index, index_offset, block_bytes, size, found_, index, object);
    return size;
  }

  DecodedBlock Decode(Work work) {
    const Job& job = *work.job;
    DecodedBlock decoded;
    const ByteSpan coded = ByteSpan(work.coded).first(work.coded_bytes);
    if (job.decodes) {
      decoded.size_bytes = job.decoder->ElementsOf(work.block) * ElementBytes(job.decoder->type());
      decoded.buffer = plain_pool_.Take(decoded.size_bytes);
      job.decoder->DecodeBlock(coded, work.block, work.offset,
                               std::span(decoded.buffer).first(decoded.size_bytes));
    } else {
      job.decoder->CheckBlock(coded, work.block, work.offset);
    }
    decoded.work = std::move(work);
    return decoded;
  }

  void Take(DecodedBlock decoded) {
    const ByteSpan bytes = ByteSpan(decoded.buffer).first(decoded.size_bytes);
    hash_.Update(bytes);
    if (out_ != nullptr) out_->Write(bytes);
    const Job& job = *decoded.work.job;
    if (options_.progress) {
      options_.progress(job.entry->begin + (decoded.work.block + 1) * (job.entry->end - job.entry->begin) /
                                               job.decoder->blocks());
    }
    coded_pool_.Give(std::move(decoded.work.coded));
    plain_pool_.Give(std::move(decoded.buffer));
  }

  Reader reader_;
  ByteSink* out_;
  const DecodeOptions& options_;
  DecodedCheckpoint found_;
  Xxh128Stream hash_;
  codec::BufferPool coded_pool_, plain_pool_;
  codec::BlockWorkers<Work, DecodedBlock> workers_;  // last: its threads use the others
};

}  // namespace

void CheckBase(const CompressedHead& head, BaseTensors* base, const std::string& path) {
  if (!head.base_hash) return;
  if (base == nullptr) {
    throw Error(ErrorCode::kBadInput, path, "was compressed against a base", "",
                "give it with --base FILE; its xxh128sum is " + HexEncode(*head.base_hash));
  }
  if (const Xxh128Digest hash = base->Hash(); hash != *head.base_hash) {
    throw Error(ErrorCode::kBadInput, base->name(),
                "is not the base that " + path + " was compressed against", "",
                "the base's xxh128sum is " + HexEncode(*head.base_hash) + ", not " + HexEncode(hash));
  }
}

DecodedCheckpoint DecodeCheckpoint(BufferedReader* in, ByteSink* out, const DecodeOptions& options) {
  return Decoder(in, out, options).Run();
}

DecodedCheckpoint ConvertCheckpoint(BufferedReader* in, CompressedForm form, ByteSink* out,
                                    const std::function<void(uint64_t)>& progress) {
  Reader reader(in);
  DecodedCheckpoint found = reader.ReadHead();
  auto* container = dynamic_cast<OverwritableSink*>(out);
  if (form == CompressedForm::kStream) {
    out->Write(EncodeStreamHead(found.head));
  } else {
    TRAINWRIGHT_CHECK(container != nullptr);
    out->Write(std::vector<uint8_t>(ContainerHeadBytes(found.head), ' '));
  }
  std::vector<uint64_t> coded_bytes;
  std::vector<uint8_t> buffer;
  for (size_t i = 0; i < found.head.source.entries.size(); ++i) {
    const SafetensorsEntry& entry = found.head.source.entries[i];
    const std::string object = ObjectName(reader, entry);
    const uint64_t begin = reader.position();
    const std::vector<uint8_t> prologue = ReadPrologue(&reader, entry, object);
    const BlockDecoder decoder = OpenTensor(prologue, found.head, entry, object, begin, {});
    out->Write(prologue);
    std::vector<uint32_t> block_bytes;
    if (buffer.size() < decoder.max_block_bytes()) buffer.resize(decoder.max_block_bytes());
    for (uint64_t block = 0; block < decoder.blocks(); ++block) {
      const uint64_t offset = reader.position();
      const size_t size = ReadBlock(&reader, decoder, block, &buffer);
      decoder.CheckBlock(ByteSpan(buffer).first(size), block, offset);
      out->Write(ByteSpan(buffer).first(size));
      block_bytes.push_back(static_cast<uint32_t>(size));
    }
    const uint64_t index_offset = reader.position();
    std::vector<uint8_t> index;
    reader.Append(decoder.IndexBytes(), &index);
    coded_bytes.push_back(reader.position() - begin);
    CheckTensorEnd(decoder, index, index_offset, block_bytes, coded_bytes.back(), found, i, object);
    out->Write(index);
    if (progress) progress(entry.end);
  }
  ReadEnd(&reader, coded_bytes, &found);
  found.tail.coded_bytes = coded_bytes;
  if (form == CompressedForm::kStream) {
    out->Write(EncodeStreamEnd(found.head, found.tail));
  } else {
    container->Overwrite(0, EncodeContainerHead(found.head, found.tail));
  }
  return found;
}

}  // namespace trainwright

#include "lib/codec/checkpoint_encoder.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/codec/block_workers.h"
#include "lib/codec/buffer_pool.h"
#include "lib/codec/coded_layout.h"
#include "lib/codec/cpu/kernels.h"
#include "lib/codec/tensor_decoder.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr char kMatricesKey[] = "matrices";
constexpr int64_t kMinMatrixSide = 16;
constexpr int64_t kMaxMatrices = 4096;

/// A tensor on its way: read, then encoded block by block.
struct Job {
  const SafetensorsEntry* entry = nullptr;
  TensorBytes bytes;
  std::optional<TensorBytes> base;
  std::optional<TensorEncoder> encoder;
  std::optional<BlockDecoder> decoder;   // for the verification
  std::vector<uint64_t> content_hashes;  // of the blocks of what is read more than once
  std::vector<uint32_t> block_bytes;
  uint64_t coded_bytes = 0;
};

struct Work {
  std::shared_ptr<Job> job;
  uint64_t block = 0;  // the number of blocks: what comes behind them
};
struct CodedBlock {
  Work work;
  std::vector<uint8_t> buffer;
  size_t size_bytes = 0;
};

class Encoder {
 public:
  Encoder(const CompressedHead& head, TensorSource* source, const EncodeOptions& options, ByteSink* sink)
      : head_(head),
        source_(source),
        options_(options),
        sink_(sink),
        workers_(
            options.threads, [this](Work work) { return Encode(std::move(work)); },
            [this](CodedBlock block) { Write(std::move(block)); }) {}

  CompressedTail Run() {
    hash_.Update(head_.SourceHead());
    const size_t tensors = head_.source.entries.size();
    std::future<std::shared_ptr<Job>> next;
    for (size_t i = 0; i < tensors; ++i) {
      const std::shared_ptr<Job> job = next.valid() ? next.get() : Prepare(i);
      if (options_.threads > 1 && i + 1 < tensors)
        next = std::async(std::launch::async, [this, i] { return Prepare(i + 1); });
      const uint64_t width = ElementBytes(ElementTypeOf(job->entry->dtype));
      for (uint64_t block = 0; block <= job->encoder->blocks(); ++block)
        workers_.Push({job, block}, width << options_.block_log2);
    }
    workers_.Finish();
    tail_.source_hash = hash_.Digest();
    return std::move(tail_);
  }

 private:
  std::shared_ptr<Job> Prepare(size_t index) {
    auto job = std::make_shared<Job>();
    job->entry = &head_.source.entries[index];
    job->bytes = source_->Take(index);
    TRAINWRIGHT_CHECK(job->bytes.view.size() == job->entry->end - job->entry->begin);
    HashSource(job.get());
    job->base = source_->TakeBase(index);
    TensorView view{.type = ElementTypeOf(job->entry->dtype),
                    .bytes = job->bytes.view,
                    .matrices = MatricesOf(head_.source, *job->entry),
                    .identity = head_.Identity(job->entry->name)};
    if (job->base) view.base = job->base->view;
    job->encoder.emplace(view, head_.level, options_.block_log2);
    if (options_.verify)
      job->decoder.emplace(job->encoder->prologue(), job->entry->name, std::nullopt, view.identity);
    return job;
  }

  /// Of a tensor in a file, which is read again when it is encoded, block by block.
  void HashSource(Job* job) {
    const TensorContent& content = job->bytes.view;
    const uint64_t width = ElementBytes(ElementTypeOf(job->entry->dtype));
    const uint64_t block_bytes = width << options_.block_log2;
    std::vector<uint8_t> scratch;
    for (uint64_t at = 0; at < content.size(); at += block_bytes) {
      const ByteSpan block = content.Read(at, std::min(block_bytes, content.size() - at), &scratch);
      hash_.Update(block);
      if (!content.in_memory())
        job->content_hashes.push_back(codec::BestKernels().hash(block.data(), block.size(), 0));
    }
  }

  CodedBlock Encode(Work work) {
    const Job& job = *work.job;
    CodedBlock coded{std::move(work), {}, 0};
    const uint64_t block = coded.work.block;
    if (block == job.encoder->blocks()) return coded;
    coded.buffer = pool_.Take(job.encoder->max_block_bytes());
    static thread_local std::vector<uint8_t> base_scratch;
    const ByteSpan base = job.encoder->ReadBase(block, &base_scratch);
    coded.size_bytes = job.encoder->EncodeBlock(block, base, coded.buffer);
    if (!job.content_hashes.empty() && codec::ContentHashOf(coded.buffer) != job.content_hashes[block]) {
      throw Error(ErrorCode::kBadInput, "tensor '" + job.entry->name + "'", "changed while it was read", "",
                  "wait until its writer is done");
    }
    if (job.decoder) Verify(job, block, base, ByteSpan(coded.buffer).first(coded.size_bytes));
    return coded;
  }

  static void Verify(const Job& job, uint64_t block, ByteSpan base, ByteSpan coded) {
    static thread_local std::vector<uint8_t> decoded;
    const size_t width = ElementBytes(job.decoder->type());
    const size_t size = job.decoder->ElementsOf(block) * width;
    if (decoded.size() < size) decoded.resize(size);
    bool same = false;
    try {
      // The hash of what was encoded is among what decoding checks.
      job.decoder->DecodeBlock(coded, block, 0, base, std::span(decoded).first(size));
      const uint64_t at = block * job.decoder->block_elements() * width;
      same = !job.bytes.view.in_memory() ||
             std::memcmp(decoded.data(), job.bytes.view.Read(at, size, nullptr).data(), size) == 0;
    } catch (const Error&) {
    }
    if (!same) {
      throw Error(ErrorCode::kInternal, "tensor '" + job.entry->name + "'",
                  "block " + std::to_string(block) + " does not decode to what was encoded", "",
                  "nothing was written; the memory of this machine may be bad, or this is a bug");
    }
  }

  void Write(CodedBlock coded) {
    Job& job = *coded.work.job;
    if (coded.work.block == 0) {
      sink_->Write(job.encoder->prologue());
      job.coded_bytes += job.encoder->prologue().size();
    }
    if (coded.work.block < job.encoder->blocks()) {
      sink_->Write(ByteSpan(coded.buffer).first(coded.size_bytes));
      job.block_bytes.push_back(static_cast<uint32_t>(coded.size_bytes));
      job.coded_bytes += coded.size_bytes;
      pool_.Give(std::move(coded.buffer));
      const uint64_t in_block = job.bytes.view.size() / job.encoder->blocks();
      if (options_.progress) options_.progress(job.entry->begin + in_block * (coded.work.block + 1));
      return;
    }
    const std::vector<uint8_t> index = job.encoder->Index(job.block_bytes);
    sink_->Write(index);
    tail_.coded_bytes.push_back(job.coded_bytes + index.size());
  }

  const CompressedHead& head_;
  TensorSource* source_;
  const EncodeOptions& options_;
  ByteSink* sink_;
  Xxh128Stream hash_;
  CompressedTail tail_;
  codec::BufferPool pool_;
  codec::BlockWorkers<Work, CodedBlock> workers_;  // last: its threads use the others
};

/// Tensors that are about to be written.
class GivenTensors final : public TensorSource {
 public:
  GivenTensors(const CompressedHead& head, const std::vector<SafetensorsTensor>& tensors) : head_(head) {
    for (const SafetensorsTensor& tensor : tensors) by_name_[tensor.name] = &tensor;
  }
  TensorBytes Take(size_t entry) override {
    const SafetensorsTensor& tensor = *by_name_.at(head_.source.entries[entry].name);
    if (tensor.make) return TensorBytes::Own(tensor.make());
    TensorBytes bytes;
    bytes.view = tensor.data;
    return bytes;
  }

 private:
  const CompressedHead& head_;
  std::map<std::string, const SafetensorsTensor*> by_name_;
};

}  // namespace

void WriteCompressedSafetensors(OverwritableSink* sink, const std::vector<SafetensorsTensor>& tensors,
                                const std::map<std::string, std::string>& metadata, CodecLevel level,
                                int threads, const std::string& writer) {
  CompressedHead head = HeadOf(EncodeSafetensorsHead(tensors, metadata), sink->name());
  head.level = level;
  head.writer = writer;
  GivenTensors source(head, tensors);
  EncodeCheckpoint(head, &source, {.form = CompressedForm::kSafetensors, .threads = threads}, sink);
}

std::vector<MatrixPart> MatricesOf(const SafetensorsHeader& header, const SafetensorsEntry& entry) {
  const ElementType type = ElementTypeOf(entry.dtype);
  if (!IsFloat(type) || entry.dtype == "C64") return {};
  const uint64_t elements = (entry.end - entry.begin) / ElementBytes(type);
  if (const auto text = header.metadata.find(kMatricesKey); text != header.metadata.end()) {
    const nlohmann::json json = JsonOf(text->second);
    std::vector<MatrixPart> parts;
    if (json.is_object() && json.contains(entry.name) && json[entry.name].is_array()) {
      uint64_t end = 0;
      for (const nlohmann::json& part : json[entry.name]) {
        if (!part.is_array() || part.size() != 3) return {};
        for (const nlohmann::json& number : part) {
          if (!number.is_number_unsigned()) return {};
        }
        const MatrixPart matrix{part[0].get<uint64_t>(), part[1].get<uint64_t>(), part[2].get<uint64_t>()};
        uint64_t size;
        if (matrix.first < end || __builtin_mul_overflow(matrix.rows, matrix.columns, &size) ||
            matrix.first > elements || size > elements - matrix.first) {
          return {};
        }
        end = matrix.first + size;
        parts.push_back(matrix);
      }
      return parts;
    }
  }
  const size_t rank = entry.shape.size();
  if (rank < 2 || elements == 0) return {};
  // A stack of matrices has scales of its own in each; filters of a convolution are too small for that.
  const int64_t rows = entry.shape[rank - 2], columns = entry.shape[rank - 1];
  const int64_t stacked = static_cast<int64_t>(elements) / (rows * columns);
  std::vector<MatrixPart> parts;
  if (rank == 2 || (std::min(rows, columns) >= kMinMatrixSide && stacked <= kMaxMatrices)) {
    const auto size = static_cast<uint64_t>(rows * columns);
    for (uint64_t first = 0; first < elements; first += size)
      parts.push_back({first, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns)});
  } else {
    const auto filters = static_cast<uint64_t>(entry.shape[0]);
    parts.push_back({0, filters, elements / filters});
  }
  return parts;
}

CompressedTail EncodeCheckpoint(const CompressedHead& head, TensorSource* source,
                                const EncodeOptions& options, ByteSink* sink) {
  if (options.form == CompressedForm::kStream) {
    sink->Write(EncodeStreamHead(head));
    CompressedTail tail = Encoder(head, source, options, sink).Run();
    sink->Write(EncodeStreamEnd(head, tail));
    return tail;
  }
  auto* container = dynamic_cast<OverwritableSink*>(sink);
  TRAINWRIGHT_CHECK(container != nullptr);
  // The sizes inside are known at the end only.
  container->Write(std::vector<uint8_t>(ContainerHeadBytes(head), ' '));
  CompressedTail tail = Encoder(head, source, options, sink).Run();
  container->Overwrite(0, EncodeContainerHead(head, tail));
  return tail;
}

}  // namespace trainwright

/// The body of a language model: from tokens to normalised hidden states, and back from a gradient of those.
///
/// No autograd graph is built: each module saves what its backward needs and adds weight gradients straight
/// into the flat gradient buffer (fp32), so k micro-batches accumulate as one k-times batch and nothing is
/// left between steps. What is computed from the hidden states (a head, a loss) is the caller's: see
/// LanguageModel.
///
/// A step may take a micro-batch twice, as losses over more than one micro-batch need: Forward with kNothing
/// gives the hidden states that the loss reads; Forward again with kForBackward, with the same dropout, gives
/// the same ones, and Backward takes their gradients.
///
/// Shape legend for lib/nn and lib/model: N tokens of a packed micro-batch, D hidden size, H query heads, G
/// key/value heads, K head size, F feed-forward size, V vocabulary, S spans. Not thread-safe; one per
/// training thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/device/offload_stack.h"
#include "lib/model/recurrent_state.h"
#include "lib/nn/attention/attention_shape.h"
#include "lib/nn/linear/lora.h"
#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/activation_checkpointing.h"
#include "lib/spec/model_config.h"

namespace trainwright {

struct StagedInput;

/// A micro-batch on the host, whatever the model's device; see lib/loading/packed_batch.h for the meaning
/// (this side stays free of lib/loading). The body checks it and copies what its layers need.
struct BodyInput {
  at::Tensor tokens_n;               ///< int64 [N]
  at::Tensor positions_n;            ///< int64 [N]
  std::vector<int32_t> span_starts;  ///< [S+1]
  bool pin = true;                   ///< how it goes to a GPU: see Upload
  AttentionMask mask = AttentionMask::kCausal;
  /// What a pass drops, which two passes over one micro-batch have in common; only adapters have dropout.
  std::optional<DropoutPosition> dropout = {};
  /// Whether the first span goes on from where the last one of the body's last Forward ended, whose state is
  /// a constant to the backward pass, and so do its positions; only of a body that carries a state.
  bool continues = false;
  /// The same where the body computes, which then copies nothing; undefined: it is copied.
  std::shared_ptr<const StagedInput> staged = {};
};

/// What of the spans decides which kernels a pass queues.
enum class SpanDependence {
  kHost,    ///< their contents, which the host reads
  kTable,   ///< where each begins
  kNumber,  ///< how many there are, empty ones too, and a bound of their length (SpanTable::bound)
};

/// What a forward pass leaves behind.
enum class Keep { kNothing, kForBackward };

/// Tokens that one sequence of a decoder continues with.
struct Continuation {
  int64_t sequence = 0;
  std::vector<int64_t> tokens;
};

/// What a decoder keeps of a sequence whose body has keys and values, apart from it: L layers, M positions.
struct CacheTensors {
  at::Tensor keys_lgmk, values_lgmk;  ///< storage type [L, G, M, K]; keys turned to their positions
};

/// Continues sequences, keeping of what each has seen whatever its body needs: keys and values, or the state
/// of a recurrence. Sequences are empty at first. With keys and values it holds memory for `max_tokens`
/// positions of each, with a state of a recurrence what the state takes; the body outlives it. Not
/// thread-safe.
class BodyDecoder {
 public:
  virtual ~BodyDecoder() = default;
  /// Appends tokens to each of several sequences: prompts at once, then a token at a time; none twice in a
  /// call, none longer than `max_tokens`. No rows are padded. On a CPU the bits of a sequence depend on the
  /// others only where prompts are appended together, or more than kMostThinRows tokens in all.
  /// \param rows that are computed at least, those in excess being nothing: a GPU's bits depend on their
  ///     number
  /// \returns storage type [at least the sequences of `next`, D]: first of all, in the order of `next`, the
  ///     normalised hidden states after the last token of each; good until the body's next pass
  /// \throws Error{kBadInput} on an id that is not in the vocabulary
  virtual at::Tensor AppendToEach(const std::vector<Continuation>& next, int64_t rows) = 0;
  /// Makes sequence `to` the first `length` tokens of `from`, which may be the same.
  /// \param from, to sequences of NewDecoder's number
  /// \param length at most length(from). A body that carries a state goes back to 0, to length(from), to
  ///     where `from` began (empty, imported or forked), and to where its last prompt ended: what was
  ///     appended first or, after that, last of several tokens.
  virtual void Fork(int64_t from, int64_t to, int64_t length) = 0;
  virtual int64_t length(int64_t sequence) const = 0;

  /// Begins an empty sequence with tokens that see each other as `mask` says; what is appended sees all of
  /// them. This and what follows is refused by a body without keys and values.
  /// \returns storage type [tokens, D]: their normalised hidden states, good until the body's next pass
  /// \throws Error{kUsage, kBadInput}
  virtual at::Tensor Prefill(int64_t sequence, const std::vector<int64_t>& tokens, AttentionMask mask);
  /// A copy on the host.
  /// \throws Error{kUsage}
  virtual CacheTensors Export(int64_t sequence) const;
  /// Puts what was exported after what a sequence has. Keys stay turned to the positions that they had.
  /// \throws Error{kUsage} also where rotary frequencies depend on the length; Error{kBadInput} on tensors
  ///     of another shape or type
  virtual void Import(int64_t sequence, const CacheTensors& cache);

  /// What continuing a sequence takes: a copy on the host. This and what follows is refused by a body that
  /// carries no state.
  /// \throws Error{kUsage}
  virtual RecurrentState ExportState(int64_t sequence) const;
  /// Makes a sequence the one whose state was exported, by this body or one like it.
  /// \throws Error{kUsage}; Error{kBadInput} on a state of another shape
  virtual void ImportState(int64_t sequence, const RecurrentState& state);
};

class Body {
 public:
  virtual ~Body() = default;
  virtual const ModelConfig& config() const = 0;
  /// All of the model's, the matrix of the logits among them.
  virtual FlatParameters& parameters() = 0;
  virtual const FlatParameters& parameters() const = 0;
  /// The index among parameters() of the matrix of the logits [V, D], which may be that of the embeddings.
  virtual size_t head() const = 0;
  /// The index among parameters() of the matrix [p, D] of the projection after the pooling, whose bias [p]
  /// is the next one; nothing where there is none. Who computes the projection adds its gradients, before
  /// Backward.
  virtual std::optional<size_t> projection() const { return std::nullopt; }

  /// \returns storage type [N, D], rounded; good until the body's next pass
  /// \throws Error{kBadInput} on an id that is not in the vocabulary, or a position that the body has not;
  ///     Error{kUsage} on a mask that the body has not
  virtual at::Tensor Forward(const BodyInput& input, Keep keep) = 0;
  /// Adds the gradients of all trained parameters to theirs, but for the head as such.
  /// \param input that of the last pass, which was a Forward with kForBackward
  /// \param d_hidden_nd gradient of its result, storage type [N, D]; under emulation rounded as it is read
  virtual void Backward(const BodyInput& input, const at::Tensor& d_hidden_nd) = 0;
  /// Memory of the backward pass in which a caller may put `d_hidden_nd`; good until Backward.
  virtual at::Tensor HiddenGradient(int64_t num_tokens) = 0;
  /// Whether what it keeps of a sequence is a state, whose size does not depend on the tokens before it. Then
  /// a sequence may be longer than the positions of the model, a decoder gives that state and takes it
  /// (BodyDecoder::ExportState), and a pass can go on from the one before it (BodyInput::continues).
  virtual bool carries_state() const { return false; }
  /// \param max_tokens of a sequence, 1 to the positions of the model; nothing to a body that carries a state
  /// \param sequences at least 1
  virtual std::unique_ptr<BodyDecoder> NewDecoder(int64_t max_tokens, int64_t sequences) = 0;

  /// What of a micro-batch's spans decides which kernels its passes queue, beside its number of tokens.
  /// \param starts [S+1], as of BodyInput
  /// \param mask of it
  virtual SpanDependence DependenceOn(const std::vector<int32_t>& /*starts*/, AttentionMask /*mask*/) const {
    return SpanDependence::kHost;
  }
  /// What Forward throws on the ids and positions of an input.
  virtual void Check(const BodyInput& /*input*/) const {}
  /// Whether somebody listens to set_on_segment_gradients_done.
  virtual bool tells_gradients_done() const { return false; }

  /// What it holds besides its parameters, grown to the largest micro-batch so far.
  virtual int64_t activation_bytes() const = 0;
  /// The same with tables that passes read and that grow, but without what a pass's operators make: memory of
  /// before a pass is where it was while this is what it was.
  virtual int64_t pass_memory_bytes() const { return activation_bytes(); }
  /// Gives that back; the next pass takes what it needs.
  virtual void ReleaseActivations() = 0;
  /// What Forward keeps for Backward; all at first. Changes no result. Before the first pass: buffers do not
  /// shrink.
  virtual void set_activation_checkpointing(ActivationCheckpointing kind) = 0;
  /// Where Forward puts what the layers keep until Backward needs it; null, as at first: it stays. Changes no
  /// result. Before the first pass.
  /// \param stack outlives the body's passes
  virtual void set_offload(OffloadStack* stack) = 0;
  /// Called in a backward pass as soon as a segment of parameters().gradient_buffer() has all its gradients
  /// of that pass, once a pass for each segment. Those of the head as such come from the caller before.
  using SegmentListener = std::function<void(size_t segment)>;
  virtual void set_on_segment_gradients_done(SegmentListener listener) = 0;
};

/// For an option that keeps states.
/// \throws Error{kUsage} naming the flag and the family of a body that carries none
void RequireState(const Body& body, const std::string& flag);
/// For one that keeps keys and values.
/// \throws Error{kUsage} naming the flag and the family of a body that carries a state in their place
void RequireKeysAndValues(const Body& body, const std::string& flag);

}  // namespace trainwright

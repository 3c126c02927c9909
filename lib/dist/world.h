/// The processes ("ranks") that train one run together.
///
/// Everything that only one process can know (its clock, its signals, its memory) and everything that only
/// one may do (write the run's files) passes through here, so that all ranks take the same path: what a call
/// returns is the same on all of them, and so is what they decide from it. All ranks make the same calls in
/// the same order, with as many values; a call returns once all have made it. Not thread-safe: the training
/// thread's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwright {

class Collectives;

class World {
 public:
  virtual ~World() = default;
  /// From 0 to size() - 1.
  virtual int64_t rank() const = 0;
  /// At least 1. Neither changes while there is the world.
  virtual int64_t size() const = 0;
  /// Whether this rank writes the run's files and speaks for the run; one does.
  bool is_writer() const { return rank() == 0; }
  /// Adds up each count over all ranks; all get the sums.
  /// \param counts as many in all ranks; left as they were where it throws
  /// \throws Error{kIo} naming a rank that is gone or did not come in time; the world is then of no more use
  virtual void Reduce(std::vector<int64_t>* counts) = 0;
  /// What all ranks answer together: of each question the largest answer that any rank gives, so that one
  /// that must stop stops all, and one that alone knows the answer reports it. Of answers that are equal it
  /// is theirs: that they were, Agree({answer, -answer}) shows.
  /// \param answers as many in all ranks, 0 where a rank wants nothing
  /// \throws as Reduce
  virtual std::vector<int64_t> Agree(const std::vector<int64_t>& answers) = 0;
  /// What moves tensors between the ranks; null in a world of one, which has nothing to move.
  virtual Collectives* collectives() { return nullptr; }
  /// To be called now and then where this rank alone is busy for long, with what no other waits for.
  /// Unlike the others no call that all ranks make.
  /// \throws Error{kIo} naming a rank that is gone
  virtual void Look() {}
  /// Reports to the others that this rank ends with an error, before it does what it has left to do: none of
  /// them waits for it any more, and the world is of no more use. Returns at once; where the world has ended
  /// already, nothing changes.
  /// \param status that this rank will exit with
  /// \param problem on one line
  virtual void Announce(int /*status*/, const std::string& /*problem*/) noexcept {}
};

/// One process alone. Never throws.
class SoloWorld final : public World {
 public:
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  void Reduce(std::vector<int64_t>* counts) override;
  std::vector<int64_t> Agree(const std::vector<int64_t>& answers) override;
};

/// A SoloWorld that lives as long as the program; it holds nothing, so that all may share it.
World* Solo();

}  // namespace trainwright

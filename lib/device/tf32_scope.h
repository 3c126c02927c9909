/// Whether torch's fp32 GEMMs of a GPU round to TF32, for a measurement.
#pragma once

namespace trainwright {

/// Sets it while it lives, then puts back what was. Of the whole process: for work that nothing runs beside.
class Tf32Scope {
 public:
  explicit Tf32Scope(bool on);
  ~Tf32Scope();
  Tf32Scope(const Tf32Scope&) = delete;
  Tf32Scope& operator=(const Tf32Scope&) = delete;

 private:
  bool before_;
};

}  // namespace trainwright

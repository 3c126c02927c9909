#include "lib/device/torch_log.h"

#include <c10/util/Logging.h>

#include <cstdlib>

namespace trainwright {

void QuietTorchLog() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") != nullptr) {
    c10::initLogging();
  } else {
    FLAGS_caffe2_log_level = c10::GLOG_FATAL;
  }
}

}  // namespace trainwright

#include "tests/support/cuda_driver/engine.h"

#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

struct Engines {
  Engine compute{settings().kernels_at_once}, to_device{1}, to_host{1};
};

}  // namespace

Engine* engine_of(EngineKind kind, int device) {
  static auto* const made = new Engines[kMostDevices];
  Engines& engines = made[device];
  switch (kind) {
    case EngineKind::kNone:
      return nullptr;
    case EngineKind::kCompute:
      return &engines.compute;
    case EngineKind::kToDevice:
      return &engines.to_device;
    case EngineKind::kToHost:
      return &engines.to_host;
  }
  return nullptr;
}

}  // namespace millrace::sim

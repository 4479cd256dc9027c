// One lane of the FPGA backend: takes a job's samples through the process that owns the card, a batch after the other.
//
//   tasks ──look──▶ refused, or of one kind ──▶ files into the staging ──▶ ask ──▶ tensors from the staging
//
// A packed form that is kept of a file goes into the staging instead of it. Where that is no use and there is no file, the
// sample is read again.
//
// Thread-bound(the lane's thread).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/device_host/lane_work.h"
#include "daemon/backend/fpga/card_figures.h"
#include "daemon/backend/fpga/fpga_worker.h"
#include "daemon/backend/fpga/image_choice.h"
#include "daemon/model/limits.h"

namespace millrace {

// What the card has to be programmed with for such a sample, whatever it is programmed with now; or kUnsupported, and
// why the kernels make no such samples. `staging`: of a lane. Thread-safe.
Result<FpgaImage> fpga_can_make(const SampleFacts& facts, const Recipe& recipe, const FpgaStaging& staging);

// What lanes of a card share. All of it outlives them.
struct FpgaLaneParts {
  FpgaDevice& device;
  ImageChoice& choice;
  FpgaStaging staging;
  std::chrono::milliseconds hang;
  CardFigures& figures;
};

class FpgaLane {
 public:
  FpgaLane(const FpgaLaneParts& parts, std::uint32_t number) : parts_(parts), number_(number) {}

  // An outcome for each task, in order. `stopped` is asked before each batch.
  std::vector<SampleOutcome> run(const DecodeJob& job, const SampleLimits& limits,
                                 const std::function<bool()>& stopped);

 private:
  using Work = device_host::LaneWork;
  using Indices = Work::Indices;
  struct Batch {
    ImageChoice::Choice with;
    std::vector<std::size_t> tasks;
  };

  std::optional<FpgaImage> is_for_card(Work& work, std::size_t i) const;
  std::optional<FpgaImage> with_now(Work& work, std::size_t i, FpgaImage with) const;
  Batch take(Work& work, std::size_t& next) const;
  void make(Work& work, const Batch& made);
  FpgaBatch put(const Work& work, const Batch& made, FpgaLaneChannel& channel) const;
  void refuse(Work& work, const Batch& made, const Error& why, const std::shared_ptr<FpgaWorker>& worker);
  // False: a tensor is not what the card has written.
  bool collect(Work& work, Indices tasks, const FpgaLaneChannel& channel) const;

  const FpgaLaneParts& parts_;
  const std::uint32_t number_;
};

}  // namespace millrace

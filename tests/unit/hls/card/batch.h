// Batches for a compute unit, by XRT's own interface: an ordinary host program, which knows of no simulated card.
//
//   Batch batch(device, unit);          buffers in the unit's bank, and a run
//   batch.write(Act::kAdd, 3);          commands and encoded, on the host and synced
//   batch.run.start(); ... batch.ends();
//   batch.read(); batch.is_right()      completions and tensors
//
// Thread-bound(its owner).
#pragma once

#include <experimental/xrt_system.h>
#include <experimental/xrt_xclbin.h>
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hls/table/kernel_table.h"
#include "tests/unit/hls/card/order.h"

namespace millrace::card_scenes {

using Arguments = std::span<const std::string_view>;

struct Scene {
  std::string_view name;
  int (*run)(Arguments);
};

std::span<const Scene> batch_scenes();
std::span<const Scene> fault_scenes();
std::span<const Scene> sharing_scenes();
std::span<const Scene> soak_scenes();

// Of the tests' own: `name` is acts-1, acts-2 or acts-jpeg.
std::string xclbin(std::string_view name);

constexpr std::uint32_t kImages = 8;  // up to 256 fit
constexpr std::size_t kPage = 4096;   // XRT asks aligned_alloc() for buffers, which AddressSanitizer wants to be pages
constexpr std::uint32_t kBytes = 3 * kPage;

// The number of a state as XRT has it, when it is an end or `limit` passed. By looking: wait() with a limit keeps none.
int end_of(xrt::run& run, std::chrono::milliseconds limit = std::chrono::seconds(20));

// What `action` throws, or "nothing".
std::string thrown_by(const std::function<void()>& action);

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

struct Batch {
  Batch(const xrt::device& device, const xrt::kernel& kernel);

  void write(Act act, std::uint8_t salt, std::uint32_t microseconds = 0, std::uint32_t images = kImages);
  int go() {
    run.start();
    return end_of(run);
  }
  void read();
  bool answered(std::uint8_t expected_phase);  // every completion, in order, with kDone
  bool added();                                // every byte of the tensors
  hls::Completion completion(std::uint32_t image) { return completions.map<hls::Completion*>()[image]; }

  xrt::bo commands, encoded, tensors, completions;
  xrt::run run;
  std::uint8_t salt_ = 0;
};

}  // namespace millrace::card_scenes

#include "tests/unit/hls/card/batch.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace millrace::card_scenes {

static_assert(sizeof(hls::Batch) + hls::kMostImages * sizeof(hls::Descriptor) <= 5 * kPage &&
                  hls::kMostImages * sizeof(hls::Completion) <= kPage,
              "a batch fits its buffers");

std::string xclbin(std::string_view name) {
  const char* const folder = std::getenv("MILLRACE_FPGA_FOLDER");
  return std::string(folder == nullptr ? "." : folder) + "/" + std::string(name) + ".xclbin";
}

int end_of(xrt::run& run, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  ert_cmd_state state = run.state();
  while (state < ERT_CMD_STATE_COMPLETED && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    state = run.state();
  }
  return state;
}

std::string thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

void say(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
  std::fflush(stdout);
}

Batch::Batch(const xrt::device& device, const xrt::kernel& kernel)
    : commands(device, 5 * kPage, kernel.group_id(hls::kCommands)),
      encoded(device, kBytes, kernel.group_id(hls::kEncoded)),
      tensors(device, kBytes, kernel.group_id(hls::kTensors)),
      completions(device, kPage, kernel.group_id(hls::kCompletions)),
      run(kernel) {
  run.set_arg(hls::kCommands, commands);
  run.set_arg(hls::kEncoded, encoded);
  run.set_arg(hls::kTensors, tensors);
  run.set_arg(hls::kCompletions, completions);
  run.set_arg(hls::kCommandsBytes, static_cast<std::uint32_t>(commands.size()));
  run.set_arg(hls::kEncodedBytes, kBytes);
  run.set_arg(hls::kTensorsBytes, kBytes);
  run.set_arg(hls::kCompletionsBytes, static_cast<std::uint32_t>(completions.size()));
  run.set_arg(hls::kPhase, std::uint32_t{0});
}

void Batch::write(Act act, std::uint8_t salt, std::uint32_t microseconds, std::uint32_t images) {
  salt_ = salt;
  auto* const batch = commands.map<hls::Batch*>();
  *batch = {};
  batch->images = images;
  give_order(*batch, act, microseconds);
  auto* const descriptors = reinterpret_cast<hls::Descriptor*>(batch + 1);
  for (std::uint32_t i = 0; i < images; ++i) {
    descriptors[i] = {};
    descriptors[i].cookie = salt * 1000u + i;
  }
  auto* const bytes = encoded.map<std::uint8_t*>();
  for (std::uint32_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + salt);
  commands.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  encoded.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  run.set_arg(hls::kPhase, std::uint32_t{salt});
}

void Batch::read() {
  completions.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  tensors.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
}

bool Batch::answered(std::uint8_t expected_phase) {
  for (std::uint32_t i = 0; i < kImages; ++i) {
    const hls::Completion one = completion(i);
    if (one.cookie != salt_ * 1000u + i || one.phase != expected_phase || one.reason != 0) return false;
  }
  return true;
}

bool Batch::added() {
  const auto* const bytes = tensors.map<std::uint8_t*>();
  for (std::uint32_t i = 0; i < kBytes; ++i)
    if (bytes[i] != static_cast<std::uint8_t>(i * 7 + salt_ + 1)) return false;
  return true;
}

}  // namespace millrace::card_scenes

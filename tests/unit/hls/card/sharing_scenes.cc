// Scenes of several who use a card, and of one image after the other.
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "tests/unit/hls/card/batch.h"

namespace millrace::card_scenes {
namespace {

using AccessMode = xrt::kernel::cu_access_mode;

bool opens(const xrt::device& device, const xrt::uuid& uuid, const char* unit, AccessMode mode) {
  return thrown_by([&] { xrt::kernel(device, uuid, unit, mode); }) == "nothing";
}

int share(Arguments) {
  xrt::device device(0), again(0);
  const xrt::uuid uuid = device.load_xclbin(xclbin("acts-2"));
  again.load_xclbin(xclbin("acts-2"));
  {
    xrt::kernel alone(device, uuid, "answer:{answer_1}", AccessMode::exclusive);
    say("exclusive, then shared: %s",
        opens(again, uuid, "answer:{answer_1}", AccessMode::shared) ? "taken" : "refused");
    say("of the other unit: %s", opens(again, uuid, "answer:{answer_2}", AccessMode::shared) ? "taken" : "refused");
    say("registers: %x at the address of commands", alone.offset(hls::kCommands));
  }
  {
    xrt::kernel shared(device, uuid, "answer:{answer_1}");
    say("shared twice: %s", opens(again, uuid, "answer:{answer_1}", AccessMode::shared) ? "taken" : "refused");
    say("shared, then exclusive: %s",
        opens(again, uuid, "answer:{answer_1}", AccessMode::exclusive) ? "taken" : "refused");
  }
  say("exclusive when it is free: %s",
      opens(again, uuid, "answer:{answer_1}", AccessMode::exclusive) ? "taken" : "refused");
  say("another uuid: %s", opens(again, xrt::uuid("00000000-0000-0000-0000-000000000001"), "answer", AccessMode::shared)
                              ? "taken"
                              : "refused");
  return 0;
}

int read_registers(Arguments) {
  xrt::device device(0);
  const xrt::uuid uuid = device.load_xclbin(xclbin("acts-2"));
  xrt::kernel kernel(device, uuid, "answer:{answer_1}", AccessMode::exclusive);
  Batch batch(device, kernel);
  batch.write(Act::kAnswer, 77);
  batch.go();
  say("phase %u, control %#x", kernel.read_register(kernel.offset(hls::kPhase)), kernel.read_register(0) & 2);
  kernel.write_register(kernel.offset(hls::kPhase), 3);
  say("written: %u", kernel.read_register(kernel.offset(hls::kPhase)));
  return 0;
}

const char* load(xrt::device& device, const char* image) {
  return thrown_by([&] { device.load_xclbin(xclbin(image)); }) == "nothing" ? "taken" : "refused";
}

int swap(Arguments) {
  xrt::device device(0);
  std::optional<xrt::kernel> kernel(std::in_place, device, device.load_xclbin(xclbin("acts-2")), "answer:{answer_1}");
  std::optional<Batch> batch(std::in_place, device, *kernel);
  xrt::bo kept(device, 4096, kernel->group_id(hls::kTensors));
  batch->write(Act::kAnswer, 1);
  const int first = batch->go();
  batch->read();
  say("first image: state %d, %s", first, batch->answered(1) ? "its answer" : "another");
  say("in use: %s", load(device, "acts-jpeg"));
  batch.reset();
  say("still in use: %s", load(device, "acts-jpeg"));
  kernel.reset();
  say("free: %s", load(device, "acts-jpeg"));
  kernel.emplace(device, device.get_xclbin_uuid(), "decode_jpeg:{decode_jpeg_1}");
  batch.emplace(device, *kernel);
  batch->write(Act::kAnswer, 1);
  const int second = batch->go();
  batch->read();
  say("second image: state %d, %s", second, batch->answered(101) ? "its answer" : "another");
  batch.reset();
  kernel.reset();
  say("other banks, with a buffer: %s", load(device, "acts-1"));
  kept = xrt::bo();
  say("without: %s", load(device, "acts-1"));
  return 0;
}

// Holds the first unit alone, and a kernel that hangs on the second, until a line comes.
int hold(Arguments) {
  xrt::device device(0);
  const xrt::uuid uuid = device.load_xclbin(xclbin("acts-2"));
  xrt::kernel alone(device, uuid, "answer:{answer_1}", AccessMode::exclusive), other(device, uuid, "answer:{answer_2}");
  Batch batch(device, other);
  batch.write(Act::kHang, 1);
  batch.run.start();
  say("held");
  return std::getchar() == EOF;
}

// With a process beside it that has all of its descriptors.
int hold_and_fork(Arguments arguments) {
  xrt::device device(0);
  device.load_xclbin(xclbin("acts-2"));
  if (fork() == 0) {
    sleep(30);
    _exit(0);
  }
  return hold(arguments);
}

// Beside another process.
int try_all(Arguments) {
  xrt::device device(0);
  say("another image: %s", load(device, "acts-jpeg"));
  const xrt::uuid uuid = device.load_xclbin(xclbin("acts-2"));
  say("the first unit: %s", opens(device, uuid, "answer:{answer_1}", AccessMode::shared) ? "taken" : "refused");
  say("the second alone: %s", opens(device, uuid, "answer:{answer_2}", AccessMode::exclusive) ? "taken" : "refused");
  xrt::kernel kernel(device, uuid, "answer:{answer_2}");
  Batch batch(device, kernel);
  batch.write(Act::kAnswer, 1);
  say("the second: state %d", batch.go());
  return 0;
}

std::string value_of(const std::string& text, const std::string& name, const std::string& key) {
  const std::size_t from = name.empty() ? 0 : text.find("\"" + name + "\""), at = text.find("\"" + key + "\"", from);
  const std::size_t begin = text.find('"', text.find(':', at)) + 1;
  return at == std::string::npos ? "none" : text.substr(begin, text.find('"', begin) - begin);
}

int read_sensors(Arguments) {
  const xrt::device device(0);
  say("%s C, %s W", value_of(device.get_info<xrt::info::device::thermal>(), "fpga0", "temp_C").c_str(),
      value_of(device.get_info<xrt::info::device::electrical>(), "", "power_consumption_watts").c_str());
  return 0;
}

constexpr Scene kSharingScenes[] = {{"share", share},         {"registers", read_registers},    {"swap", swap},
                                    {"hold", hold},           {"hold and fork", hold_and_fork}, {"try all", try_all},
                                    {"sensors", read_sensors}};

}  // namespace

std::span<const Scene> sharing_scenes() {
  return kSharingScenes;
}

}  // namespace millrace::card_scenes

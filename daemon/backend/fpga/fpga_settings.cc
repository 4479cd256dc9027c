#include "daemon/backend/fpga/fpga_settings.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "daemon/backend/fpga/fpga_wire.h"

namespace millrace {
namespace {

constexpr KeyGroup kGroups[] = {
    {"fpga",
     "FPGA cards, where backends.fpga switches them on. Each is owned by a process of its own, millrace-fpga, which "
     "the "
     "package of that name brings."},
};

// clang-format off
const Key kKeys[] = {
    {"fpga.devices", place(in_group<&FpgaSettings::devices>), "Which cards: their places on the bus as `millrace-fpga` prints them, or numbers as XRT counts them, for example [\"0000:3b:00.1\", \"1\"]. Empty: all that the daemon sees."},
    {"fpga.lanes", number(in_group<&FpgaSettings::lanes>, 1, kMostFpgaLanes), "Batches of a card under way at once: while one is decoded there, others are copied and planned."},
    {"fpga.staging", number(in_group<&FpgaSettings::staging>, 16ULL << 20, 4ULL << 30), "Of the host's memory, for each card, which moves it by itself: files on their way there and tensors on their way back. Larger images are made by the CPU."},
    {"fpga.hang_milliseconds", number(in_group<&FpgaSettings::hang>, 100, 600'000), "A card that has not finished a batch by then passes for lost: its process is ended and started anew, and its samples go to the CPU."},
    {"fpga.swap_milliseconds", number(in_group<&FpgaSettings::swap>, 100, 3'600'000), "How long a card stays programmed for files, or for packed coefficients, at least, before it is programmed for the other because twice as many of those could have been made. It takes seconds, in which the card makes nothing."},
    {"fpga.images", place(in_group<&FpgaSettings::images>), "The folder of what cards are programmed with: jpeg.xclbin, and packed.xclbin if there is one. Empty: ../lib/millrace/fpga beside millraced's folder, or fpga in the build's."},
    {"fpga.worker", place(in_group<&FpgaSettings::worker>), "The program that owns a card. Empty: millrace-fpga, beside millraced or in ../libexec/millrace."},

    {"backends.fpga", choice(in_group<&FpgaSettings::wanted>, kWantedWords), "Decode and transform baseline JPEG files on FPGA cards; what they cannot do goes to the CPU. \"auto\": where there are some. \"yes\": the daemon does not start without. \"no\": they are left to others."},
};
// clang-format on

// That the kernel's driver has.
std::uint64_t cards_of_the_host() {
  std::error_code none;
  std::uint64_t cards = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/drivers/xocl", none))
    cards += entry.path().filename().string().find(':') != std::string::npos ? 1 : 0;
  return cards;
}

std::vector<Complaint> complaints(const Settings& settings) {
  const FpgaSettings& fpga = settings.groups.of<FpgaSettings>();
  if (std::set(fpga.devices.begin(), fpga.devices.end()).size() != fpga.devices.size())
    return {{"fpga.devices", "must name each card once"}};
  return {};
}

}  // namespace

SettingsPart fpga_settings() {
  return {.keys = kKeys, .groups = kGroups, .complaints = complaints};
}

Bytes fpga_staging(const FpgaSettings& settings) {
  if (settings.wanted == Wanted::kNo) return {};
  const std::uint64_t cards = settings.devices.empty() ? cards_of_the_host() : settings.devices.size();
  return settings.staging * std::max<std::uint64_t>(1, cards);
}

}  // namespace millrace

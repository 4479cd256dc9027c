#include "tests/support/cards.h"

#include <filesystem>

#include "tests/support/process.h"

namespace millrace {

bool has_cards() {
  return std::filesystem::exists(card_images() + "/jpeg.xclbin") &&
         std::filesystem::exists(bin_folder() + "/millrace-fpga");
}

std::vector<std::pair<std::string, std::string>> card_environment(std::uint32_t cards, const std::string& faults) {
  return {{"XILINX_XRT", card_images() + "/xrt"},
          {"MILLRACE_CARDS", std::to_string(cards)},
          {"MILLRACE_CARD_FAULTS", faults},
          {"MILLRACE_CARD_PROGRAM_MS", "20"}};
}

std::string card_images() {
  return std::filesystem::path(bin_folder() + "/../fpga").lexically_normal().string();
}

std::string card_program() {
  return "millrace-card-device";
}

}  // namespace millrace

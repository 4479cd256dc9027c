#include "tests/support/host/cards.h"

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "tests/support/host/process.h"

namespace millrace {

bool has_cards() {
  return std::filesystem::exists(card_images() + "/jpeg.xclbin") &&
         std::filesystem::exists(bin_folder() + "/millrace-fpga");
}

std::vector<std::pair<std::string, std::string>> card_environment(std::uint32_t cards, const std::string& faults,
                                                                  const std::string& control) {
  return {{"XILINX_XRT", card_images() + "/xrt"},
          {"MILLRACE_CARDS", std::to_string(cards)},
          {"MILLRACE_CARD_FAULTS", faults},
          {"MILLRACE_CARD_CONTROL", control}};
}

void order_fault(const std::string& control, std::uint32_t card, const std::string& order) {
  std::vector<std::string> argv{card_images() + "/millrace-card", std::to_string(card)};
  std::istringstream words(order);
  for (std::string word; words >> word;) argv.push_back(word);
  Process process = Process::spawn({.argv = argv, .env = {{"MILLRACE_CARD_CONTROL", control}}});
  if (process.wait() != 0) throw std::runtime_error("millrace-card did not take the order " + order);
}

std::string card_images() {
  return std::filesystem::path(bin_folder() + "/../fpga").lexically_normal().string();
}

std::string card_program() {
  return "millrace-card-device";
}

}  // namespace millrace

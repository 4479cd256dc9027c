// Simulated FPGA cards for tests: what a process needs in its environment so that XRT finds them, and what they are
// programmed with (hls/card/README.md). Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

// Whether this build has them.
bool has_cards();

// So many cards, with these faults. `control`: a file through which faults are ordered;
// empty: none.
std::vector<std::pair<std::string, std::string>> card_environment(std::uint32_t cards, const std::string& faults,
                                                                  const std::string& control = "");

// Spoils the next command of a card: "crash", "hang", "flip", "wrong"; or what its sensors say: "celsius 61". Throws std::runtime_error where it cannot.
void order_fault(const std::string& control, std::uint32_t card, const std::string& order);

std::string card_images();   // the folder of jpeg.xclbin
std::string card_program();  // the name of a card's process

}  // namespace millrace

// A card as XRT has it: found, opened, programmed. Thread-bound(the reader's).
#pragma once

#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/backend/fpga/fpga_wire.h"
#include "proto/base/result.h"

namespace millrace::fpga {

// The cards of this host, and what is in the folder of images. kUnsupported: there is none, or XRT cannot be had.
Result<std::vector<FpgaReady>> list_cards(const std::string& images);

// The file of an image: "FOLDER/jpeg.xclbin".
std::string file_of(const std::string& folder, FpgaImage image);

class XrtCard {
 public:
  // kNotFound: there is no card at this place.
  static Result<XrtCard> open(const std::string& place);

  // Takes seconds. REQUIRES: nothing of the card's is held: no buffer, no run. kNotFound: the card or the library does
  // not take the file, and the card is not programmed.
  Result<void> program(const std::string& folder, FpgaImage image);

  xrt::device& device() { return device_; }
  // Lanes take turns with the compute units: each has memory of its own, so a lane's buffers are for one of them. REQUIRES:
  // program() was content.
  xrt::kernel& kernel(std::uint32_t lane) { return units_[lane % units_.size()]; }

 private:
  explicit XrtCard(xrt::device device) : device_(std::move(device)) {}

  xrt::device device_;
  std::vector<xrt::kernel> units_;
};

}  // namespace millrace::fpga

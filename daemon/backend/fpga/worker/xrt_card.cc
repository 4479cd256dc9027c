#include "daemon/backend/fpga/worker/xrt_card.h"

#include <experimental/xrt_system.h>
#include <experimental/xrt_xclbin.h>
#include <version.h>
#include <xclbin.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "daemon/backend/fpga/worker/xrt_calls.h"
#include "hls/table/kernel_table.h"

namespace millrace::fpga {
namespace {

constexpr hls::Source kSources[kFpgaImages] = {hls::Source::kJpegScan, hls::Source::kPacked};

// The row of the kernel table.
const hls::Image& row_of(FpgaImage image) {
  const hls::Source source = kSources[static_cast<std::size_t>(image)];
  return *std::find_if(std::begin(hls::kImages), std::end(hls::kImages),
                       [&](const hls::Image& row) { return row.makes == source && !row.makes_nothing; });
}

template <std::size_t kSize>
void put_text(char (&to)[kSize], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), kSize - 1));
}

std::string place_of(const xrt::device& device) {
  return device.get_info<xrt::info::device::bdf>();
}

// "decode_jpeg:{decode_jpeg_1}", ...: as a kernel is opened in one compute unit.
std::vector<std::string> units_of(const xrt::xclbin& xclbin, FpgaImage image) {
  std::vector<std::string> units;
  const std::string wanted = row_of(image).kernel;
  for (const xrt::xclbin::kernel& kernel : xclbin.get_kernels()) {
    if (kernel.get_name() != wanted) continue;
    for (const xrt::xclbin::ip& unit : kernel.get_cus()) {
      const std::string name = unit.get_name();  // "decode_jpeg:decode_jpeg_1"
      units.push_back(wanted + ":{" + name.substr(name.find(':') + 1) + "}");
    }
  }
  return units;
}

// XRT reads an xclbin without a look at its length. kNotFound: it is none, or not whole.
Result<void> check_file(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return Error{Code::kNotFound, path + " is no file"};
  std::ifstream in(path, std::ios::binary);
  axlf head{};
  if (!in.read(reinterpret_cast<char*>(&head), sizeof head)) return Error{Code::kNotFound, path + " is no xclbin"};
  if (std::memcmp(head.m_magic, "xclbin2", sizeof head.m_magic) != 0)
    return Error{Code::kNotFound, path + " is no xclbin"};
  if (head.m_header.m_length != std::filesystem::file_size(path, none))
    return Error{Code::kNotFound, path + " is not whole: its length is not what its head says"};
  return {};
}

// `remarks`: what is wrong with a file that is there.
FpgaImageFile describe(const std::string& folder, FpgaImage image, std::string& remarks) {
  const std::string path = file_of(folder, image);
  FpgaImageFile file;
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return file;
  Result<void> read = check_file(path);
  if (read)
    read = xrt_call("reading " + path, [&] {
      const xrt::xclbin xclbin(path);
      put_text(file.uuid, xclbin.get_uuid().to_string());
      for (const xrt::xclbin::kernel& kernel : xclbin.get_kernels()) {
        if (kernel.get_name() == row_of(image).kernel) file.units = static_cast<std::uint32_t>(kernel.get_cus().size());
      }
    });
  if (read && file.units != 0) return file;
  remarks +=
      (remarks.empty() ? "" : "; ") + (read ? path + " has no kernel " + row_of(image).kernel : read.error().message);
  return FpgaImageFile();
}

}  // namespace

std::string file_of(const std::string& folder, FpgaImage image) {
  return folder + "/" + row_of(image).name + ".xclbin";
}

Result<std::vector<FpgaReady>> list_cards(const std::string& images) {
  FpgaReady common;
  std::string remarks;
  put_text(common.library, xrt_build_version);
  for (std::uint32_t i = 0; i < kFpgaImages; ++i)
    common.images[i] = describe(images, static_cast<FpgaImage>(i), remarks);
  put_text(common.text, remarks);
  std::vector<FpgaReady> cards;
  const Result<void> listed = xrt_call("asking XRT for the cards", [&] {
    const unsigned count = xrt::system::enumerate_devices();
    for (unsigned i = 0; i < count; ++i) {
      const xrt::device device(i);
      FpgaReady& card = cards.emplace_back(common);
      put_text(card.card, place_of(device));
      put_text(card.shell, device.get_info<xrt::info::device::name>());
    }
  });
  if (!listed) return Error{Code::kUnsupported, listed.error().message};
  if (cards.empty())
    return Error{Code::kUnsupported,
                 "XRT finds no card: is its kernel driver (xocl) loaded, and does XILINX_XRT name XRT's folder?"};
  return cards;
}

Result<XrtCard> XrtCard::open(const std::string& place) {
  std::optional<xrt::device> found;
  const Result<void> opened = xrt_call("opening the card", [&] {
    const unsigned count = xrt::system::enumerate_devices();
    for (unsigned i = 0; i < count && !found; ++i) {
      xrt::device device(i);
      if (place_of(device) == place) found.emplace(std::move(device));
    }
  });
  MILLRACE_TRY_VOID(opened);
  if (!found) return Error{Code::kUnavailable, "there is no card at " + place + " any more"};
  return XrtCard(*std::move(found));
}

Result<void> XrtCard::program(const std::string& folder, FpgaImage image) {
  units_.clear();
  const std::string path = file_of(folder, image);
  MILLRACE_TRY_VOID(check_file(path));
  const Result<void> programmed = xrt_call("programming the card with " + path, [&] {
    const xrt::xclbin xclbin(path);
    const xrt::uuid uuid = device_.load_xclbin(xclbin);
    for (const std::string& unit : units_of(xclbin, image)) units_.emplace_back(device_, uuid, unit);
  });
  if (programmed && !units_.empty()) return {};
  units_.clear();
  if (programmed) return Error{Code::kNotFound, path + " has no kernel " + row_of(image).kernel};
  return Error{Code::kNotFound, programmed.error().message};
}

}  // namespace millrace::fpga

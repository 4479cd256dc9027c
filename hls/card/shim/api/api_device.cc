// XRT's interface to a card (xrt.h): opening, programming, contexts, registers.
#include <experimental/xrt-next.h>
#include <xclbin.h>
#include <xrt.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "hls/card/shim/card.h"
#include "hls/card/shim/handles.h"
#include "hls/card/shim/settings.h"

// The two functions of libxrt_coreutil that a shim calls; Debian installs no header for them.
namespace xrt_core {

class device {
 public:
  void register_axlf(const axlf* file);
};

// Makes XRT's own object for an open handle.
std::shared_ptr<device> get_userpf_device(void* handle, unsigned int index);
std::shared_ptr<device> get_userpf_device(void* handle);

}  // namespace xrt_core

namespace card = millrace::card;

unsigned int xclProbe() {
  return card::Card::count();
}

unsigned int xclVersion() {
  return 2;
}

xclDeviceHandle xclOpen(unsigned int number, const char*, xclVerbosityLevel) {
  if (number >= card::Card::count()) {
    errno = ENODEV;
    return nullptr;
  }
  const std::shared_ptr<card::Client> client = card::Card::get(number).open();
  if (client == nullptr) return nullptr;
  void* const handle = card::give_handle(client);
  client->keep(xrt_core::get_userpf_device(handle, number));
  card::trace(number, "open: %p", handle);
  return handle;
}

void xclClose(xclDeviceHandle handle) {
  const std::shared_ptr<card::Client> client = card::take_handle(handle);
  if (client == nullptr) return;
  card::trace(client->card().number(), "close: %p", handle);
  client->close();
  client->card().close(*client);
}

int xclGetDeviceInfo2(xclDeviceHandle handle, xclDeviceInfo2* info) {
  if (card::client_of(handle) == nullptr) return -EINVAL;
  *info = {};
  std::snprintf(info->mName, sizeof info->mName, "millrace_simulated_card_1_0");
  info->mMagic = 0x586C0C6C;
  info->mHALMajorVersion = 2;
  info->mDataAlignment = card::kPage;
  info->mOCLFrequency[0] = 300;
  return 0;
}

int xclLoadXclBin(xclDeviceHandle handle, const axlf* file) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  if (client == nullptr || file == nullptr) return -EINVAL;
  if (const int error = client->card().program(*file); error != 0) return error;
  xrt_core::get_userpf_device(handle)->register_axlf(file);
  return 0;
}

int xclOpenContext(xclDeviceHandle handle, const xuid_t uuid, unsigned int unit, bool shared) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  if (client == nullptr) return -EINVAL;
  const int error = client->card().open_context(*client, uuid, unit, shared);
  card::trace(client->card().number(), "context of unit %d, %s: %d", static_cast<int>(unit),
              shared ? "shared" : "exclusive", error);
  return error;
}

int xclCloseContext(xclDeviceHandle handle, const xuid_t, unsigned int unit) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  return client == nullptr ? -EINVAL : client->card().close_context(*client, unit);
}

int xclIPName2Index(xclDeviceHandle handle, const char* name) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  return client == nullptr ? -EINVAL : client->card().unit_of(name);
}

int xclRegRead(xclDeviceHandle handle, std::uint32_t unit, std::uint32_t offset, std::uint32_t* value) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  return client == nullptr ? -EINVAL : client->card().read_register(unit, offset, *value);
}

int xclRegWrite(xclDeviceHandle handle, std::uint32_t unit, std::uint32_t offset, std::uint32_t value) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  return client == nullptr ? -EINVAL : client->card().write_register(unit, offset, value);
}

int xclLockDevice(xclDeviceHandle) {
  return 0;
}

int xclUnlockDevice(xclDeviceHandle) {
  return 0;
}

int xclLogMsg(xclDeviceHandle, xrtLogMsgLevel, const char*, const char*, ...) {
  return 0;
}

// What cards have and these do not.
int xclReClock2(xclDeviceHandle, unsigned short, const unsigned short*) {
  return -ENOSYS;
}

int xclP2pEnable(xclDeviceHandle, bool, bool) {
  return -ENOSYS;
}

std::size_t xclRead(xclDeviceHandle, xclAddressSpace, std::uint64_t, void*, std::size_t) {
  return static_cast<std::size_t>(-1);
}

std::size_t xclWrite(xclDeviceHandle, xclAddressSpace, std::uint64_t, const void*, std::size_t) {
  return static_cast<std::size_t>(-1);
}

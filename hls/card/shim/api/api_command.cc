// XRT's interface to a card (xrt.h): commands.
#include <xrt.h>

#include <cerrno>

#include "hls/card/shim/card.h"
#include "hls/card/shim/handles.h"

namespace card = millrace::card;

int xclExecBuf(xclDeviceHandle handle, xclBufferHandle number) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  const std::shared_ptr<card::Buffer> packet = client == nullptr ? nullptr : client->buffer(number);
  return packet == nullptr ? -EINVAL : client->card().submit(client, packet);
}

// As poll() on a card's file: above 0 where a command of this opener finished since, each counted once.
int xclExecWait(xclDeviceHandle handle, int milliseconds) {
  const std::shared_ptr<card::Client> client = card::client_of(handle);
  if (client == nullptr) return -EINVAL;
  return client->wait_finished(std::chrono::milliseconds(milliseconds)) ? 1 : 0;
}

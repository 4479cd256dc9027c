// A daemon with a GPU, and pictures, for tests that are its client by libmillrace. Values.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "millrace/client.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/devices/held_stream.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {

struct GpuClientMill {
  explicit GpuClientMill(const std::string& more = {})
      : paths(write_image_folder(pictures, {.images = 24, .classes = 2})),
        daemon({.roots = {folder.path()},
                .cache = "memory = 0\n",
                .cuda = "yes",
                .cuda_settings = "staging = \"32 MiB\"\nmemory = \"256 MiB\"\n" + more,
                .for_all_users = true}) {
    for (const char* ours : {"", "/pictures"}) ::chmod((folder.path() + ours).c_str(), 0755);
    ::setenv("SIM_CUDA_STRICT", "0", 1);  // copies into memory that is not page-locked are no fault
  }

  Session open(const std::string& memory, std::uint32_t slots = 2) const { return need(try_open(memory, slots)); }
  Result<Session> try_open(const std::string& memory, std::uint32_t slots = 2) const {
    return daemon.connect().open_session(
        {.slots = slots, .batch = 8, .recipe = {.resize = ExactSize{{40, 24}}}, .memory = memory});
  }
  Ticket ask(Session& session, std::size_t first, std::size_t count = 1) const {
    BatchRequest request;
    for (std::size_t i = 0; i < count; ++i) request.samples.push_back({.source = Path{paths[first + i]}});
    return need(session.submit(request));
  }
  // What the host's memory would have of it.
  HeldStream::Words expected(std::size_t first, std::size_t count = 1) const {
    Session session = open("host");
    return need(need(session.wait(ask(session, first, count))).tensor.copy());
  }
  Batch made(Session& session, std::size_t first) const {
    Batch batch = need(session.wait(ask(session, first)));
    if (batch.failure) throw unexpected(*batch.failure);
    return batch;
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  Daemon daemon;
};

}  // namespace millrace

// A daemon with a few pictures, the messages that a client sends it, and how to spoil them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "millrace/v1/session.pb.h"
#include "tests/support/host/temp_folder.h"
#include "tests/system/support/daemon.h"

namespace millrace {

struct RawMill {
  RawMill();

  v1::ClientMessage submit(std::uint64_t batch) const;  // every picture, 32 x 32
  v1::ClientMessage open_dataset(std::uint64_t dataset) const;
  static v1::ClientMessage start_epoch(std::uint64_t stream, std::uint64_t dataset);

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  Daemon daemon;
};

v1::ClientMessage release_of(const v1::TensorHandle& handle);
v1::ClientMessage attach_with(const std::string& ticket);
v1::OpenSessionRequest open_with(const std::string& ticket);  // one slot of 4,096 bytes

struct Malformed {
  std::string field;  // how the error has to begin
  std::function<void(v1::Submit&)> spoil;
};
const std::vector<Malformed>& malformed_submits();

}  // namespace millrace

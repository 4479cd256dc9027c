// The process that a simulated card is (hls/card/device), from the host's side. Started when the card is programmed.
//
// Thread-safe: one thread receives, any send; start and end are their owner's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "hls/card/shim/mapping.h"
#include "hls/card/shim/program.h"
#include "hls/card/wire.h"

namespace millrace::card {

class DeviceProcess {
 public:
  // nullptr: `error` is a negative errno, and stderr says more.
  static std::unique_ptr<DeviceProcess> start(unsigned card, const Program& program, const CardMemory& memory,
                                              const Mapping& registers, int& error);
  DeviceProcess(pid_t pid, Descriptor replies, std::vector<Descriptor> units)
      : pid_(pid), replies_(std::move(replies)), units_(std::move(units)) {}
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;
  ~DeviceProcess();  // kills and reaps it

  // False: it has ended.
  bool send(unsigned unit, const Start& start) const;
  bool receive(Done& done) const;

  pid_t pid() const { return pid_; }
  void kill() const;

 private:
  const pid_t pid_;
  const Descriptor replies_;
  const std::vector<Descriptor> units_;
};

}  // namespace millrace::card

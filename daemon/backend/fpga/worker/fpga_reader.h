// The one thread that has a card: takes batches of all lanes from the daemon, starts them, and answers when they have
// ended. Several are under way at once; none is waited for.
//
//   sockets ──▶ waiting ──▶ on the card ──▶ answered          a batch for another image: once nothing is on the card, it is
//                              │                              programmed for it, and what waits goes on
//                              └─ overdue, or failed: the card is lost, and this process with it
//
// Thread-bound(the process's first thread).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/backend/fpga/fpga_wire.h"
#include "daemon/backend/fpga/worker/card_lane.h"
#include "daemon/backend/fpga/worker/sensors.h"
#include "daemon/backend/fpga/worker/xrt_card.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::fpga {

class FpgaReader {
 public:
  // Opens the card, programs it and takes the lanes' buffers. `staging`: of each lane, for as long as the reader.
  static Result<std::unique_ptr<FpgaReader>> create(const FpgaHello& hello, const std::vector<std::byte*>& staging);

  // Until the daemon closes its end. An error: the card is lost, and the daemon has been told.
  Result<void> run();

 private:
  using Clock = CardLane::Clock;
  struct Lane {
    int socket;
    std::unique_ptr<CardLane> on_card;
    std::optional<FpgaBatch> waiting;  // until it is started
    std::uint64_t number = 0;          // of the batch that waits or is on the card
    bool started = false;
    bool swapped = false;  // the card was programmed for it
    Clock::time_point due;
  };

  FpgaReader(XrtCard card, const FpgaHello& hello, UniqueFd wake);
  Result<void> program(FpgaImage image);
  Result<void> step();
  bool poll_all();
  void receive(Lane& lane);
  Result<void> collect();
  Result<void> start_waiting();
  Result<bool> start(Lane& lane);
  Result<void> swap(const FpgaBatch& batch, Lane& lane);
  bool is_idle() const;
  void look_at_sensors();
  void answer(Lane& lane, FpgaDone done);
  void answer(Lane& lane, const Error& why);

  XrtCard card_;
  const std::string folder_;
  const std::chrono::milliseconds hang_;
  const UniqueFd wake_;
  std::vector<Lane> lanes_;
  FpgaImage image_;
  std::uint32_t swap_;
  bool ended_ = false;
  std::string why_not_;  // the last image that was refused was
  Sensors sensors_;
  Clock::time_point sensed_;  // when
};

}  // namespace millrace::fpga

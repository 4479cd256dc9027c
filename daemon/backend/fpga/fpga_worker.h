// The process that owns a card for the daemon, as the daemon has it (fpga_wire.h has what they say).
//
//   list_cards(program, images) ──▶ which there are
//   FpgaWorker::start(program, card, order) ──▶ greet() ──▶ lane(i) asks, one thread each ──▶ end(), or it dies
//
// Thread-safe, but for a lane, which is Thread-bound(its thread).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend/device_host/channel.h"
#include "daemon/backend/device_host/host_process.h"
#include "daemon/backend/device_host/hosted_device.h"
#include "daemon/backend/fpga/fpga_wire.h"
#include "daemon/backend/fpga/image_choice.h"

namespace millrace {

struct Card {
  std::string place;  // on the bus: "0000:3b:00.1"
  std::string shell;
  std::string library;  // XRT's version
  struct Image {
    std::string uuid;  // empty: there is no file of it
    std::uint32_t units = 0;
  };
  std::array<Image, kFpgaImages> images;
  std::string remark;  // on files of images that are no use; empty: none
};

// Empty: millrace-fpga beside this program, or in ../libexec/millrace.
std::string fpga_program(const std::string& path);
// Empty: where images are installed, or where this build has them.
std::string fpga_images(const std::string& path);

// Those that the library gives to a process of this user. kUnsupported: there is no program, no library or no card, and
// why, or it does not say so in time.
Result<std::vector<Card>> list_cards(const std::string& program, const std::string& images);

struct FpgaWorkerOrder {
  std::uint32_t lanes = 2;
  FpgaStaging staging;  // of a lane
  std::chrono::milliseconds hang{10'000};
  std::string images;
};

// A lane's part of it: a socket, and the staging that both have mapped.
class FpgaLaneChannel {
 public:
  FpgaLaneChannel(UniqueFd socket, device_host::Staging staging, FpgaStaging layout)
      : socket_(std::move(socket)), staging_(std::move(staging)), layout_(layout) {}

  // REQUIRES: no batch is asked for.
  std::span<FpgaOrder> orders() const { return {reinterpret_cast<FpgaOrder*>(staging_.data()), kMostFpgaImages}; }
  std::span<std::byte> encoded() const { return {staging_.data() + FpgaStaging::encoded_at(), layout_.encoded_bytes}; }
  std::span<const std::byte> tensors() const { return {staging_.data() + layout_.tensors_at(), layout_.tensor_bytes}; }

  // One batch. kExhausted, kUnsupported, kNotFound: it is not made, see FpgaDone. What it says it took is not more than it
  // can have taken. kUnavailable: the process or the card is gone, or
  // there was no answer in `patience`.
  Result<FpgaDone> ask(FpgaBatch& batch, std::chrono::milliseconds patience);

 private:
  UniqueFd socket_;
  device_host::Staging staging_;
  FpgaStaging layout_;
  std::uint64_t asked_ = 0;
};

class FpgaWorker final : public device_host::HostProcess {
 public:
  // `refused`: called by greet() if the card does not take the image that it is to begin with. kExhausted, kInternal:
  // there is none. To be called by a thread that lives as long as the process may.
  static Result<std::shared_ptr<FpgaWorker>> start(const std::string& program, const std::string& card,
                                                   const FpgaWorkerOrder& order, const ImageChoice::Choice& begin,
                                                   std::function<void()> refused);

  // A card that has to be programmed takes seconds.
  Result<void> greet(std::chrono::milliseconds patience) override;

  FpgaLaneChannel& lane(std::uint32_t i) { return lanes_[i]; }

 private:
  FpgaWorker(UniqueFd control, std::vector<FpgaLaneChannel> lanes, pid_t pid, const FpgaHello& hello,
             std::function<void()> refused);

  std::vector<FpgaLaneChannel> lanes_;
  const FpgaHello hello_;
  const std::function<void()> refused_;
};

using FpgaDevice = device_host::Owned<FpgaWorker>;

}  // namespace millrace

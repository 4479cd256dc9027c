// A GPU's memory as sessions have their tensors in it: taken, moved and given back by the process that owns the GPU, which
// exports it. Clients map it by its descriptor, which goes to them through the daemon.
//
//   make() ──▶ taken, zeroed, exported: a Room ──▶ CudaArena ──finalize()──▶ move() ...
//                                        │  ▲          │
//                                        │  └─zeroed───┘  another session of the same process has it again
//                                        └──▶ ~Room: give_back()
//
// One thread, mr-gpu-mem, asks the process for all of it, an order after the other. Memory goes with the process that took
// it: its number never comes again, so another process knows nothing of it, and what is asked for it is kUnavailable. Its
// bytes stay mapped with clients that have them.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/backend/cuda/cuda_worker.h"
#include "daemon/memory/tensor_memory.h"
#include "proto/base/mutex.h"

namespace millrace {

// Where an image goes in such memory, as Destination::offset says it.
struct CudaPlace {
  static constexpr int kShift = 40;
  static constexpr std::uint64_t kMost = std::uint64_t{1} << kShift;

  std::uint64_t memory = 0, offset = 0;

  static CudaPlace of(std::uint64_t offset) { return {offset >> kShift, offset & (kMost - 1)}; }
  std::uint64_t number() const { return memory << kShift | offset; }
};

class CudaMemory final : public TensorMemory, public std::enable_shared_from_this<CudaMemory> {
 public:
  // Bytes of a session's memory become others: from the host, from elsewhere in it, or zeroes.
  struct Move {
    std::uint64_t to = 0;
    Bytes bytes;
    std::optional<std::uint64_t> from{};
    std::vector<std::byte> uploaded{};  // empty: none of the host's
  };

  struct Options {
    MemoryId id{};
    std::string name;
    CudaUuid gpu{};
    Bytes most;
    std::chrono::milliseconds patience{10'000};  // with one order
  };

  // What was taken for a session; it is given back with the last of it.
  class Room final : public TensorRoom {
   public:
    Room(std::shared_ptr<CudaMemory> memory, std::shared_ptr<const void> share)
        : memory_(std::move(memory)), share_(std::move(share)) {}
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() override;

    bool is_lost() const override {
      return lost_.load(std::memory_order_relaxed) || (number_ != 0 && maker_.expired());
    }
    std::shared_ptr<const void> share() const override { return share_; }
    std::uint64_t number() const { return number_; }
    int descriptor() const { return descriptor_.get(); }

   private:
    friend class CudaMemory;

    const std::shared_ptr<CudaMemory> memory_;  // shared: rooms may outlive the backend
    const std::shared_ptr<const void> share_;
    std::uint64_t number_ = 0;  // 0: nothing was taken
    UniqueFd descriptor_;
    std::weak_ptr<CudaWorker> maker_;    // the process that has it
    std::shared_ptr<const void> awake_;  // it is not ended for want of work
    std::atomic<bool> lost_ = false;     // publishes nothing but itself
  };

  // `device` is used until stop().
  static std::shared_ptr<CudaMemory> create(CudaDevice& device, Options options);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory() override { stop(); }

  MemoryId id() const override { return options_.id; }
  const std::string& name() const override { return options_.name; }
  DeviceUuid device() const override { return options_.gpu; }
  Bytes most() const override { return options_.most; }
  void make(boost::asio::io_context& control, const Order& order, std::shared_ptr<TensorRoom> again,
            std::function<void(Result<MadeArena>)> done) override;

  // In order. `done`: on the thread of here, or on the caller's after stop(). kUnavailable: the device or the memory is lost.
  void move(std::uint64_t memory, std::vector<Move> moves, std::function<void(Result<void>)> done)
      MILLRACE_EXCLUDES(mutex_);
  void give_back(std::uint64_t memory) MILLRACE_EXCLUDES(mutex_);

  // What waits comes to nothing, with kUnavailable. Idempotent.
  void stop() MILLRACE_EXCLUDES(mutex_);

 private:
  // Carried out with the process that there is, or with the error why there is none.
  using Work = std::function<void(Result<CudaMemoryChannel*>)>;
  class Share;
  using Answer = std::function<void(Result<MadeArena>)>;

  CudaMemory(CudaDevice& device, Options options) : device_(device), options_(std::move(options)) {}
  void run();
  void enqueue(Work work) MILLRACE_EXCLUDES(mutex_);
  Result<void> prepare(CudaMemoryChannel& channel, Room& room, Bytes bytes);
  Result<UniqueFd> take(CudaMemoryChannel& channel, std::uint64_t memory, Bytes bytes) const;
  Result<void> carry_out(CudaMemoryChannel& channel, std::uint64_t memory, const std::vector<Move>& moves) const;
  Result<std::shared_ptr<Room>> reserve(Bytes bytes);

  CudaDevice& device_;
  const Options options_;
  std::uint64_t next_ = 1;              // the thread's
  std::shared_ptr<CudaWorker> worker_;  // likewise, while it works: the process that there is
  // Bytes that are given away. Writers: reserve() and Share. Publishes nothing but itself.
  const std::shared_ptr<std::atomic<std::uint64_t>> used_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  Mutex mutex_;
  Condition changed_;
  std::deque<Work> waiting_ MILLRACE_GUARDED_BY(mutex_);
  bool stopped_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace

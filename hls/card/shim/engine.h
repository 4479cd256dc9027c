// What a card is while it is programmed: its device process, and for each compute unit a queue of commands.
//
//   submit ──▶ the unit with the fewest ──▶ queue ──up to two at a time──▶ device process
//                                             ▲                              │ a reading thread
//   abort  ──takes away, or disowns───────────┘            state, event ◀────┘
//
// The second waits in the process for the first, so that a unit need not wait for the host between them. What the process
// has it carries out, whether it was aborted or not, and its buffers live so long. When the process dies every command
// ends with no response, and none is taken any more.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hls/card/shim/command.h"
#include "hls/card/shim/device_process.h"

namespace millrace::card {

class Engine {
 public:
  // nullptr: `error` is a negative errno.
  static std::unique_ptr<Engine> start(unsigned card, const Program& program, std::shared_ptr<CardMemory> memory,
                                       int& error);
  Engine(unsigned card, std::shared_ptr<CardMemory> memory, std::unique_ptr<Mapping> registers,
         std::unique_ptr<DeviceProcess> process, std::vector<std::string> units);
  ~Engine();  // kills the process; commands end with no response

  // 0 or a negative errno.
  int submit(Command command);
  // Whether there was such a command. It is aborted, as far as the host can see.
  bool abort(const Buffer& packet);

  bool is_dead() const;
  bool is_busy() const;
  const std::vector<std::string>& units() const { return names_; }
  const std::shared_ptr<CardMemory>& memory() const { return memory_; }
  // A register of a unit. REQUIRES: both are in range.
  std::uint32_t* at(unsigned unit, std::uint32_t offset) const;

 private:
  static constexpr std::size_t kMostSent = 2;
  struct Sent {
    std::uint64_t sequence;
    Command command;
    bool aborted = false;  // the host heard of its end
  };
  struct Unit {
    std::deque<Command> waiting;
    std::deque<Sent> sent;  // the first one runs
    std::size_t load() const { return waiting.size() + sent.size(); }
  };

  void read_replies();
  void take_reply(const Done& done);
  void fail_all();
  // REQUIRES: mutex_
  void send_next(unsigned unit);
  void send(unsigned unit, const Command& command);
  void mark_running(const Unit& unit);

  const unsigned card_;
  const std::shared_ptr<CardMemory> memory_;
  const std::unique_ptr<Mapping> registers_;
  const std::unique_ptr<DeviceProcess> process_;
  const std::vector<std::string> names_;
  mutable std::mutex mutex_;
  std::vector<Unit> units_;
  std::uint64_t sequence_ = 0;
  bool dead_ = false;
  bool ends_ = false;  // the process is to die
  std::unique_ptr<Start> message_ = std::make_unique<Start>();
  std::thread reader_;
};

}  // namespace millrace::card

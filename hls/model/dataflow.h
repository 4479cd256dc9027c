// A discrete simulation of stages joined by FIFOs. Of a stage it knows how many clocks a token keeps it (the initiation
// interval), how much later the result can be seen (the latency), and what room it needs in the next FIFO. Room is taken
// as a token begins, as for a burst that is asked for, or a buffer that is filled: so a FIFO has to cover the latency, too.
//
//   ──FIFO──▶┐             ┌──FIFO──▶        a stage serves one token at a time, of its queues in turns;
//   ──FIFO──▶┤    stage    ├──FIFO──▶        a queue is a FIFO in and the FIFO out that belongs to it
//   ──FIFO──▶┘             └──FIFO──▶
//
// Each clock of a stage is of one of three kinds: it works, it starves (no token to be seen), or the output is full (a
// token, but no room for what it becomes). They add up to the time that passed. Who drives it gives tokens a meaning
// through Work. Deterministic: equal calls, equal results. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <queue>
#include <string>
#include <vector>

namespace millrace::hls::model {

using Clocks = double;

// Which thing, and which part of it; both are the driver's own numbers.
struct Token {
  std::uint32_t thing = 0, part = 0;
};

// What a token becomes. Room is taken when the stage begins with the first part of what comes out as one, and is given
// back when the next stage is done with it; only the token that delivers goes on.
struct Emission {
  std::int64_t takes = 0;  // units of room in the FIFO; 0: a part before it has taken them
  std::int64_t holds = 0;  // what the delivered token gives back
  bool delivers = true;
};

// What stages do with tokens. `kind` is what add_stage() was told.
class Work {
 public:
  virtual ~Work() = default;
  virtual Clocks clocks(int kind, Token token) const = 0;
  virtual Emission emission(int kind, Token token) const = 0;
  // The stage was done with the token now.
  virtual void finished(int /*kind*/, std::size_t /*queue*/, Token /*token*/, Clocks /*now*/) {}
  // A FIFO that was to be refilled is empty.
  virtual void emptied(std::size_t /*fifo*/, Clocks /*now*/) {}
  virtual void timer(std::size_t /*which*/, Clocks /*now*/) {}
};

struct StageUse {
  Clocks busy = 0, starved = 0, output_full = 0;
  std::uint64_t tokens = 0;
};

class Dataflow {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::int64_t kEndless = std::int64_t{1} << 60;
  struct Queue {
    std::size_t in = kNone, out = kNone;  // out kNone: what comes out is gone
  };
  struct StageSpec {
    std::string name;
    int kind = 0;
    Clocks latency = 0;
    bool tells = false;  // Work::finished() is called
    std::vector<Queue> queues;
  };

  // `capacity`: units; a token that is larger than all of it fits an empty FIFO. `refilled`: Work::emptied() is called.
  std::size_t add_fifo(std::string name, std::int64_t capacity, bool refilled = false);
  // REQUIRES: each FIFO has one stage before it and one behind it, at most.
  std::size_t add_stage(StageSpec spec);

  // A token from outside; the FIFO is endless. Also from within Work's calls.
  void push(std::size_t fifo, Token token);
  // Work::timer() at `when`, not before now.
  void set_timer(Clocks when, std::size_t which);
  // Until nothing happens any more. The time at the end.
  Clocks run(Work& work);

  Clocks now() const { return now_; }
  StageUse use_of(std::size_t stage) const;  // up to now
  const std::string& name_of(std::size_t stage) const { return stages_[stage].spec.name; }
  std::int64_t high_water(std::size_t fifo) const { return fifos_[fifo].most; }
  std::size_t left_in(std::size_t fifo) const { return fifos_[fifo].entries.size(); }

 private:
  enum class State : std::uint8_t { kBusy, kStarved, kOutputFull };
  struct Entry {
    Token token;
    Clocks visible;
    std::int64_t holds;
  };
  struct Fifo {
    std::string name;
    std::int64_t capacity, used = 0, most = 0;
    bool refilled;
    std::size_t before = kNone, behind = kNone;  // stages
    std::deque<Entry> entries;
  };
  struct Stage {
    StageSpec spec;
    State state = State::kStarved;
    Clocks since = 0, wake = -1;
    StageUse use;
    std::size_t next = 0, serving = 0;  // queues
    Entry current{};
  };
  struct Event {
    Clocks when;
    std::uint64_t number;
    enum class What : std::uint8_t { kEnd, kWake, kTimer } what;
    std::size_t which;
    bool operator>(const Event& other) const { return when != other.when ? when > other.when : number > other.number; }
  };

  void enter(Stage& stage, State state);
  void look(std::size_t stage);  // later, in this very clock
  void settle(Work& work);
  void try_begin(std::size_t stage, Work& work);
  void begin(std::size_t stage, std::size_t queue, Emission emission, Work& work);
  void end(std::size_t stage, Work& work);
  void schedule(Clocks when, Event::What what, std::size_t which);

  std::vector<Fifo> fifos_;
  std::vector<Stage> stages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::size_t> looks_;
  std::uint64_t number_ = 0;
  Clocks now_ = 0;
};

}  // namespace millrace::hls::model

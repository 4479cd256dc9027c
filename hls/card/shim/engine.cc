#include "hls/card/shim/engine.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "hls/card/shim/faults.h"
#include "hls/card/shim/settings.h"

namespace millrace::card {

std::unique_ptr<Engine> Engine::start(unsigned card, const Program& program, std::shared_ptr<CardMemory> memory,
                                      int& error) {
  auto registers = Mapping::make("card registers", program.units.size() * hls::kRegisterBytes);
  if (registers == nullptr) {
    error = -errno;
    return nullptr;
  }
  auto process = DeviceProcess::start(card, program, *memory, *registers, error);
  if (process == nullptr) return nullptr;
  trace(card, "programmed: process %d", process->pid());
  return std::make_unique<Engine>(card, std::move(memory), std::move(registers), std::move(process), program.units);
}

Engine::Engine(unsigned card, std::shared_ptr<CardMemory> memory, std::unique_ptr<Mapping> registers,
               std::unique_ptr<DeviceProcess> process, std::vector<std::string> units)
    : card_(card),
      memory_(std::move(memory)),
      registers_(std::move(registers)),
      process_(std::move(process)),
      names_(std::move(units)),
      units_(names_.size()) {
  reader_ = std::thread(&Engine::read_replies, this);
}

Engine::~Engine() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  process_->kill();
  reader_.join();
}

int Engine::submit(Command command) {
  std::lock_guard lock(mutex_);
  if (dead_) return -ENODEV;
  unsigned best = kMostUnits;
  for (unsigned unit = 0; unit < units_.size(); ++unit)
    if (command.units >> unit & 1 && (best == kMostUnits || units_[unit].load() < units_[best].load())) best = unit;
  if (best == kMostUnits) return -EINVAL;
  set_state(*command.packet, State::kQueued);
  units_[best].waiting.push_back(std::move(command));
  send_next(best);
  return 0;
}

void Engine::send_next(unsigned number) {
  Unit& unit = units_[number];
  while (!dead_ && !unit.waiting.empty() && unit.sent.size() < kMostSent) {
    unit.sent.push_back({++sequence_, std::move(unit.waiting.front())});
    unit.waiting.pop_front();
    if (unit.sent.size() == 1) mark_running(unit);
    send(number, unit.sent.back().command);
  }
}

void Engine::mark_running(const Unit& unit) {
  const Sent& first = unit.sent.front();
  if (!first.aborted) set_state(*first.command.packet, State::kRunning);
}

void Engine::send(unsigned number, const Command& command) {
  const Fault fault = next_fault(card_);
  Start& start = *message_;
  start.sequence = sequence_;
  start.harm = fault.harm;
  start.harm_amount = fault.amount;
  for (std::size_t i = 0; i < kPointerCount; ++i) {
    const Buffer* const buffer = command.buffers[i].get();
    start.windows[i] = buffer == nullptr ? Window{0, 0} : Window{buffer->address(), buffer->bytes()};
  }
  start.words = static_cast<std::uint32_t>(command.registers.size());
  std::copy(command.registers.begin(), command.registers.end(), start.registers);
  process_->send(number, start);  // where nobody is there any more, the reading thread ends the command
}

bool Engine::abort(const Buffer& packet) {
  std::lock_guard lock(mutex_);
  for (Unit& unit : units_) {
    for (Sent& sent : unit.sent) {
      if (sent.aborted || sent.command.packet.get() != &packet) continue;
      sent.aborted = true;
      finish(sent.command, State::kAborted);
      return true;
    }
    const auto waits = std::find_if(unit.waiting.begin(), unit.waiting.end(),
                                    [&](const Command& command) { return command.packet.get() == &packet; });
    if (waits == unit.waiting.end()) continue;
    finish(*waits, State::kAborted);
    unit.waiting.erase(waits);
    return true;
  }
  return false;
}

void Engine::read_replies() {
  for (Done done{}; process_->receive(done);) take_reply(done);
  fail_all();
}

void Engine::take_reply(const Done& done) {
  std::vector<Sent> finished;
  {
    std::lock_guard lock(mutex_);
    if (done.unit >= units_.size() || units_[done.unit].sent.empty()) return;
    Unit& unit = units_[done.unit];
    if (unit.sent.front().sequence != done.sequence) return;
    finished.push_back(std::move(unit.sent.front()));
    unit.sent.pop_front();
    if (!unit.sent.empty()) mark_running(unit);
    send_next(done.unit);
  }
  if (finished.front().aborted) return;
  if (done.outcome == Outcome::kRefused)
    complain(card_, "a kernel got an address that is in no buffer, or not with all its bytes");
  finish(finished.front().command, done.outcome == Outcome::kDone ? State::kCompleted : State::kError);
}

void Engine::fail_all() {
  std::vector<Command> lost;
  {
    std::lock_guard lock(mutex_);
    dead_ = true;
    for (Unit& unit : units_) {
      for (Sent& sent : unit.sent)
        if (!sent.aborted) lost.push_back(std::move(sent.command));
      std::move(unit.waiting.begin(), unit.waiting.end(), std::back_inserter(lost));
      unit.sent.clear();
      unit.waiting.clear();
    }
    if (!ends_) {
      complain(card_, "fell off the bus with %zu commands in flight", lost.size());
      note_death(card_);
    }
  }
  for (const Command& command : lost) finish(command, State::kNoResponse);
}

bool Engine::is_dead() const {
  std::lock_guard lock(mutex_);
  return dead_;
}

bool Engine::is_busy() const {
  std::lock_guard lock(mutex_);
  return std::any_of(units_.begin(), units_.end(), [](const Unit& unit) { return unit.load() > 0; });
}

std::uint32_t* Engine::at(unsigned unit, std::uint32_t offset) const {
  return reinterpret_cast<std::uint32_t*>(registers_->at(unit * hls::kRegisterBytes + offset));
}

}  // namespace millrace::card

#include "hls/card/shim/card.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "hls/card/shim/control.h"
#include "hls/card/shim/faults.h"
#include "hls/card/shim/program.h"
#include "hls/card/shim/settings.h"

namespace millrace::card {

unsigned Card::count() {
  return settings().cards;
}

Card& Card::get(unsigned number) {
  static auto* const cards = [] {
    auto* const all = new std::vector<std::unique_ptr<Card>>;
    for (unsigned i = 0; i < count(); ++i) all->push_back(std::make_unique<Card>(i));
    return all;
  }();
  return *(*cards)[number];
}

std::shared_ptr<Client> Card::open() {
  std::lock_guard lock(mutex_);
  if (is_away(number_)) {
    errno = ENODEV;
    return nullptr;
  }
  ++clients_;
  return std::make_shared<Client>(*this);
}

void Card::close(const Client& client) {
  std::unique_ptr<Engine> ended;
  std::lock_guard lock(mutex_);
  const CardLock among_processes(number_);
  contexts_.close_all(client);
  if (--clients_ > 0 || engine_ == nullptr || (!engine_->is_dead() && !engine_->is_busy())) return;
  ended.swap(engine_);
  if (!contexts_.any()) control_of(number_).programmed = false;
}

int Card::program(const axlf& file) {
  const char* why = nullptr;
  const auto program = read_program(file, why);
  if (!program) {
    complain(number_, "the xclbin is refused: %s", why);
    return -EINVAL;
  }
  std::lock_guard lock(mutex_);
  const CardLock among_processes(number_);
  if (engine_ != nullptr && engine_->is_dead()) return -ENODEV;
  const CardControl& control = control_of(number_);
  const bool is_programmed = control.programmed && control.uuid == program->uuid;
  if (is_programmed && engine_ != nullptr && uuid_ == program->uuid) return 0;
  return swap_in(*program, is_programmed);
}

int Card::swap_in(const Program& program, bool attach) {
  if (const int error = check_swap(program, attach); error != 0) return error;
  if (!attach) std::this_thread::sleep_for(std::chrono::milliseconds(settings().program_ms));
  std::shared_ptr<CardMemory> memory;
  if (engine_ != nullptr && engine_->memory()->banks() == program.banks) memory = engine_->memory();
  engine_.reset();
  CardControl& control = control_of(number_);
  control.programmed = attach;
  if (memory == nullptr) memory = CardMemory::make(program.banks);
  if (memory == nullptr) return -errno;
  int error = 0;
  engine_ = Engine::start(number_, program, std::move(memory), error);
  if (engine_ == nullptr) return error;
  uuid_ = control.uuid = program.uuid;
  control.programmed = true;
  return 0;
}

int Card::check_swap(const Program& program, bool attach) const {
  if (is_away(number_)) return -ENODEV;
  if (attach) return 0;
  if (contexts_.any()) {
    complain(number_, "another xclbin is refused: compute units are in use");
    return -EBUSY;
  }
  if (engine_ != nullptr && engine_->memory()->banks() != program.banks && engine_->memory()->buffers() > 0) {
    complain(number_, "another xclbin is refused: it has other banks, and there are buffers in these");
    return -EPERM;
  }
  if (refuses_programming(number_)) {
    complain(number_, "the xclbin is refused, as ordered");
    return -EINVAL;
  }
  return 0;
}

int Card::open_context(const Client& client, const unsigned char* uuid, unsigned unit, bool shared) {
  std::lock_guard lock(mutex_);
  const CardLock among_processes(number_);
  const CardControl& control = control_of(number_);
  if (engine_ == nullptr || std::memcmp(uuid, uuid_.data(), uuid_.size()) != 0) return -EBUSY;
  if (!control.programmed || control.uuid != uuid_) return -EBUSY;  // another process swapped its image
  if (engine_->is_dead()) return -ENODEV;
  if (unit != Contexts::kNoUnit && unit >= engine_->units().size()) return -EINVAL;
  return contexts_.open(client, unit, shared);
}

int Card::close_context(const Client& client, unsigned unit) {
  std::lock_guard lock(mutex_);
  const CardLock among_processes(number_);
  return contexts_.close(client, unit);
}

int Card::submit(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet) {
  std::lock_guard lock(mutex_);
  if (engine_ == nullptr || engine_->is_dead()) return -ENODEV;
  switch (opcode_of(*packet)) {
    case Opcode::kStart:
      return start(client, packet);
    case Opcode::kAbort:
      return abort(client, packet);
    case Opcode::kCopy:
      return copy(client, packet);
    default:
      return -EINVAL;
  }
}

int Card::start(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet) {
  Command command{.client = client, .packet = packet, .units = 0, .registers = {}, .buffers = {}};
  if (const int error = read_start(*packet, *engine_->memory(), command); error != 0) return error;
  command.units &= contexts_.units_of(*client);
  return engine_->submit(std::move(command));
}

int Card::abort(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet) {
  const auto victim = client->buffer(static_cast<unsigned>(victim_of(*packet)));
  if (victim != nullptr) engine_->abort(*victim);
  finish({.client = client, .packet = packet, .units = 0, .registers = {}, .buffers = {}}, State::kCompleted);
  return 0;
}

// At once: there is no engine for it.
int Card::copy(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet) {
  const Copy copy = copy_of(*packet);
  const auto from = client->buffer(copy.from), to = client->buffer(copy.to);
  if (from == nullptr || to == nullptr) return -EINVAL;
  if (const int error = to->copy_from(*from, copy.bytes, copy.to_offset, copy.from_offset); error != 0) return error;
  finish({.client = client, .packet = packet, .units = 0, .registers = {}, .buffers = {}}, State::kCompleted);
  return 0;
}

int Card::check_alive() const {
  std::lock_guard lock(mutex_);
  return engine_ != nullptr && engine_->is_dead() ? -EIO : 0;
}

std::shared_ptr<CardMemory> Card::memory() const {
  std::lock_guard lock(mutex_);
  return engine_ == nullptr ? nullptr : engine_->memory();
}

int Card::unit_of(const char* name) const {
  std::lock_guard lock(mutex_);
  if (engine_ == nullptr) return -ENODEV;
  const auto found = std::find(engine_->units().begin(), engine_->units().end(), name);
  return found == engine_->units().end() ? -ENOENT : static_cast<int>(found - engine_->units().begin());
}

bool Card::has_register(unsigned unit, std::uint32_t offset) const {
  return engine_ != nullptr && unit < engine_->units().size() && offset % 4 == 0 && offset < hls::kRegisterBytes;
}

int Card::read_register(unsigned unit, std::uint32_t offset, std::uint32_t& value) const {
  std::lock_guard lock(mutex_);
  if (!has_register(unit, offset)) return -EINVAL;
  value = engine_->is_dead() ? 0xffffffff : __atomic_load_n(engine_->at(unit, offset), __ATOMIC_ACQUIRE);
  return 0;
}

int Card::write_register(unsigned unit, std::uint32_t offset, std::uint32_t value) const {
  std::lock_guard lock(mutex_);
  if (!has_register(unit, offset)) return -EINVAL;
  __atomic_store_n(engine_->at(unit, offset), value, __ATOMIC_RELEASE);
  return 0;
}

}  // namespace millrace::card

// A simulated card: programmed or not, opened by clients, used by contexts of theirs.
//
//   empty ──program──▶ programmed ──another xclbin, with no context and no buffer in other banks──▶ programmed
//     ▲                    │ its process dies
//     └──the last close── dead: every call is -ENODEV or -EIO
//
// A unit that hangs hangs until another xclbin comes or the last client closes: then a real card would be reset.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "hls/card/shim/client.h"
#include "hls/card/shim/contexts.h"
#include "hls/card/shim/engine.h"

struct axlf;

namespace millrace::card {

class Card {
 public:
  static unsigned count();
  static Card& get(unsigned number);  // never destroyed. REQUIRES: number < count()

  explicit Card(unsigned number) : number_(number), contexts_(number) {}

  unsigned number() const { return number_; }
  std::shared_ptr<Client> open();  // nullptr: errno says why
  void close(const Client& client);

  // All of these return 0 or a negative errno.
  int program(const axlf& file);
  int open_context(const Client& client, const unsigned char* uuid, unsigned unit, bool shared);
  int close_context(const Client& client, unsigned unit);
  int submit(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet);
  int check_alive() const;  // of a card that was programmed; an empty one is well

  std::shared_ptr<CardMemory> memory() const;  // nullptr: the card is empty
  int unit_of(const char* name) const;         // or a negative errno
  int read_register(unsigned unit, std::uint32_t offset, std::uint32_t& value) const;
  int write_register(unsigned unit, std::uint32_t offset, std::uint32_t value) const;

 private:
  int swap_in(const struct Program& program, bool attach);  // REQUIRES: mutex_
  int check_swap(const struct Program& program, bool attach) const;
  int start(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet);
  int abort(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet);
  int copy(const std::shared_ptr<Client>& client, const std::shared_ptr<Buffer>& packet);
  bool has_register(unsigned unit, std::uint32_t offset) const;  // REQUIRES: mutex_

  const unsigned number_;
  mutable std::mutex mutex_;
  unsigned clients_ = 0;
  Contexts contexts_;
  std::array<unsigned char, 16> uuid_{};
  std::unique_ptr<Engine> engine_;  // nullptr: the card is empty
};

}  // namespace millrace::card

// How the daemon talks with a process that owns a device for it: whole messages over a socket pair, and memory that both
// have mapped, which the process gets as descriptors when it begins. Nothing from there is believed.
// Values and plain functions; thread-safe.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::device_host {

using Clock = std::chrono::steady_clock;

// Descriptors that are handed over lie here or above, so that none overwrites another one on its way into the process.
inline constexpr int kAbove = 32;

struct Channel {
  UniqueFd ours, theirs;
};

// `program`: of whose process it is, for people. kExhausted: no descriptors are left.
Result<Channel> make_channel(std::string_view program);

// Memory of this process and of the other one. Its pages are taken when it is made, so that want of memory is an error
// then and no signal later; nobody makes it shorter.
class Staging {
 public:
  static Result<Staging> create(std::string_view program, Bytes bytes);
  Staging(Staging&& other) noexcept
      : descriptor_(std::move(other.descriptor_)), at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  Staging& operator=(Staging&&) = delete;
  ~Staging();

  std::byte* data() const { return at_; }
  Bytes size() const { return bytes_; }
  // Once: to be handed over.
  UniqueFd take_descriptor() { return std::move(descriptor_); }

 private:
  Staging(UniqueFd descriptor, std::byte* at, Bytes bytes)
      : descriptor_(std::move(descriptor)), at_(at), bytes_(bytes) {}

  UniqueFd descriptor_;
  std::byte* at_;
  Bytes bytes_;
};

// A descriptor of ours, and its number in the process.
struct Handed {
  int from, to;
};

// Where `name` is: `path`, or if that is empty beside this program or in ../libexec/millrace.
std::string find_program(const std::string& path, const std::string& name);

// Starts it with this process's environment and these descriptors. To be called by a thread that lives as long as the
// process may, since such processes end with it. kInternal: it cannot be started.
Result<pid_t> start_process(const std::string& program, std::span<const Handed> descriptors);

// Kills it and waits a while: one that hangs in a driver may be there for long.
void reap(pid_t pid);

bool send_bytes(int socket, std::span<const std::byte> message);

// A whole message of ours; false: the process is gone.
template <class Message>
bool send_to(int socket, const Message& message) {
  return send_bytes(socket, std::as_bytes(std::span(&message, 1)));
}

enum class Heard : std::uint8_t { kMessage, kEnd, kLate };

Heard receive_bytes(int socket, std::span<std::byte> message, Clock::time_point until, UniqueFd* descriptor);

// The next message; one of another length counts as the end. `descriptor`: what may come with it.
template <class Message>
Heard receive(int socket, Message& message, Clock::time_point until, UniqueFd* descriptor = nullptr) {
  return receive_bytes(socket, std::as_writable_bytes(std::span(&message, 1)), until, descriptor);
}

// What an array of characters from the process says, made fit for a terminal.
std::string text_of(std::span<const char> text_untrusted);

// The code and the words of an answer; `program`: whose. What is no code is kUnavailable.
Error error_of(std::uint32_t code, std::span<const char> text_untrusted, std::string_view program);

}  // namespace millrace::device_host

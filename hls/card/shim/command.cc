#include "hls/card/shim/command.h"

#include <ert.h>

#include <cerrno>
#include <cstring>

namespace millrace::card {
namespace {

std::uint32_t* words_of(const Buffer& packet) {
  return reinterpret_cast<std::uint32_t*>(packet.host());
}

std::uint32_t header_of(const Buffer& packet) {
  return __atomic_load_n(words_of(packet), __ATOMIC_ACQUIRE);
}

// Words after the first.
std::size_t words_after(const Buffer& packet) {
  return header_of(packet) >> 12 & 0x7ff;
}

bool holds(const Buffer& packet, std::size_t words) {
  return packet.is_command() && packet.bytes() / sizeof(std::uint32_t) > words;
}

}  // namespace

Opcode opcode_of(const Buffer& packet) {
  return holds(packet, 0) ? static_cast<Opcode>(header_of(packet) >> 23 & 0x1f) : static_cast<Opcode>(~0u);
}

int read_start(const Buffer& packet, const CardMemory& memory, Command& command) {
  const std::size_t masks = 1 + (header_of(packet) >> 10 & 3), words = words_after(packet);
  if (!holds(packet, words) || words < masks || words - masks > kMostRegisters) return -EINVAL;
  const std::uint32_t* const after = words_of(packet) + 1;
  command.units = after[0];
  command.registers.assign(after + masks, after + words);
  if (command.registers.size() < words_needed()) return -EINVAL;
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i)
    if (is_pointer(i)) command.buffers[pointer_number(i)] = memory.at(read_argument(command.registers.data(), i));
  return 0;
}

std::uint64_t victim_of(const Buffer& packet) {
  std::uint64_t handle = 0;
  if (packet.bytes() >= sizeof(ert_abort_cmd))
    std::memcpy(&handle, packet.host() + offsetof(ert_abort_cmd, exec_bo_handle), sizeof handle);
  return handle;
}

Copy copy_of(const Buffer& packet) {
  ert_start_copybo_cmd words{};
  constexpr std::size_t kBytes = offsetof(ert_start_copybo_cmd, size_hi) + sizeof words.size_hi;
  if (packet.bytes() < kBytes) return {};
  std::memcpy(&words, packet.host(), kBytes);
  const auto wide = [](std::uint32_t low, std::uint32_t high) { return low | std::uint64_t{high} << 32; };
  return {words.src_bo_hdl, words.dst_bo_hdl, wide(words.src_addr_lo, words.src_addr_hi),
          wide(words.dst_addr_lo, words.dst_addr_hi), wide(words.size, words.size_hi)};
}

void set_state(const Buffer& packet, State state) {
  std::uint32_t* const header = words_of(packet);
  __atomic_store_n(header, (header_of(packet) & ~0xfu) | static_cast<std::uint32_t>(state), __ATOMIC_RELEASE);
}

void finish(const Command& command, State state) {
  set_state(*command.packet, state);
  command.client->finished();
}

}  // namespace millrace::card

#include "hls/card/shim/program.h"

#include <xclbin.h>

#include <algorithm>
#include <cstring>

#include "hls/card/shim/settings.h"
#include "hls/card/wire.h"

namespace millrace::card {
namespace {

using Bytes = std::span<const std::byte>;

// Empty: there is none, or it is not in the file.
Bytes section(const axlf& file, axlf_section_kind kind) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&file);
  const std::uint64_t length = file.m_header.m_length;
  const std::uint64_t count = file.m_header.m_numSections;
  if (length < offsetof(axlf, m_sections) ||
      count > (length - offsetof(axlf, m_sections)) / sizeof(axlf_section_header))
    return {};
  for (std::uint64_t i = 0; i < count; ++i) {
    axlf_section_header header;
    std::memcpy(&header, begin + offsetof(axlf, m_sections) + i * sizeof header, sizeof header);
    if (header.m_sectionKind != static_cast<std::uint32_t>(kind)) continue;
    if (header.m_sectionOffset > length || header.m_sectionSize > length - header.m_sectionOffset) return {};
    return {begin + header.m_sectionOffset, header.m_sectionSize};
  }
  return {};
}

// A count, and elements from `offset` on. Empty: they are not all in the section.
template <class Element>
std::vector<Element> elements(Bytes bytes, std::size_t offset) {
  std::int32_t count = 0;
  if (bytes.size() < offset) return {};
  std::memcpy(&count, bytes.data(), sizeof count);
  if (count < 0 || static_cast<std::size_t>(count) > (bytes.size() - offset) / sizeof(Element)) return {};
  std::vector<Element> found(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(found.data(), bytes.data() + offset, found.size() * sizeof(Element));
  return found;
}

std::vector<Bank> read_banks(Bytes bytes) {
  std::vector<Bank> banks;
  for (const mem_data& bank : elements<mem_data>(bytes, offsetof(mem_topology, m_mem_data))) {
    const std::uint64_t kib = settings().bank_mib == 0 ? bank.m_size : settings().bank_mib << 10;
    banks.push_back({bank.m_base_address, bank.m_used ? std::min(kib, std::uint64_t{1} << 32) << 10 : 0});
  }
  return banks;
}

// By their interrupts; where no unit has one, by their addresses: as XRT numbers them.
std::vector<std::string> read_units(Bytes bytes) {
  std::vector<ip_data> units;
  for (const ip_data& unit : elements<ip_data>(bytes, offsetof(ip_layout, m_ip_data)))
    if (unit.m_type == IP_KERNEL) units.push_back(unit);
  const auto interrupt = [](const ip_data& unit) { return unit.properties & IP_INTERRUPT_ID_MASK; };
  const bool have_interrupts = std::any_of(units.begin(), units.end(), interrupt);
  std::stable_sort(units.begin(), units.end(), [&](const ip_data& a, const ip_data& b) {
    return have_interrupts ? interrupt(a) < interrupt(b) : a.m_base_address < b.m_base_address;
  });
  std::vector<std::string> names;
  for (const ip_data& unit : units) {
    const auto* const name = reinterpret_cast<const char*>(unit.m_name);
    names.emplace_back(name, strnlen(name, sizeof unit.m_name));
  }
  return names;
}

}  // namespace

std::optional<Program> read_program(const axlf& file, const char*& why) {
  Program program;
  if (std::memcmp(file.m_magic, "xclbin2", sizeof file.m_magic) != 0) {
    why = "it is no xclbin";
    return std::nullopt;
  }
  std::memcpy(program.uuid.data(), file.m_header.uuid, program.uuid.size());
  program.banks = read_banks(section(file, MEM_TOPOLOGY));
  program.units = read_units(section(file, IP_LAYOUT));
  program.bitstream = section(file, BITSTREAM);
  why = program.banks.empty()               ? "it has no MEM_TOPOLOGY"
        : program.units.empty()             ? "it has no kernels in its IP_LAYOUT"
        : program.units.size() > kMostUnits ? "it has more compute units than a simulated card"
        : program.bitstream.empty()         ? "it has no BITSTREAM"
                                            : nullptr;
  if (why != nullptr) return std::nullopt;
  return program;
}

}  // namespace millrace::card

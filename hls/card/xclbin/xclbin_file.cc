#include "hls/card/xclbin/xclbin_file.h"

#include <xclbin.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "hls/card/xclbin/platform.h"
#include "hls/card/xclbin/sections.h"

namespace millrace::card {
namespace {

struct Section {
  axlf_section_kind kind;
  const char* name;
  std::string bytes;
};

std::size_t aligned(std::size_t offset) {
  return (offset + 7) / 8 * 8;
}

// Two FNV-1a sums of 64 bits with different beginnings.
std::array<unsigned char, 16> uuid_of(const std::string& bytes) {
  std::uint64_t sums[2] = {0xcbf29ce484222325u, 0x9e3779b97f4a7c15u};
  for (const char byte : bytes)
    for (std::uint64_t& sum : sums) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3u + (&sum - sums);
  std::array<unsigned char, 16> uuid;
  std::memcpy(uuid.data(), sums, uuid.size());
  uuid[6] = (uuid[6] & 0x0f) | 0x80;  // version 8: whatever its maker says
  uuid[8] = (uuid[8] & 0x3f) | 0x80;
  return uuid;
}

axlf first_bytes(std::size_t length, std::size_t sections) {
  axlf file{};
  std::memcpy(file.m_magic, "xclbin2", sizeof file.m_magic);
  file.m_signature_length = -1;
  std::memset(file.reserved, 0xff, sizeof file.reserved);
  std::memset(file.m_keyBlock, 0xff, sizeof file.m_keyBlock);
  file.m_header.m_length = length;
  file.m_header.m_versionMajor = 2;
  file.m_header.m_versionMinor = 13;
  file.m_header.m_mode = XCLBIN_PR;
  std::snprintf(reinterpret_cast<char*>(file.m_header.m_platformVBNV), sizeof file.m_header.m_platformVBNV, "%s",
                kPlatform);
  file.m_header.m_numSections = static_cast<std::uint32_t>(sections);
  return file;
}

}  // namespace

std::string xclbin_bytes(const hls::Image& image, unsigned units, const std::string& bitstream) {
  const std::vector<Section> sections{{BITSTREAM, "bitstream", bitstream},
                                      {MEM_TOPOLOGY, "mem_topology", mem_topology_section(units)},
                                      {IP_LAYOUT, "ip_layout", ip_layout_section(image, units)},
                                      {CONNECTIVITY, "connectivity", connectivity_section(units)},
                                      {EMBEDDED_METADATA, "metadata", metadata_xml(image, units)}};
  constexpr std::size_t kHeaders = offsetof(axlf, m_sections);
  std::string bytes(aligned(kHeaders + sections.size() * sizeof(axlf_section_header)), '\0');
  for (std::size_t i = 0; i < sections.size(); ++i) {
    axlf_section_header header{};
    header.m_sectionKind = sections[i].kind;
    std::snprintf(header.m_sectionName, sizeof header.m_sectionName, "%s", sections[i].name);
    header.m_sectionOffset = bytes.size();
    header.m_sectionSize = sections[i].bytes.size();
    std::memcpy(bytes.data() + kHeaders + i * sizeof header, &header, sizeof header);
    bytes += sections[i].bytes;
    bytes.resize(aligned(bytes.size()));
  }
  axlf file = first_bytes(bytes.size(), sections.size());
  std::memcpy(bytes.data(), &file, kHeaders);
  const auto uuid = uuid_of(bytes);
  std::memcpy(file.m_header.uuid, uuid.data(), uuid.size());
  std::memcpy(&file.m_uniqueId, uuid.data(), sizeof file.m_uniqueId);
  std::memcpy(bytes.data(), &file, kHeaders);
  return bytes;
}

}  // namespace millrace::card

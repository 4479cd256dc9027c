#include "hls/card/xclbin/sections.h"

#include <xclbin.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "hls/card/table_view.h"
#include "hls/card/xclbin/platform.h"

namespace millrace::card {
namespace {

// A count, then elements from `offset` on: what is between is padding, which sizeof would count twice.
template <class Element>
std::string array_section(const std::vector<Element>& elements, std::size_t offset) {
  std::string section(offset + elements.size() * sizeof(Element), '\0');
  const auto count = static_cast<std::int32_t>(elements.size());
  std::memcpy(section.data(), &count, sizeof count);
  if (count > 0) std::memcpy(section.data() + offset, elements.data(), elements.size() * sizeof(Element));
  return section;
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llX", static_cast<unsigned long long>(value));
  return text;
}

std::string port_of(std::size_t argument) {
  return is_pointer(argument) ? "M_AXI_GMEM" + std::to_string(pointer_number(argument)) : "S_AXI_CONTROL";
}

std::string type_of(std::size_t argument) {
  switch (hls::kArguments[argument].access) {
    case hls::Access::kRead:
      return "Burst const *";
    case hls::Access::kWrite:
      return "Burst*";
    default:
      return "unsigned int";
  }
}

std::string ports_xml() {
  std::string text;
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i)
    if (is_pointer(i))
      text +=
          "<port name=\"" + port_of(i) +
          "\" mode=\"master\" range=\"0xFFFFFFFFFFFFFFFF\" dataWidth=\"512\" portType=\"addressable\" base=\"0x0\"/>\n";
  return text + "<port name=\"S_AXI_CONTROL\" mode=\"slave\" range=\"" + hex(hls::kRegisterBytes) +
         "\" dataWidth=\"32\" portType=\"addressable\" base=\"0x0\"/>\n";
}

std::string argument_xml(std::size_t i) {
  const std::string size = hex(is_pointer(i) ? 8 : 4);
  return "<arg name=\"" + std::string(hls::kArguments[i].name) + "\" addressQualifier=\"" +
         (is_pointer(i) ? "1" : "0") + "\" id=\"" + std::to_string(i) + "\" port=\"" + port_of(i) + "\" size=\"" +
         size + "\" offset=\"" + hex(hls::kArguments[i].offset) + "\" hostOffset=\"0x0\" hostSize=\"" + size +
         "\" type=\"" + type_of(i) + "\"/>\n";
}

}  // namespace

std::string metadata_xml(const hls::Image& image, unsigned units) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<project name=\"" + std::string(image.name) +
      "\">\n<platform vendor=\"millrace\" boardid=\"simulated\" name=\"" + kPlatform +
      "\" featureRomTime=\"0\">\n<version major=\"1\" minor=\"0\"/>\n<description/>\n<device name=\"fpga0\" "
      "addrWidth=\"0\">\n"
      "<core name=\"OCL_REGION_0\" target=\"hw\" type=\"clc_region\" clockFreq=\"0MHz\" numComputeUnits=\"" +
      std::to_string(units) + "\">\n<kernelClocks><clock port=\"KERNEL_CLK\" frequency=\"300MHz\"/></kernelClocks>\n" +
      "<kernel name=\"" + image.kernel +
      "\" language=\"c\" attributes=\"\" preferredWorkGroupSizeMultiple=\"0\" workGroupSize=\"1\" interrupt=\"true\" "
      "hwControlProtocol=\"ap_ctrl_chain\">\n" +
      ports_xml();
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i) text += argument_xml(i);
  for (unsigned unit = 0; unit < units; ++unit)
    text += "<instance name=\"" + unit_name(image, unit) + "\"><addrRemap base=\"" + hex(unit_address(unit)) +
            "\" port=\"S_AXI_CONTROL\"/></instance>\n";
  return text + "</kernel>\n</core>\n</device>\n</platform>\n</project>\n";
}

std::string mem_topology_section(unsigned units) {
  std::vector<mem_data> banks;
  for (unsigned bank = 0; bank < kBanks; ++bank) {
    mem_data data{};
    data.m_type = MEM_DDR4;
    data.m_used = bank < std::min(units, kBanks);
    data.m_size = kBankBytes >> 10;
    data.m_base_address = bank_address(bank);
    std::snprintf(reinterpret_cast<char*>(data.m_tag), sizeof data.m_tag, "DDR[%u]", bank);
    banks.push_back(data);
  }
  return array_section(banks, offsetof(mem_topology, m_mem_data));
}

std::string ip_layout_section(const hls::Image& image, unsigned units) {
  std::vector<ip_data> all;
  for (unsigned unit = 0; unit < units; ++unit) {
    ip_data data{};
    data.m_type = IP_KERNEL;
    data.properties = IP_INT_ENABLE_MASK | unit << IP_INTERRUPT_ID_SHIFT | AP_CTRL_CHAIN << IP_CONTROL_SHIFT;
    data.m_base_address = unit_address(unit);
    const std::string name = std::string(image.kernel) + ":" + unit_name(image, unit);
    std::memcpy(data.m_name, name.data(), std::min(name.size(), sizeof data.m_name - 1));
    all.push_back(data);
  }
  return array_section(all, offsetof(ip_layout, m_ip_data));
}

std::string connectivity_section(unsigned units) {
  std::vector<connection> connections;
  for (unsigned unit = 0; unit < units; ++unit)
    for (std::size_t i = 0; i < hls::kArgumentCount; ++i)
      if (is_pointer(i))
        connections.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(unit),
                               static_cast<std::int32_t>(bank_of_unit(unit))});
  return array_section(connections, offsetof(connectivity, m_connection));
}

}  // namespace millrace::card

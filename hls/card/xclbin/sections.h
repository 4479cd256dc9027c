// The sections of an image's xclbin that come from the kernel table. Values; thread-safe: plain functions.
#pragma once

#include <string>

#include "hls/table/kernel_table.h"

namespace millrace::card {

// EMBEDDED_METADATA: the kernel, its arguments and their registers, its units, as XML.
std::string metadata_xml(const hls::Image& image, unsigned units);
// The bytes of MEM_TOPOLOGY, IP_LAYOUT and CONNECTIVITY.
std::string mem_topology_section(unsigned units);
std::string ip_layout_section(const hls::Image& image, unsigned units);
std::string connectivity_section(unsigned units);

}  // namespace millrace::card

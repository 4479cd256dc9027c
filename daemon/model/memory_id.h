// Which memory tensors lie in. Value.
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// One of the memories that tensors can lie in: the host's, or a device's. Numbered when the daemon starts.
enum class MemoryId : std::uint32_t {};
inline constexpr MemoryId kHostMemory{0};
inline constexpr std::string_view kHostMemoryName = "host";  // to clients

}  // namespace millrace

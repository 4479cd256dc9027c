// A GPU's UUID: how two processes name the same GPU, whose number may differ between them. Values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::cuda {

using Uuid = std::array<std::uint8_t, 16>;

// As `nvidia-smi -L` prints it: "GPU-8f6c...".
std::string uuid_text(const Uuid& uuid);

// Of what uuid_text() writes, in digits of either case; nothing: the text is no such UUID.
std::optional<Uuid> uuid_from_text(std::string_view text_untrusted);

}  // namespace millrace::cuda

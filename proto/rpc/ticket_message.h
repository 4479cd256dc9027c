// Tickets: what made one tensor, as files that people pass on. Every text is untrusted. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/batch_choices.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

struct TensorTicket {
  std::string path;  // bytes
  Recipe recipe;
  Fidelity fidelity = Fidelity::kExact;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
  std::uint32_t view = 0;            // of a recipe with views
  std::vector<std::uint64_t> shape;  // of the tensor
  std::uint32_t crc32 = 0;           // of the tensor's bytes
};

// Of protobuf's text format of a millrace.v1.Ticket. kInvalid: what is wrong, and where; of a later version, too.
Result<TensorTicket> ticket_from_text(const std::string& text_untrusted);

}  // namespace millrace

// An enumeration of the messages beside ours: one table of what each value means, read in both directions. Pure
// functions, thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

#include "proto/base/result.h"
#include "proto/rpc/known.h"

namespace millrace {

// A row of an enumeration's table, which begins with UNSPECIFIED.
template <class Message, class Ours>
struct Meaning {
  Message message;
  Ours ours;
};

// Never UNSPECIFIED, whose meaning another row has, too.
template <class Message, class Ours, std::size_t n>
Message message_of(const Meaning<Message, Ours> (&meanings)[n], Ours ours) {
  for (std::size_t i = 1; i < n; ++i) {
    if (meanings[i].ours == ours) return meanings[i].message;
  }
  return meanings[0].message;
}

// kInvalid: "field: 77 is not a value that ...".
template <class Message, class Ours, std::size_t n>
Result<Ours> meaning_of(std::string_view field, const Meaning<Message, Ours> (&meanings)[n],
                        Message message_untrusted) {
  for (const auto& meaning : meanings) {
    if (meaning.message == message_untrusted) return meaning.ours;
  }
  return unknown_value(field, message_untrusted, n - 1);
}

}  // namespace millrace

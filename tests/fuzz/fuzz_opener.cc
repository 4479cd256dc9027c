// Any message between the daemon and its opener, to either side. What is understood is written the same again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/fetch/open/opener_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const Result<OpenerRequestMessage> request = parse_opener_request(bytes)) {
    const auto again = std::visit([](const auto& message) { return to_bytes(message); }, *request);
    MILLRACE_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  } else {
    static_cast<void>(number_of(bytes));
  }
  if (const Result<OpenerReplyMessage> reply = parse_opener_reply(bytes)) {
    const auto again = to_bytes(*reply);
    MILLRACE_CHECK(parse_opener_reply(again).has_value());
  }
  return 0;
}

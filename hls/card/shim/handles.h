// The handles of open cards that XRT has. Any other is refused. Thread-safe: plain functions.
#pragma once

#include <memory>

#include "hls/card/shim/client.h"

namespace millrace::card {

void* give_handle(std::shared_ptr<Client> client);
std::shared_ptr<Client> client_of(void* handle);    // nullptr: no such handle
std::shared_ptr<Client> take_handle(void* handle);  // likewise

}  // namespace millrace::card

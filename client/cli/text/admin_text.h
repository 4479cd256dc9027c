// What `millrace admin` prints for people. Pure functions, thread-safe.
#pragma once

#include <string>

#include "millrace/v1/admin.pb.h"

namespace millrace::cli {

std::string reload_text(const v1::ReloadReply& reply);
std::string status_text(const v1::AdminStatusReply& reply);

}  // namespace millrace::cli

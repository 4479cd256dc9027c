// The words for what is not opened, the same wherever it is found out. Thread-safe: plain functions.
#pragma once

#include <string>

#include "daemon/model/caller.h"
#include "proto/base/error.h"

namespace millrace {

// The one answer to a caller who asks for what is not his to know of.
Error not_readable();

// The answer when the kernel refuses the daemon something that nothing forbids the caller.
Error refused_to_daemon(const Caller& caller);

// What lies beneath such a root. Which roots there are, everybody may know.
Error root_not_there(const std::string& root);

Error no_such_file();

Error not_a_regular_file();
Error a_folder_not_a_file();
Error a_file_not_a_folder();
Error held_by_a_lease();

// Of an open() that said so; `refused`: what EACCES and EPERM mean to the caller that opens.
Error open_error(int error_number, Error refused);

}  // namespace millrace

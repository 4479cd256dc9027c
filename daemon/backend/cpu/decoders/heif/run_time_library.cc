#include "daemon/backend/cpu/decoders/heif/run_time_library.h"

#include <dlfcn.h>

#include <utility>

#include "proto/base/printable.h"

namespace millrace {

RunTimeLibrary::RunTimeLibrary(std::string format, std::string soname, const std::string& package)
    : format_(std::move(format)), soname_(std::move(soname)), handle_(dlopen(soname_.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const told = dlerror();
  const std::string why = told != nullptr ? told : "";
  const bool is_missing = why.find(soname_ + ": cannot open shared object file") == 0;
  why_not_ = format_ + " is decoded where " + soname_ + " is installed (Debian: " + package + ")";
  if (!is_missing) why_not_ += "; here it cannot be loaded: " + printable(why);
}

void* RunTimeLibrary::address_of(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* const found = dlsym(handle_, name);
  if (found == nullptr) refuse(soname_ + " lacks " + name);
  return found;
}

void RunTimeLibrary::refuse(const std::string& why) {
  if (why_not_.empty()) why_not_ = format_ + " cannot be decoded: " + why;
}

}  // namespace millrace

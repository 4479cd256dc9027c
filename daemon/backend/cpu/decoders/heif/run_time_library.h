// A library that the host may have or not, loaded at run time. It is never unloaded. Thread-bound(its maker).
#pragma once

#include <string>
#include <type_traits>

namespace millrace {

class RunTimeLibrary {
 public:
  // `format`: what it decodes, as people write it; `package`: Debian's.
  RunTimeLibrary(std::string format, std::string soname, const std::string& package);

  // Sets `function` to the library's of that name.
  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(address_of(name));
  }
  void refuse(const std::string& why);

  // Why nothing can be decoded with it; empty: all is there.
  const std::string& why_not() const { return why_not_; }

 private:
  void* address_of(const char* name);

  std::string format_, soname_;
  void* handle_ = nullptr;
  std::string why_not_;
};

}  // namespace millrace

#include "client/cli/web/families.h"

namespace millrace::cli {
namespace {

constexpr WebFamilyRow kWebFamilies[] = {
#define MILLRACE_ROW(id, name, kind, unit, labels, help) {{name, FamilyKind::kind, unit, help}, labels},
    MILLRACE_WEB_FAMILIES(MILLRACE_ROW)
#undef MILLRACE_ROW
};

}  // namespace

std::span<const WebFamilyRow> web_family_table() {
  return kWebFamilies;
}

}  // namespace millrace::cli

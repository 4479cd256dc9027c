// The roots that the daemon and its opener have of one settings file, whichever of them was started first.
#include <csignal>

#include "tests/system/files/opener_files.h"
#include "tests/system/support/operator.h"

namespace millrace {
namespace {

// Two folders, of which the settings name the first at the start.
struct Roots {
  OpenFolder first, second;
  std::string old_file = picture_of(first / "a.jpg", 0, kAlice, 0640),
              new_file = picture_of(second / "a.jpg", 0, kAlice, 0640);
};

TEST_CASE("the opener has the roots of a reload as soon as the daemon has, and its clients stay", "[system]") {
  if (skipped_without_openers()) return;
  const Roots roots;
  const Daemon daemon(service_with_opener({roots.first.path()}));
  REQUIRE(verdicts(daemon, {roots.old_file}, kAlice)[0] == "ok");

  edit(daemon, "\"" + roots.first.path() + "\"", "\"" + roots.second.path() + "\"");
  const Ran reload = admin(daemon, {"reload"});

  CAPTURE(reload.output, reload.errors);
  REQUIRE(reload.status == 0);
  CHECK_THAT(reload.output, !Catch::Contains("warning"));
  CHECK(verdicts(daemon, {roots.new_file}, kAlice)[0] == "ok");
  CHECK_THAT(verdicts(daemon, {roots.old_file}, kAlice)[0], is_denied());
}

TEST_CASE("an opener that was there before the daemon reads the settings again when the daemon starts", "[system]") {
  if (skipped_without_openers()) return;
  const Roots roots;
  Daemon daemon(service_with_opener({roots.first.path()}));

  edit(daemon, "\"" + roots.first.path() + "\"", "\"" + roots.second.path() + "\"");
  daemon.kill(SIGKILL);
  daemon.start();

  CHECK(verdicts(daemon, {roots.new_file}, kAlice)[0] == "ok");
}

TEST_CASE("an administrator who has the settings read again hears that the opener has not", "[system]") {
  if (skipped_without_openers()) return;
  const Roots roots;
  const Daemon daemon(service_with_opener({roots.first.path()}));
  REQUIRE(verdicts(daemon, {roots.old_file}, kAlice)[0] == "ok");

  edit(daemon, "\"" + roots.first.path() + "\"", "\"" + roots.first.path() + "\", \"" + roots.second.path() + "\"");
  daemon.opener().kill(SIGSTOP);
  const Ran reload = admin(daemon, {"reload"});
  daemon.opener().kill(SIGCONT);

  CHECK(reload.status == 0);
  CHECK_THAT(reload.output, Catch::Contains("warning: files.roots: clients get nothing of new ones yet"));
}

}  // namespace
}  // namespace millrace

#!/usr/bin/env bash
# The service as a platform engineer meets it: Debian packages on a machine with systemd. Installs, uses, restarts, crashes, upgrades and
# purges them, as root, on a machine that is thrown away afterwards: it makes users, mounts, and kills the daemon.
#
#   service_test.sh [--debs FOLDER]     FOLDER: packages that are built already (`config/setup.sh package`); without it they are built here
#
# Ends with 0 when every step went well. A step that cannot be tried says so in a line that begins with LEFT OUT.
set -euo pipefail

top=$(cd "$(dirname "$0")/../../.." && pwd)
debs=$top/build/packages
work=$(mktemp -d)
chmod 755 "$work"
exposure_limit=2.0
socket=/run/millrace/millrace.sock
settings=/etc/millrace/millrace.toml

step() { printf '\n== %s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
left_out() { printf 'LEFT OUT: %s\n' "$*"; }
fail() {
  printf '\nFAILED: %s\n' "$*" >&2
  journalctl -b --no-pager -n 40 -u millraced.service -u millraced.socket -u millrace-opener.service >&2 || true
  exit 1
}

finish() {
  jobs -p | xargs -r kill 2>/dev/null || true
  umount -l "$work"/later 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

eventually() {  # SECONDS COMMAND...
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
}

as() { runuser -u "$1" -- "${@:2}"; }

apt() {
  local log=$work/apt.log
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "apt-get $*"; }
}

main_pid() { systemctl show -P MainPID millraced.service; }
has_opener() { systemctl cat millrace-opener.service >/dev/null 2>&1; }
errors_name_the_settings() { journalctl -b --no-pager -p err -u millraced.service | grep -q "$settings:[0-9]*: "; }
another_pid_than() { active millraced.service && [ "$(main_pid)" -gt 1 ] && [ "$(main_pid)" != "$1" ]; }
active() { [ "$(systemctl is-active "$1")" = active ]; }

# ------------------------------------------------------------------------------------------------------------------ the steps

packages() {
  if [ "${1:-}" = --debs ]; then
    debs=$2
  else
    step "building the packages"
    "$top/config/setup.sh" package
  fi
  ls "$debs"/millrace-daemon_*.deb >/dev/null || fail "no packages in $debs"
}

lintian_is_clean() {
  step "lintian"
  apt update
  apt install --no-install-recommends lintian
  lintian --allow-root --fail-on error "$debs"/*.deb || fail "lintian has errors"
}

install() {
  step "install: it serves at once, without roots, and its sockets are root's"
  apt install --no-install-recommends "$debs"/*.deb
  eventually 30 active millraced.service || fail "the service is not active after its installation"
  active millraced.socket || fail "the sockets are not active"
  systemctl is-enabled millraced.socket millraced.service >/dev/null || fail "it would not start with the machine"
  [ "$(stat -c '%U %a' /run/millrace)" = "root 755" ] || fail "/run/millrace is $(stat -c '%U %a' /run/millrace)"
  local one
  for one in "$socket" "$socket.handoff"; do
    [ "$(stat -c '%U:%G %a %F' "$one")" = "root:millrace 660 socket" ] || fail "$one is $(stat -c '%U:%G %a %F' "$one")"
  done
  [ "$(ps -o user= -p "$(main_pid)")" = millrace ] || fail "the daemon does not run as millrace"
  as millrace test ! -w /run/millrace || fail "the daemon's user may write to the folder of its sockets"
}

exposure() {
  step "systemd-analyze security: at most $exposure_limit a unit"
  local unit score
  for unit in millraced.service millrace-opener.service millrace-web.service; do
    if ! systemctl cat "$unit" >/dev/null 2>&1; then
      left_out "$unit is not part of these packages"
      continue
    fi
    score=$(systemd-analyze security --no-pager "$unit" | sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\).*/\1/p')
    say "$unit: $score"
    awk -v score="$score" -v limit="$exposure_limit" 'BEGIN { exit !(score != "" && score <= limit) }' || fail "$unit is too exposed: $score"
    if systemd-analyze verify "/usr/lib/systemd/system/$unit" 2>&1 | grep -F millrace; then fail "systemd-analyze verify has something to say of $unit"; fi
  done
}

scraped() { curl -sf http://127.0.0.1:9464/metrics | grep -qx "$1"; }

metrics() {
  step "metrics: off until somebody enables them, then a scrape through millrace-web.socket"
  if systemctl is-enabled millrace-web.socket >/dev/null 2>&1 || active millrace-web.socket; then fail "millrace-web is on by itself"; fi
  apt install --no-install-recommends curl
  systemctl enable --now millrace-web.socket
  eventually 30 scraped 'millrace_up 1' || fail "no scrape through millrace-web.socket: $(systemctl status --no-pager millrace-web.service 2>&1 | tail -n 5)"
  [ "$(ps -o user= -p "$(systemctl show -P MainPID millrace-web.service)")" != root ] || fail "millrace-web runs as root"
  curl -sf http://127.0.0.1:9464/metrics | grep -q '^process_resident_memory_bytes ' || fail "no process_* of the daemon within the sandbox"
  curl -sf http://127.0.0.1:9464/ | grep -q '</html>' || fail "no page"
  step "metrics: the daemon stopped, and back"
  systemctl stop millraced.socket millraced.service
  eventually 30 scraped 'millrace_up 0' || fail "a daemon that was stopped is up"
  systemctl start millraced.socket millraced.service
  eventually 30 scraped 'millrace_up 1' || fail "a daemon that was started is not up"
  say "$(systemctl show -P MemoryCurrent millrace-web.service | awk '{ printf "%.1f MiB", $1 / 1048576 }') taken by millrace-web.service"
}

drop_ins() {
  step "systemd-analyze verify: the drop-ins for nodes with devices"
  local one units=$work/units
  for one in "$top"/systemd/examples/*.conf; do
    rm -rf "$units"
    mkdir -p "$units/millraced.service.d"
    cp /usr/lib/systemd/system/millraced.service "$units"
    cp "$one" "$units/millraced.service.d"
    if SYSTEMD_UNIT_PATH=$units: systemd-analyze verify --man=no "$units/millraced.service" 2>&1 | grep -F millrace; then fail "systemd-analyze verify has something to say of $one"; fi
  done
}

people_and_files() {
  step "users: alice is a member of the group, mallory is not"
  useradd -m alice
  useradd -m mallory
  usermod -aG millrace alice
  mkdir -p /srv/open /srv/hers "$work/later"
  chmod 755 /srv/open
  pictures /srv/open
  cp -r /srv/open/. /srv/hers
  chown -R alice:alice /srv/hers
  chmod -R u=rwX,go= /srv/hers
  sed -i "s|^#\?roots = .*|roots = [\"/srv/open\", \"/srv/hers\", \"$work/later\", \"/home\"]|" "$settings"
  grep -q '^roots = ' "$settings" || fail "the settings have no roots to change"
  systemctl restart millraced
}

pictures() {  # FOLDER: 64 of them, all alike
  base64 -d >"$1/0.png" <<'PNG'
iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAABlklEQVR42hXRURVEIQhFUSMYgQhGMAIRiGCEE8EIRiACEYhABCLMG7/ZrMt1jMEcyGAN9kAH
NjgDBnfwBj6IQQ5q0IMxJnMikzXZE53Y5EyY3Mmb+CQmOalJzw8IUxBhCVtQwYQjIFzhCS6EkEIJLR9YzIUs1mIvdGGLs2BxF2/hi1jkoha9PrCZG9mszd7o
xjZnw+Zu3sY3sclNbXp/QJmKKEvZiiqmHAXlKk9xJZRUSmn9gDENMZaxDTXMOAbGNZ7hRhhplNH2gcM8yGEd9kEPdjgHDvfwDn6IQx7q0OcD/wK/Sr4jv9hf
kG/1N/x/Fx44BCQU9Pc94zIvclmXfdGLXc79j9/Lu/glLnmpS98PPOZDHuuxH/qwx3n/5ffxHv6IRz7q0e8DznTEWc521DHn+D/KdZ7jTjjplNP+gWAGEqxg
BxpYcOIf/AYv8CCCDCro+EAyE0lWshNNLDn5P/MmL/Ekkkwq6fxAMQspVrELLaw49S/lFq/wIoosquj6QDMbaVazG22sOf2v8Dav8SaabKrp5geIAnAQC3Nf
wAAAAABJRU5ErkJggg==
PNG
  local i
  for i in $(seq 1 63); do cp "$1/0.png" "$1/$i.png"; done
}

epoch() {  # USER FOLDER [OPTIONS...]
  as "$1" millrace run --dataset "$2" --recipe train --size 64 --batch 8 "${@:3}"
}

use() {
  step "use: a member gets pictures, a non-member clear words"
  epoch alice /srv/open >"$work/out" 2>&1 || { cat "$work/out"; fail "a member cannot use it"; }
  if as mallory millrace ping >"$work/out" 2>&1; then fail "a non-member is served"; fi
  grep -q "join the group" "$work/out" || { cat "$work/out"; fail "the refusal does not say what to do"; }
  say "$(cat "$work/out")"
  step "use: files that only the member may read"
  if has_opener; then
    epoch alice /srv/hers >"$work/out" 2>&1 || { cat "$work/out"; fail "a member cannot use her own files"; }
    usermod -aG millrace mallory
    if epoch mallory /srv/hers >"$work/out" 2>&1; then fail "another member reads her files"; fi
    gpasswd -d mallory millrace >/dev/null
  else
    left_out "files that only the member may read: millrace-opener is not part of these packages"
  fi
}

not_served() { ! epoch alice "$1"; }

# A client that opens a session over and over, and counts; the first failure ends it.
client_in_a_loop() {
  local n=0
  while [ ! -e "$work/enough" ]; do
    as alice millrace run --dataset /srv/open --recipe train --size 32 --batch 8 --limit 8 >"$work/loop.out" 2>&1 || {
      # Cut off in the middle of its work is what a restart does; not being let in is not.
      grep -qE "has gone away|is stopping|ended the session" "$work/loop.out" || { cp "$work/loop.out" "$work/loop.failed"; return 1; }
    }
    n=$((n + 1))
    echo $n >"$work/loop.count"
  done
}

decoders() { pgrep -P "$(main_pid)" -f millrace-decoder; }

decoders_shut_in() {
  step "cpu.isolation = \"process\": within the service's own sandbox"
  cp "$settings" "$work/before.toml"
  sed -i 's|^#isolation = "none"|isolation = "process"|' "$settings"
  grep -q '^isolation = ' "$settings" || fail "the settings have no cpu.isolation to change"
  systemctl restart millraced || fail "it does not start with cpu.isolation = \"process\""
  epoch alice /srv/open --epochs 2 >"$work/out" 2>&1 || { cat "$work/out"; fail "no pictures from a decoder's process"; }
  decoders >/dev/null || fail "no decoder's process was started"
  cp "$work/before.toml" "$settings"
  systemctl restart millraced
}

restart_under_load() {
  step "restart under load: clients wait, none is refused"
  rm -f "$work"/enough "$work"/loop.*
  client_in_a_loop &
  local loop=$! i
  for i in 1 2 3 4 5 6; do
    rm -f "$work/loop.count"
    eventually 30 test -e "$work/loop.count" || fail "the client in the loop does nothing"
    systemctl restart millraced
    as alice millrace ping --count 1 >"$work/out" 2>&1 || { cat "$work/out"; fail "a client that came right after restart $i was refused"; }
  done
  touch "$work/enough"
  wait $loop || { cat "$work/loop.failed"; fail "a client was refused during a restart"; }
  say "$(cat "$work/loop.count") sessions over 6 restarts"
  step "stop: a client that connects starts it again"
  systemctl stop millraced.service 2>/dev/null
  as alice millrace ping --count 1 >"$work/out" 2>&1 || { cat "$work/out"; fail "nobody answers in the sockets"; }
}

crash() {
  step "kill -9: it is there again, and a client that came meanwhile was served"
  local pid
  pid=$(main_pid)
  kill -9 "$pid"
  as alice millrace ping --count 1 >"$work/out" 2>&1 || { cat "$work/out"; fail "a client that came right after kill -9 was refused"; }
  [ "$(main_pid)" != "$pid" ] || fail "the same process?"
  step "7 kills within 5 seconds of its life strand nothing"
  local i
  pid=0
  for i in 1 2 3 4 5 6 7; do
    eventually 30 another_pid_than "$pid" || fail "it does not come back before kill $i"
    pid=$(main_pid)
    [ "$pid" -gt 1 ] || fail "it was killed by somebody else"
    kill -9 "$pid"
  done
  as alice millrace ping --count 1 >"$work/out" 2>&1 || { cat "$work/out"; fail "stranded"; }
  systemctl reset-failed 2>/dev/null || true
  step "wrong settings: said, tried again, and mended without more than the file"
  cp "$settings" "$work/good.toml"
  echo 'nonsense = = 1' >>"$settings"
  pid=$(main_pid)
  systemctl reload millraced 2>/dev/null && fail "reload takes nonsense for settings"
  [ "$(main_pid)" = "$pid" ] || fail "wrong settings have ended the daemon at a reload"
  eventually 10 errors_name_the_settings || fail "the journal's errors do not say what is wrong"
  systemctl restart millraced 2>/dev/null && fail "it starts with nonsense"
  active millraced.socket || fail "wrong settings have taken the sockets down"
  cp "$work/good.toml" "$settings"
  timeout 60 runuser -u alice -- bash -c 'until millrace ping --count 1; do :; done' >"$work/out" 2>&1 || { cat "$work/out"; fail "not mended"; }
}

roots_come_and_go() {
  step "what was mounted when it started can be unmounted: its sandbox holds nothing"
  mkdir -p "$work/before"
  mount -t tmpfs tmpfs "$work/before"
  systemctl restart millraced
  grep -qF " $work/before " "/proc/$(main_pid)/mountinfo" || fail "a mount of the host is missing in the sandbox"
  umount "$work/before" || fail "the sandbox holds a mount of the host"
  if grep -F " $work/before " "/proc/$(main_pid)/mountinfo"; then fail "it is still mounted in the sandbox"; fi
  step "a root that is mounted later is served, and can be unmounted"
  mount -t tmpfs tmpfs "$work/later"
  cp /srv/open/* "$work/later"
  chmod 755 "$work/later"
  eventually 20 epoch alice "$work/later" || fail "what was mounted later is not served"
  if ! eventually 30 umount "$work/later"; then
    ! has_opener || fail "a root cannot be unmounted while the service runs"
    left_out "unmounting a root while it runs: this daemon keeps roots open"
    umount -l "$work/later"
  fi
  if grep -F " $work/later " "/proc/$(main_pid)/mountinfo"; then fail "it is still mounted for the service"; fi
  eventually 20 not_served "$work/later" || fail "an unmounted root is still served"
  step "a root in a home folder is served"
  mkdir -p /home/alice/open
  cp /srv/open/* /home/alice/open
  chmod 755 /home/alice /home/alice/open
  chown -R alice: /home/alice
  epoch alice /home/alice/open >"$work/out" 2>&1 || { cat "$work/out"; fail "a root in a home folder is not served"; }
}

# The same packages with a higher version.
newer() {
  local deb tree
  mkdir -p "$work/newer"
  for deb in "$debs"/*.deb; do
    tree=$work/tree
    rm -rf "$tree"
    dpkg-deb -R "$deb" "$tree"
    sed -i 's/^Version: .*/Version: 99-1/; s/(= [^)]*)/(= 99-1)/g' "$tree/DEBIAN/control"
    [ ! -e "$tree$settings" ] || echo '# a line of the newer package' >>"$tree$settings"
    dpkg-deb -b --root-owner-group "$tree" "$work/newer" >/dev/null
  done
}

upgrade() {
  step "upgrade: edited settings stay, it is restarted, clients wait"
  newer
  rm -f "$work"/enough "$work"/loop.*
  client_in_a_loop &
  local loop=$! pid
  pid=$(main_pid)
  cp "$settings" "$work/edited.toml"
  apt install --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$work"/newer/*.deb
  eventually 30 active millraced.service || fail "not active after the upgrade"
  [ "$(main_pid)" != "$pid" ] || fail "the upgrade has not restarted it"
  cmp "$settings" "$work/edited.toml" || fail "the upgrade has changed edited settings"
  touch "$work/enough"
  wait $loop || { cat "$work/loop.failed"; fail "a client was refused during the upgrade"; }
  say "$(cat "$work/loop.count") sessions meanwhile"
  step "upgrade over wrong settings: said, and the daemon goes on as it was"
  pid=$(main_pid)
  echo 'nonsense = = 1' >>"$settings"
  upgrade_again
  grep -q "$settings:[0-9]*: " "$work/apt.log" || { cat "$work/apt.log"; fail "the upgrade does not say what is wrong"; }
  [ "$(main_pid)" = "$pid" ] || fail "an upgrade over wrong settings has ended the daemon"
  epoch alice /srv/open >"$work/out" 2>&1 || { cat "$work/out"; fail "it does not serve after an upgrade over wrong settings"; }
  cp "$work/edited.toml" "$settings"
  systemctl restart millraced || fail "it does not start with mended settings"
  step "upgrade of what was stopped: it stays so"
  systemctl stop millraced.socket millraced.service
  upgrade_again
  if active millraced.service || active millraced.socket; then fail "the upgrade has started what was stopped"; fi
  systemctl start millraced.socket millraced.service
}

upgrade_again() {
  apt install --reinstall --no-install-recommends -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$work"/newer/millrace-daemon_*.deb
}

remove_and_purge() {
  step "remove keeps settings, purge leaves nothing"
  apt remove millrace-daemon
  [ -e "$settings" ] || fail "removing has taken the settings"
  [ ! -e "$socket" ] || fail "removing has left the socket"
  apt purge millrace-daemon millrace libmillrace0 libmillrace-dev
  local left
  left=$(find /etc /usr /var/lib /var/log /run -xdev -iname '*millrace*' -not -path '*/src/*' -not -path '/var/lib/apt/*' -not -path '/var/log/journal/*' 2>/dev/null || true)
  [ -z "$left" ] || fail "purging has left: $left"
  left=$(systemctl list-units --all --no-legend 'millrace*' | grep -v not-found || true)  # a name that systemd has not forgotten yet is no unit
  [ -z "$left" ] || fail "units are left: $left"
  getent passwd millrace >/dev/null || fail "the user is gone, whose files may lie somewhere"
}

[ "$(id -u)" = 0 ] || { echo "service_test: needs root" >&2; exit 2; }
[ -d /run/systemd/system ] || { echo "service_test: needs a machine that was booted by systemd" >&2; exit 2; }
packages "$@"
lintian_is_clean
install
exposure
metrics
drop_ins
people_and_files
use
decoders_shut_in
restart_under_load
crash
roots_come_and_go
upgrade
remove_and_purge
printf '\nservice_test: fine\n'

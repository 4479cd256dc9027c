#!/bin/sh
# wheels_test.sh on another distribution: a minimal Debian of the given suite, made by debootstrap in a folder that is removed again. Its glibc,
# its Python and its libraries are others than those that the wheels were built with. Needs root and debootstrap. Takes some minutes.
#
#   wheels_elsewhere.sh WHEELS [SUITE]     SUITE: trixie (Debian 13) unless named
set -eu
wheels=$(cd "$1" && pwd)
suite=${2:-trixie}
tests=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "wheels_elsewhere: making another distribution needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "wheels_elsewhere: debootstrap is missing: config/setup.sh deps long" >&2; exit 1; }

folder=$(mktemp -d)
root=$folder/root
trap 'umount -R -l "$root/proc" "$root/dev" 2>/dev/null || true; rm -rf --one-file-system "$folder"' EXIT
trap 'exit 130' INT TERM HUP  # dash runs no EXIT trap otherwise
# shellcheck disable=SC2016  # apt's own variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort -u | sed -n '/security/!{p;q}')
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root" "$mirror" >"$folder/log" 2>&1 || {
  tail -n 20 "$folder/log" >&2
  echo "wheels_elsewhere: debootstrap cannot make $suite from $mirror" >&2
  exit 1
}

# How this host reaches PyPI is the host's affair.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do [ ! -e "$file" ] || cp -L "$file" "$root$file"; done
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir "$root/wheels" "$root/tests"
cp "$wheels"/*.whl "$root/wheels"
cp "$tests"/wheels_test.sh "$tests"/wheels_test.py "$root/tests"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
echo "wheels_elsewhere: $(sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release"), $(chroot "$root" python3 --version)"
chroot "$root" /tests/wheels_test.sh /wheels

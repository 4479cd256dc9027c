# shellcheck shell=bash disable=SC2154
# config/setup.sh docs: the documentation as a site. Sourced by setup.sh, whose functions and variables it uses.

# All anew every time: Sphinx says nothing again of pages that it has read before.
docs() {
  [ $# = 0 ] || misused "docs takes nothing"
  local pages=$top/build/docs-pages drawn began
  deps docs
  began=$SECONDS
  python_with venv-docs config/requirements-docs.txt
  clocked installing $((SECONDS - began))
  drawn=$(draw_overview)
  rm -rf "$top/build/docs" "$pages"
  mkdir -p "$pages"
  "$top/build/venv-docs/bin/sphinx-build" -q -W --keep-going -c "$top/config/docs" -d "$pages/.doctrees" "$pages" "$top/build/docs" ||
    die "docs: what is wrong is above; the pages of the site are listed in config/docs/conf.py"
  say "made build/docs/index.html"
  [ -z "$drawn" ] || die "docs: $drawn was not what its source gives, and has been drawn anew: look at it, and commit it"
}

# Says which picture it has drawn anew; nothing where it is as its source has it.
draw_overview() {
  local picture=daemon/doc/overview new=$top/build/overview.svg
  neato -n -Tsvg "$top/$picture.dot" | sed '/^<!--.*-->$/d; /^<!--/,/-->$/d' >"$new" || die "docs: neato cannot read $picture.dot"
  cmp -s "$new" "$top/$picture.svg" || { cp "$new" "$top/$picture.svg"; echo "$picture.svg"; }
}

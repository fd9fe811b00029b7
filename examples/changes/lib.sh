#!/bin/sh
# What the scripts share.

# The directory that a task may write, as its plan says: read from the task as JSON.
claimed() { sed -n 's/.*"writes":\["\([^"]*\)".*/\1/p'; }

# A place where this may be killed: with PAUSE_AT=NAME it stays here until it is, or
# until whoever began all of it is gone.
point() {
  [ "${PAUSE_AT:-}" = "$1" ] || return 0
  : > "at.$1"
  while kill -0 "$BEGUN_BY" 2> /dev/null; do sleep 0.1; done
  kill -9 $$
}

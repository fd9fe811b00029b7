# What the scripts share.

# A place where this may be killed: with PAUSE_AT=NAME it stays here until it is.
point() {
  if [ "${PAUSE_AT:-}" = "$1" ]; then
    : > "at.$1"
    exec sleep 600
  fi
}

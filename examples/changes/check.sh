#!/bin/sh
# Looks at a task that was done: its line is there, and once.
set -eu
. ./lib.sh
point "checking-$ONCESEAL_TASK"
grep -nx "$ONCESEAL_TASK" "$SITE/lines" | tee "$ONCESEAL_EVIDENCE" > /dev/null
[ "$(grep -cx "$ONCESEAL_TASK" "$SITE/lines")" -eq 1 ]

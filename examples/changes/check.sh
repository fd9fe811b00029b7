#!/bin/sh
# Looks at a task that was done: its line is there, and once.
set -eu
. ./lib.sh
file="$(claimed)/$ONCESEAL_RUN"
point "checking-$ONCESEAL_TASK"
grep -nx "$ONCESEAL_TASK" "$file" | tee "$ONCESEAL_EVIDENCE" > /dev/null
[ "$(grep -cx "$ONCESEAL_TASK" "$file")" -eq 1 ]

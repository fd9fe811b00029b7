#!/bin/sh
# Writes a line. This is all that happens in the world.
. ./lib.sh
point "writing-$2"
echo "$2" >> "$1"
point "wrote-$2"
